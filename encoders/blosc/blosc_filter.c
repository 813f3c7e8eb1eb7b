/* SPDX-License-Identifier: Apache-2.0 */
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
 * The planes are cut into columns of which each has a part of all planes and is put in order by
 * itself.  For that the parts of a column have to stand together: a matrix of n_planes rows of
 * parts is turned round, by moving each part to where it belongs, the part that it finds there to
 * where that belongs, and so on.  What of the planes is no whole part waits in scratch.  A column
 * that is still too large is cut in its turn, which takes three times at most.
 */
enum {
    COLUMN_NBYTES = 64 * 1024,
    /* Scratch is divided into a bit for each part, to remember that it was moved, and two parts. */
    MARKS_NBYTES = WHARF_BLOSC_SCRATCH_NBYTES / 8,
    PART_MAX = COLUMN_NBYTES / 2,
};

/* To a lower address, or to one far away. */
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

/* Moves the cycle that part `first` is in.  What is in hand is the part that stood at `at`. */
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

/* Takes `left` bytes from the end of each plane, closes the gaps, and puts what was taken in order
 * behind all planes. */
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
    /* No more than ends fit scratch for; a part is at most 8 KiB then, else PART_MAX. */
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

/* to[i] ^= from[i], from being at least a word before: a word at a time, in order. */
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
        word = 8; /* in any step, as nothing overlaps */
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
