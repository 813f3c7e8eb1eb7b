/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_filter.c: undoes shuffles and deltas of one block.
 *
 * The hard case is a block larger than scratch, since a shuffle moves every byte and a decoder must
 * not allocate memory by what hostile data says.  Such a block is unshuffled in place; see below.
 */
#include "encoders/blosc/blosc_filter.h"

#include <string.h>

#include "encoders/decode_poll.h"
#include "encoders/little_endian.h"

struct wharf_blosc_shuffle wharf_blosc_shuffle_of(const struct wharf_blosc_parts *parts,
                                                  bool is_of_bits, unsigned element_nbytes,
                                                  size_t nbytes)
{
    size_t n_elements = nbytes / element_nbytes;

    if (is_of_bits)
        return (struct wharf_blosc_shuffle){parts->order->bits, element_nbytes,
                                            (size_t)8 * element_nbytes, n_elements / 8};
    return (struct wharf_blosc_shuffle){parts->order->bytes, element_nbytes, element_nbytes,
                                        element_nbytes > 1 ? n_elements : 0};
}

void wharf_blosc_unshuffle(const struct wharf_blosc_walk *walk,
                           const struct wharf_blosc_shuffle *shuffle, uint8_t *out, size_t nbytes)
{
    size_t done = shuffle->n_planes * shuffle->plane_nbytes;

    if (done > 0)
        shuffle->order(walk->scratch, shuffle->plane_nbytes, shuffle->element_nbytes, out);
    if (done < nbytes)
        memcpy(out + done, walk->scratch + done, nbytes - done);
}

/* ---- blocks that are larger than scratch ---------------------------------------------------- */

/*
 * In place, by cutting the planes into columns.  Planes hold byte (or bit) k of all elements, so
 * the same range of elements in all planes, a column, can be unshuffled by itself.  The block is
 * n_planes x n_columns parts, in the order of planes.  Transposing this matrix of parts makes each
 * column contiguous.  turn_cycle does so in place, by following the cycles of the permutation: it
 * puts the part in hand to its destination, takes up the part that was there, and so on.  Bytes at
 * the ends of planes that do not fill a part are set aside in scratch first.  A column that is
 * still larger than scratch is cut again; the third cut is always small enough.
 */
enum {
    COLUMN_NBYTES = 64 * 1024,
    /* Scratch holds a bit for each part, set once the part was moved, and two parts in hand. */
    MARKS_NBYTES = WHARF_BLOSC_SCRATCH_NBYTES / 8,
    PART_MAX = COLUMN_NBYTES / 2,
};

/* Moves bytes in steps of memmove, with polls between: to a lower address, or to one that does not
 * overlap. */
static bool move(struct wharf_blosc_walk *walk, uint8_t *to, const uint8_t *from, size_t nbytes)
{
    while (nbytes > 0) {
        size_t n = nbytes < WHARF_POLL_OUT_NBYTES ? nbytes : WHARF_POLL_OUT_NBYTES;
        memmove(to, from, n);
        to += n;
        from += n;
        nbytes -= n;
        if (!wharf_blosc_spend(walk, 0, n))
            return false;
    }
    return true;
}

/* Moves all parts of the cycle that contains part `first`.  `hand` is the part that was at `at`. */
static bool turn_cycle(struct wharf_blosc_walk *walk, uint8_t *out, size_t n_planes,
                       size_t n_columns, size_t part_nbytes, size_t first)
{
    uint8_t *marks = walk->scratch, *hand = walk->scratch + MARKS_NBYTES;
    uint8_t *other = hand + PART_MAX;
    size_t at = first;

    memcpy(hand, out + at * part_nbytes, part_nbytes);
    do {
        uint8_t *next = other;
        at = at % n_columns * n_planes + at / n_columns;
        marks[at / 8] |= (uint8_t)(1u << at % 8);
        memcpy(next, out + at * part_nbytes, part_nbytes);
        memcpy(out + at * part_nbytes, hand, part_nbytes);
        other = hand;
        hand = next;
        if (!wharf_blosc_spend(walk, 0, part_nbytes))
            return false;
    } while (at != first);
    return true;
}

static bool turn_round(struct wharf_blosc_walk *walk, uint8_t *out, size_t n_planes,
                       size_t n_columns, size_t part_nbytes)
{
    size_t n = n_planes * n_columns;

    memset(walk->scratch, 0, (n + 7) / 8);
    for (size_t i = 0; i < n; i++)
        if (!(walk->scratch[i / 8] >> i % 8 & 1) &&
            !turn_cycle(walk, out, n_planes, n_columns, part_nbytes, i))
            return false;
    return true;
}

/* Takes `left` bytes from the end of each plane, closes the gaps, and unshuffles these bytes to the
 * end of the block. */
static bool take_ends(struct wharf_blosc_walk *walk, const struct wharf_blosc_shuffle *shuffle,
                      uint8_t *out, size_t left)
{
    size_t n = shuffle->plane_nbytes, kept = n - left;

    for (size_t k = 0; k < shuffle->n_planes; k++) {
        memcpy(walk->scratch + k * left, out + k * n + kept, left);
        if (k > 0 && !move(walk, out + k * kept, out + k * n, kept))
            return false;
    }
    shuffle->order(walk->scratch, left, shuffle->element_nbytes, out + shuffle->n_planes * kept);
    return true;
}

static bool order_planes(struct wharf_blosc_walk *walk, const struct wharf_blosc_shuffle *shuffle,
                         uint8_t *out)
{
    struct wharf_blosc_shuffle column = *shuffle;
    size_t nbytes = shuffle->n_planes * shuffle->plane_nbytes;

    if (nbytes <= WHARF_BLOSC_SCRATCH_NBYTES) {
        memcpy(walk->scratch, out, nbytes);
        shuffle->order(walk->scratch, shuffle->plane_nbytes, shuffle->element_nbytes, out);
        return wharf_blosc_spend(walk, 0, nbytes);
    }
    /* At most as many columns as let take_ends fit in scratch.  A part is then at most 8 KiB,
     * otherwise PART_MAX. */
    size_t n_columns = (nbytes - 1) / COLUMN_NBYTES + 1;
    size_t n_max = WHARF_BLOSC_SCRATCH_NBYTES / shuffle->n_planes;
    if (n_columns > n_max)
        n_columns = n_max;
    column.plane_nbytes = shuffle->plane_nbytes / n_columns;
    size_t left = shuffle->plane_nbytes % n_columns;
    if (left > 0 && !take_ends(walk, shuffle, out, left))
        return false;
    if (!turn_round(walk, out, shuffle->n_planes, n_columns, column.plane_nbytes))
        return false;
    for (size_t i = 0; i < n_columns; i++)
        if (!order_planes(walk, &column, out + i * column.plane_nbytes * column.n_planes))
            return false;
    return true;
}

bool wharf_blosc_unshuffle_there(struct wharf_blosc_walk *walk,
                                 const struct wharf_blosc_shuffle *shuffle, uint8_t *out)
{
    return shuffle->plane_nbytes == 0 || order_planes(walk, shuffle, out);
}

/* ---- delta ---------------------------------------------------------------------------------- */

static unsigned word_nbytes(unsigned element_nbytes)
{
    switch (element_nbytes) {
    case 1:
    case 2:
    case 4:
        return element_nbytes;
    default:
        return element_nbytes % 8 == 0 ? 8 : 1;
    }
}

/* to[i] ^= from[i], a word at a time in rising order.  `from` is at least a word before `to`. */
static void exclusive_or(uint8_t *to, const uint8_t *from, size_t nbytes, unsigned word)
{
    size_t i = 0;

    if (word == 8)
        for (; i + 8 <= nbytes; i += 8) {
            uint64_t a, b;
            memcpy(&a, to + i, 8);
            memcpy(&b, from + i, 8);
            a ^= b;
            memcpy(to + i, &a, 8);
        }
    else if (word == 4)
        for (; i + 4 <= nbytes; i += 4)
            wharf_store_le32(to + i, wharf_load_le32(to + i) ^ wharf_load_le32(from + i));
    for (; i < nbytes; i++)
        to[i] ^= from[i];
}

bool wharf_blosc_undo_delta(struct wharf_blosc_walk *walk, unsigned element_nbytes,
                            const uint8_t *first, uint8_t *out, size_t nbytes)
{
    unsigned word = word_nbytes(element_nbytes);
    bool is_first = first == out;

    nbytes -= nbytes % word;
    if (nbytes == 0)
        return true;
    if (is_first) {
        out += word;
        nbytes -= word;
    } else {
        word = 8; /* any width is right, as nothing overlaps */
    }
    while (nbytes > 0) {
        size_t n = nbytes < WHARF_POLL_OUT_NBYTES ? nbytes : WHARF_POLL_OUT_NBYTES;
        exclusive_or(out, first, n, word);
        out += n;
        first += n;
        nbytes -= n;
        if (!wharf_blosc_spend(walk, 0, n))
            return false;
    }
    return true;
}
