/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search scans the source in slices that fit the first-level cache, once for each kind of
 * block.
 *
 * Dynamic blocks (RFC 1951, 3.2.7): shifts of one word test the header's first 13 bits at 48
 * positions at once; one position in nine passes.  Next, the code lengths of the code length code
 * must form a complete code; a table sums the code space of four lengths at a time; one position in
 * two hundred passes.  The inflater itself then reads the remaining headers.
 *
 * Stored blocks (RFC 1951, 3.2.4): LEN must be the complement of NLEN, with at least three zero
 * bits in front.  If the input reaches behind the block, a good header must follow it.
 */
#include "encoders/inflate_parallel/block_finder.h"

#include <pthread.h>

#include "encoders/deflate/deflate_format.h"
#include "encoders/deflate/inflate_bits.h"
#include "encoders/deflate/inflate_header.h"

enum {
    SLICE_NBYTES = 8 << 10,
    /* Tests read up to so many bytes behind a position without a bounds check. */
    MARGIN_NBYTES = 24,
    STEP_NBITS = 48,
    /* The code space of a complete code length code. */
    COMPLETE = 1 << WHARF_DEFLATE_MAX_PRECODE_NBITS,
    QUAD_NBITS = 12,
};

/* The code space that four lengths of three bits take. */
static uint16_t quad_space[1 << QUAD_NBITS];

static void make_quad_space(void)
{
    for (unsigned quad = 0; quad < 1u << QUAD_NBITS; quad++)
        for (unsigned i = 0; i < QUAD_NBITS; i += 3)
            if (quad >> i & 7)
                quad_space[quad] += COMPLETE >> (quad >> i & 7);
}

/* Whether the code length code is complete, the header being at bit_pos. */
static bool has_good_precode(const uint8_t *in, uint64_t bit_pos)
{
    const unsigned n = (unsigned)wharf_low_bits(
        wharf_load_le64(in + ((bit_pos + 13) >> 3)) >> ((bit_pos + 13) & 7), 4);
    uint64_t word = wharf_load_le64(in + ((bit_pos + 17) >> 3)) >> ((bit_pos + 17) & 7);
    unsigned space = 0;

    for (word = wharf_low_bits(word, 3 * (n + 4)); word; word >>= QUAD_NBITS)
        space += quad_space[wharf_low_bits(word, QUAD_NBITS)];
    return space == COMPLETE;
}

static bool is_header(struct wharf_inflate *inflate, const uint8_t *in, size_t in_nbytes,
                      uint64_t bit_pos)
{
    wharf_inflate_init(inflate, in, in_nbytes, bit_pos, NULL, 0);
    inflate->in_more = true;
    return wharf_inflate_header(inflate) == WHARF_REASON_NONE;
}

/* By position in the word: no last block, BTYPE 10, HLIT and HDIST not 30 or 31. */
static uint64_t good_beginnings(uint64_t word)
{
    const uint64_t four = word & word >> 1 & word >> 2 & word >> 3;

    return ~word & ~(word >> 1) & word >> 2 & ~(four >> 4) & ~(four >> 9);
}

static bool find_dynamic(struct wharf_inflate *inflate, const uint8_t *in, size_t in_nbytes,
                         uint64_t from, uint64_t to, struct wharf_block_start *ret_start)
{
    for (uint64_t at = from & ~(uint64_t)7; at < to; at += STEP_NBITS) {
        uint64_t good =
            wharf_low_bits(good_beginnings(wharf_load_le64(in + (at >> 3))), STEP_NBITS);
        for (; good; good &= good - 1) {
            uint64_t bit_pos = at + (unsigned)__builtin_ctzll(good);
            if (!has_good_precode(in, bit_pos) || bit_pos < from || bit_pos >= to ||
                !is_header(inflate, in, in_nbytes, bit_pos))
                continue;
            *ret_start = (struct wharf_block_start){bit_pos, bit_pos};
            return true;
        }
    }
    return false;
}

/* Whether the stored block whose LEN is at byte `at` ends before a good header, or behind the
 * input. */
static bool has_follower(struct wharf_inflate *inflate, const uint8_t *in, size_t in_nbytes,
                         size_t at)
{
    uint64_t next = 8 * ((uint64_t)at + 4 + ((unsigned)in[at] | (unsigned)in[at + 1] << 8));

    if (next >= 8 * (uint64_t)in_nbytes)
        return true;
    wharf_inflate_init(inflate, in, in_nbytes, next, NULL, 0);
    uint32_t reason = wharf_inflate_header(inflate);
    return reason == WHARF_REASON_NONE || reason == WHARF_REASON_INPUT_TRUNCATED;
}

static bool find_stored(struct wharf_inflate *inflate, const uint8_t *in, size_t in_nbytes,
                        uint64_t from, uint64_t to, struct wharf_block_start *ret_start)
{
    /* LEN begins 3 to 10 bits after the header's start: 3 header bits, up to 7 of padding. */
    for (size_t at = (from + 3 + 7) >> 3; 8 * (uint64_t)at - 3 < to; at++) {
        uint64_t word = wharf_load_le64(in + at);
        if (((word ^ word >> 16) & 0xffff) != 0xffff || in[at - 1] >> 5)
            continue;
        uint64_t last = 8 * (uint64_t)at - 3;
        uint64_t first = last;
        while (first > from && first > last - 7 && !(in[(first - 1) >> 3] >> ((first - 1) & 7) & 1))
            first--;
        if (!has_follower(inflate, in, in_nbytes, at) || !is_header(inflate, in, in_nbytes, last))
            continue;
        *ret_start = (struct wharf_block_start){first, last};
        return true;
    }
    return false;
}

bool wharf_block_find(struct wharf_inflate *inflate, const uint8_t *in, size_t in_nbytes,
                      uint64_t from_bit, uint64_t to_bit, struct wharf_block_start *ret_start)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_quad_space);
    if (in_nbytes < MARGIN_NBYTES)
        return false;
    if (to_bit > 8 * (uint64_t)(in_nbytes - MARGIN_NBYTES))
        to_bit = 8 * (uint64_t)(in_nbytes - MARGIN_NBYTES);
    for (uint64_t at = from_bit; at < to_bit; at += 8 * SLICE_NBYTES) {
        uint64_t end = at + 8 * SLICE_NBYTES < to_bit ? at + 8 * SLICE_NBYTES : to_bit;
        struct wharf_block_start stored;
        bool has_stored = find_stored(inflate, in, in_nbytes, at, end, &stored);
        if (find_dynamic(inflate, in, in_nbytes, at, has_stored ? stored.first : end, ret_start))
            return true;
        if (has_stored) {
            *ret_start = stored;
            return is_header(inflate, in, in_nbytes, stored.last);
        }
    }
    return false;
}
