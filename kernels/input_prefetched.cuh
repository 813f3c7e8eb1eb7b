/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input_prefetched.cuh: an input stream that a second warp of the block fills, which does nothing
 * else: a baseline to measure, for the serial decoders.
 *
 * The two meet whenever the decoding warp is done with 128 bytes: it asks for the
 * 128 behind those that the other has just finished.  What is asked for stands in one of two places
 * by turns, since the other looks there after a meeting and before the next.
 */
#ifndef WHARF_KERNELS_INPUT_PREFETCHED_CUH
#define WHARF_KERNELS_INPUT_PREFETCHED_CUH

#include "kernels/input_stream.cuh"

namespace wharf
{

/* For both warps: the one place where they meet. */
WHARF_DEVICE_NOINLINE void meet_for_input()
{
    syncblock();
}

struct input_prefetched {
    static constexpr uint32_t RING_NWORDS = 256;
    /* What ensure() can promise, as input_stream says; half of the ring is the other warp's. */
    static constexpr uint32_t MAX_ENSURE_NBITS = 8 * 512 - 31;
    /* Instead of a word's number: the chunk is done with. */
    static constexpr uint32_t NO_MORE = 0xffffffffu;

    struct shared {
        uint32_t ring[RING_NWORDS];
        input_source source;
        uint32_t wanted[2]; /* the first of 32 words, or NO_MORE */
        uint32_t turn;
        uint32_t is_over; /* there are no more chunks */
    };

    input_source source;
    shared *s;
    uint32_t position; /* skewed */
    uint32_t n_filled; /* words that are or have been in the ring; a multiple of 32 */

    /* collective.  Behind begin_prefetch(). */
    WHARF_DEVICE_MEMBER void init(shared &memory, const uint8_t *in, uint32_t in_nbytes)
    {
        source.init(in, in_nbytes);
        s = &memory;
        if (lane_id() == 0)
            s->source = source;
        seek(0);
    }

    /* collective.  Goes on at a position, which may lie past the end, but by less than 2^30. */
    WHARF_DEVICE_MEMBER void seek(uint32_t to)
    {
        position = to + source.skew_nbits();
        n_filled = position >> 5 & ~31u;
        ask(*s, n_filled);
    }

    WHARF_DEVICE_MEMBER uint32_t bit_position() const { return position - source.skew_nbits(); }

    /* Bits between the position and the end; 0 also when the position is past the end. */
    WHARF_DEVICE_MEMBER uint32_t bits_left() const
    {
        return position < 8 * source.end ? 8 * source.end - position : 0;
    }

    /* collective.  A word more than wanted: peek_32 loads 32 bits and a word behind them also where
     * less is wanted, and what is not there yet the other warp may be storing. */
    WHARF_DEVICE_MEMBER void ensure(uint32_t n_bits)
    {
        while ((int32_t)(32 * n_filled - position) <= (int32_t)n_bits + 32) {
            n_filled += 32;
            ask(*s, n_filled);
        }
    }

    /* One lane.  The next n bits, 0 to 32, the first in bit 0, which ensure() has promised. */
    WHARF_DEVICE_MEMBER uint32_t peek_bits(unsigned n) const { return low_bits(peek_32(0), n); }

    /* One lane.  32 bits that begin `ahead` bits behind the position. */
    WHARF_DEVICE_MEMBER uint32_t peek_32(uint32_t ahead) const
    {
        uint32_t p = position + ahead;
        uint32_t i = p >> 5;
        return funnel_right(load(&s->ring[i & (RING_NWORDS - 1)]),
                            load(&s->ring[(i + 1) & (RING_NWORDS - 1)]), p);
    }

    WHARF_DEVICE_MEMBER void skip(uint32_t n_bits) { position += n_bits; }

    /* collective.  ensure, peek_bits and skip in one. */
    WHARF_DEVICE_MEMBER uint32_t fetch_bits(unsigned n)
    {
        ensure(n);
        uint32_t v = peek_bits(n);
        skip(n);
        return v;
    }

    /* collective, for the decoding warp.  What was asked for before is there afterwards. */
    static WHARF_DEVICE_MEMBER void ask(shared &s, uint32_t first)
    {
        syncwarp(); /* all lanes' reads of what is overwritten next */
        if (lane_id() == 0) {
            uint32_t turn = load(&s.turn);
            store(&s.wanted[turn & 1], first);
            store(&s.turn, turn + 1);
        }
        meet_for_input();
    }
};

/* collective, for the decoding warp: a chunk begins. */
WHARF_DEVICE void begin_prefetch(input_prefetched::shared &s)
{
    if (lane_id() == 0) {
        store(&s.turn, 0u);
        store(&s.is_over, 0u);
    }
    meet_for_input();
}

/* collective, for the decoding warp: the chunk is done with. */
WHARF_DEVICE void end_prefetch(input_prefetched::shared &s)
{
    input_prefetched::ask(s, input_prefetched::NO_MORE);
}

/* collective, for the decoding warp, behind its last chunk. */
WHARF_DEVICE void end_all_prefetch(input_prefetched::shared &s)
{
    if (lane_id() == 0)
        store(&s.is_over, 1u);
    meet_for_input();
}

/* collective, for the other warp: all that it does. */
WHARF_DEVICE void prefetch(input_prefetched::shared &s)
{
    for (;;) {
        meet_for_input();
        if (uniform(load(&s.is_over)))
            return;
        for (uint32_t turn = 0;; turn++) {
            meet_for_input();
            uint32_t first = uniform(load(&s.wanted[turn & 1]));
            if (first == input_prefetched::NO_MORE)
                break;
            uint32_t word = s.source.load_word(first + lane_id());
            store(&s.ring[(first + lane_id()) & (input_prefetched::RING_NWORDS - 1)], word);
        }
    }
}

} // namespace wharf

#endif
