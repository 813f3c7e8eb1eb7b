/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_loops_body.h: the quick loops themselves, included once for each form, which defines LOOPS
 * as the name of their table, TARGET as the functions' attributes, and LOW_BITS(word, n) as the
 * lowest n bits of a word, n being below 64.
 */
#include <stddef.h>
#include <string.h>

#include "encoders/lz_copy.h"

static inline uint64_t load_64(const uint8_t *p)
{
    uint64_t value;

    memcpy(&value, p, sizeof(value));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value = __builtin_bswap64(value);
#endif
    return value;
}

/* ---- literals -------------------------------------------------------------------------------
 *
 * A stream's next bits are the highest of `bits`, read from the eight bytes at `ip`.  Below those
 * that are left stands a bit that is set, in the place of one of them, so counting the zeros below
 * it tells how many are taken; bits move up as they are taken.  A refill leaves at least 56: five
 * literals of 11 bits, or four of 12.  A turn takes seven bytes at most.
 */
enum { TURN_IN_NBYTES = 7, TURN_LITERALS = 5, TURN_LONG_LITERALS = 4 };

/* One that begins at `begin`, has at least eight bytes, and of those not all bits in the last eight
 * are taken. */
struct quick_stream {
    const uint8_t *ip;
    uint64_t bits;
    uint8_t *out;
};

TARGET static inline void quick_stream_init(struct quick_stream *quick,
                                            const struct wharf_zstd_stream *stream)
{
    uint64_t end = (stream->bits.n_left + 7) / 8;
    unsigned n_taken = (unsigned)(8 * end - stream->bits.n_left);

    quick->ip = stream->bits.begin + end - 8;
    quick->bits = (load_64(quick->ip) | 1) << n_taken;
    quick->out = stream->out;
}

TARGET static inline void quick_stream_leave(const struct quick_stream *quick,
                                             struct wharf_zstd_stream *stream)
{
    stream->bits.n_left = 8 * (uint64_t)(quick->ip - stream->bits.begin) + 64 -
                          (unsigned)__builtin_ctzll(quick->bits);
    stream->out = quick->out;
}

/* How many turns all four streams can make without a look at their ends. */
TARGET static inline size_t turns_left(const struct quick_stream *quick,
                                       const struct wharf_zstd_stream *streams, unsigned n_a_turn)
{
    size_t n_turns = SIZE_MAX;

    for (unsigned i = 0; i < 4; i++) {
        size_t n_in = (size_t)(quick[i].ip - streams[i].bits.begin) / TURN_IN_NBYTES;
        size_t n_out = (size_t)(streams[i].out_end - quick[i].out) / n_a_turn;
        n_turns = n_in < n_turns ? n_in : n_turns;
        n_turns = n_out < n_turns ? n_out : n_turns;
    }
    return n_turns;
}

#define TAKE(i, j)                                                                                 \
    do {                                                                                           \
        unsigned entry = tree[bits##i >> shift];                                                   \
        bits##i <<= entry & 63;                                                                    \
        out##i[j] = (uint8_t)(entry >> 8);                                                         \
    } while (0)
#define TAKE_ALL(j)                                                                                \
    do {                                                                                           \
        TAKE(0, j);                                                                                \
        TAKE(1, j);                                                                                \
        TAKE(2, j);                                                                                \
        TAKE(3, j);                                                                                \
    } while (0)
#define REFILL(i)                                                                                  \
    do {                                                                                           \
        unsigned n_taken = (unsigned)__builtin_ctzll(bits##i);                                     \
        ip##i -= n_taken >> 3;                                                                     \
        bits##i = (load_64(ip##i) | 1) << (n_taken & 7);                                           \
        out##i += n_a_turn;                                                                        \
    } while (0)

TARGET static inline void take_turns(const uint16_t *tree, unsigned tree_log,
                                     struct quick_stream *quick, size_t n_turns,
                                     const unsigned n_a_turn)
{
    const uint8_t *ip0 = quick[0].ip, *ip1 = quick[1].ip, *ip2 = quick[2].ip, *ip3 = quick[3].ip;
    uint64_t bits0 = quick[0].bits, bits1 = quick[1].bits, bits2 = quick[2].bits,
             bits3 = quick[3].bits;
    uint8_t *out0 = quick[0].out, *out1 = quick[1].out, *out2 = quick[2].out, *out3 = quick[3].out;
    const unsigned shift = 64 - tree_log;

    for (; n_turns > 0; n_turns--) {
        TAKE_ALL(0);
        TAKE_ALL(1);
        TAKE_ALL(2);
        TAKE_ALL(3);
        if (n_a_turn == TURN_LITERALS)
            TAKE_ALL(4);
        REFILL(0);
        REFILL(1);
        REFILL(2);
        REFILL(3);
    }
    quick[0] = (struct quick_stream){ip0, bits0, out0};
    quick[1] = (struct quick_stream){ip1, bits1, out1};
    quick[2] = (struct quick_stream){ip2, bits2, out2};
    quick[3] = (struct quick_stream){ip3, bits3, out3};
}

#undef TAKE
#undef TAKE_ALL
#undef REFILL

TARGET static void four_streams(const struct wharf_zstd_tables *tables,
                                struct wharf_zstd_stream streams[4])
{
    struct quick_stream quick[4];
    bool is_long = tables->tree_log > 11;
    size_t n_turns;

    for (unsigned i = 0; i < 4; i++)
        if (streams[i].bits.n_left < 64)
            return;
    for (unsigned i = 0; i < 4; i++)
        quick_stream_init(&quick[i], &streams[i]);
    while ((n_turns = turns_left(quick, streams, is_long ? TURN_LONG_LITERALS : TURN_LITERALS))) {
        if (is_long)
            take_turns(tables->tree, tables->tree_log, quick, n_turns, TURN_LONG_LITERALS);
        else
            take_turns(tables->tree, tables->tree_log, quick, n_turns, TURN_LITERALS);
    }
    for (unsigned i = 0; i < 4; i++)
        quick_stream_leave(&quick[i], &streams[i]);
}

/* ---- sequences ------------------------------------------------------------------------------
 *
 * Of the eight bytes at `ip`, read into `bits`, the lowest `n_left` bits are still to be taken, the
 * highest first.  A refill leaves at least 57.  A sequence's offset, match length and literal
 * length have up to 31, 16 and 16 bits more, and its three states up to 9, 9 and 8: where the first
 * three have more than 31, another refill comes in between.  So a sequence takes less than 16
 * bytes, and as long as so many come before them, `ip` stays inside.
 *
 * What limits the loop is how soon the next states are known, so cells are loaded whole, and
 * nothing is kept for going back: where a sequence began follows from what it has taken.
 */
enum { SEQUENCE_IN_NBYTES = 16, SEQUENCE_STATE_NBITS = 9 + 9 + 8 };

/* A struct wharf_zstd_cell in one word. */
TARGET static inline uint64_t load_cell(const struct wharf_zstd_cell *cells, size_t i)
{
    return load_64((const uint8_t *)&cells[i]);
}

#define BASE(cell) ((uint32_t)(cell))
#define NEXT(cell) ((uint16_t)((cell) >> 32))
#define N_BITS(cell) ((uint8_t)((cell) >> 48))
#define N_EXTRA(cell) ((unsigned)((cell) >> 56))

_Static_assert(offsetof(struct wharf_zstd_cell, base) == 0 &&
                   offsetof(struct wharf_zstd_cell, next) == 4 &&
                   offsetof(struct wharf_zstd_cell, n_bits) == 6 &&
                   offsetof(struct wharf_zstd_cell, n_extra) == 7 &&
                   __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the macros know where the members are");

#define REFILL_SEQUENCES()                                                                         \
    do {                                                                                           \
        size_t n_bytes = (64 - n_left) >> 3;                                                       \
        ip -= n_bytes;                                                                             \
        n_left += 8 * n_bytes;                                                                     \
        bits = load_64(ip);                                                                        \
    } while (0)
#define TAKE_BITS(n) LOW_BITS(bits >> ((n_left -= (n)) & 63), n)

/* Matches with room to spare.  Most are short and from afar. */
TARGET static inline void copy_match_quickly(uint8_t *op, size_t distance, size_t length)
{
    const uint8_t *from = op - distance;

    if (__builtin_expect(distance < 16, 0)) {
        wharf_lz_match_quickly(op, distance, length);
        return;
    }
    wharf_lz_copy_16(op, from);
    for (size_t i = 16; i < length; i += 16)
        wharf_lz_copy_16(op + i, from + i);
}

TARGET static void sequences_loop(struct wharf_zstd_walk *walk, struct wharf_zstd_sequences *s)
{
    const struct wharf_zstd_tables *const tables = &walk->tables;
    const uint8_t *const begin = s->bits.begin;
    const uint8_t *const frame_out = walk->out + walk->frame_out;
    const size_t window = (size_t)walk->frame.window_nbytes;
    const uint8_t *const ip_limit = begin + SEQUENCE_IN_NBYTES;
    uint64_t end = (s->bits.n_left + 7) / 8;
    size_t offset_0 = walk->offsets[0], offset_1 = walk->offsets[1], offset_2 = walk->offsets[2];
    size_t literal_state = s->literal_length, offset_state = s->offset,
           match_state = s->match_length;
    const uint8_t *literals = s->literals;
    uint8_t *op = walk->out + walk->n_out;
    size_t room = s->room_nbytes - WHARF_LZ_SPARE_NBYTES;
    uint32_t n = s->n;

    if (end < 8 || s->room_nbytes < WHARF_LZ_SPARE_NBYTES || s->readable_end - literals < 16)
        return;
    const uint8_t *const literals_limit =
        s->readable_end - s->literals_end < 16 ? s->readable_end - 16 : s->literals_end;
    const uint8_t *ip = begin + end - 8;
    uint64_t bits;
    size_t n_left = 64 - (8 * end - s->bits.n_left);

    while (n > 1 && ip >= ip_limit) {
        const uint64_t literal_cell = load_cell(tables->literal_lengths, literal_state);
        const uint64_t offset_cell = load_cell(tables->offsets, offset_state);
        const uint64_t match_cell = load_cell(tables->match_lengths, match_state);

        REFILL_SEQUENCES();
        const size_t offset_bits = TAKE_BITS(N_EXTRA(offset_cell));
        const size_t length = BASE(match_cell) + TAKE_BITS(N_EXTRA(match_cell));
        if (__builtin_expect(N_EXTRA(offset_cell) + N_EXTRA(match_cell) + N_EXTRA(literal_cell) >
                                 57 - SEQUENCE_STATE_NBITS,
                             0))
            REFILL_SEQUENCES();
        const size_t n_literals = BASE(literal_cell) + TAKE_BITS(N_EXTRA(literal_cell));
        if (__builtin_expect((n_literals > (size_t)(literals_limit - literals)) | (length > room),
                             0)) {
            n_left += N_EXTRA(offset_cell) + N_EXTRA(match_cell) + N_EXTRA(literal_cell);
            break;
        }
        literal_state = NEXT(literal_cell) + TAKE_BITS(N_BITS(literal_cell));
        match_state = NEXT(match_cell) + TAKE_BITS(N_BITS(match_cell));
        offset_state = NEXT(offset_cell) + TAKE_BITS(N_BITS(offset_cell));

        if (__builtin_expect(N_EXTRA(offset_cell) > 1, 1)) {
            offset_2 = offset_1;
            offset_1 = offset_0;
            offset_0 = BASE(offset_cell) - 3 + offset_bits;
        } else {
            const size_t which = BASE(offset_cell) + offset_bits - (BASE(literal_cell) != 0);
            if (which != 0) {
                size_t distance = which == 1 ? offset_1 : which == 2 ? offset_2 : offset_0 - 1;
                if (which > 1)
                    offset_2 = offset_1;
                offset_1 = offset_0;
                offset_0 = distance;
            }
        }
        wharf_lz_copy_16(op, literals);
        if (__builtin_expect(n_literals > 16, 0))
            wharf_lz_copy_quickly(op + 16, literals + 16, n_literals - 16);
        literals += n_literals;
        op += n_literals;
        if (__builtin_expect((offset_0 - 1 >= (size_t)(op - frame_out)) | (offset_0 > window), 0)) {
            s->has_bad_offset = true;
            break;
        }
        copy_match_quickly(op, offset_0, length);
        op += length;
        room -= length;
        n--;
    }
    s->bits.n_left = 8 * (uint64_t)(ip - begin) + n_left;
    s->literals = literals;
    s->room_nbytes = room + WHARF_LZ_SPARE_NBYTES;
    s->n = n;
    s->literal_length = (uint32_t)literal_state;
    s->offset = (uint32_t)offset_state;
    s->match_length = (uint32_t)match_state;
    walk->n_out = (size_t)(op - walk->out);
    walk->offsets[0] = (uint32_t)offset_0;
    walk->offsets[1] = (uint32_t)offset_1;
    walk->offsets[2] = (uint32_t)offset_2;
}

#undef REFILL_SEQUENCES
#undef TAKE_BITS
#undef BASE
#undef NEXT
#undef N_BITS
#undef N_EXTRA

const struct wharf_zstd_loops LOOPS = {
    .four_streams = four_streams,
    .sequences = sequences_loop,
};
