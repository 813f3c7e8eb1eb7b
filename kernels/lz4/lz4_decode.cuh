/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz4_decode.cuh: decodes lz4 (encoders/lz4/lz4_format.h) on the device: the format for
 * lz_decode.cuh, which has the decoder.
 *
 * A batch of lz_decode.cuh takes common sequences, which look() reads and links() finds.  take_one
 * decodes any other sequence with all checks, the same in all lanes, and alone reports errors.
 */
#ifndef WHARF_KERNELS_LZ4_LZ4_DECODE_CUH
#define WHARF_KERNELS_LZ4_LZ4_DECODE_CUH

#include "kernels/lz_decode.cuh"

namespace wharf
{

using lz4_shared = lz::shared;
constexpr size_t LZ4_SCRATCH_NBYTES = 0;
constexpr unsigned LZ4_WARPS_PER_SM = 32;

namespace lz4
{

/* Above any size, and small enough that adding more length bytes cannot overflow. */
constexpr uint32_t MOST = 1u << 30;
/* Steps of 32 length bytes between two checks whether to stop. */
constexpr uint32_t LENGTH_STEPS_BETWEEN_LOOKS = 256;

/* One lane.  Reads the sequence that would begin i bytes after the position.  It is `good` only if
 * it suits a batch: at most one length byte of literals and four of the match, and not the last
 * one. */
template <typename Input>
WHARF_DEVICE lz::found look(const Input &in, uint32_t i, uint32_t in_left, uint32_t reach)
{
    lz::found f;
    uint32_t word = in.peek_32(8 * i);
    uint32_t token = word & 0xff, more = word >> 8 & 0xff;
    bool has_more = token >> 4 == 15;
    f.n_literals = (token >> 4) + (has_more ? more : 0);
    f.literals = i + 1 + has_more;
    uint32_t offset = f.literals + f.n_literals;
    word = in.peek_32(8 * offset);
    f.distance = word & 0xffff;
    uint32_t lengths = word >> 16 | in.peek_32(8 * (offset + 4)) << 16;
    /* Marks bytes other than 255.  The first of these is the last length byte. */
    uint32_t others = ((~lengths & 0x7f7f7f7f) + 0x7f7f7f7f) | ~lengths;
    unsigned n_full = (unsigned)(ffs(others & 0x80808080) - 1) >> 3; /* huge if there is none */
    bool has_lengths = (token & 15) == 15;
    uint32_t last = n_full < 4 ? lengths >> 8 * n_full & 0xff : 0;
    f.match_length = 4 + (token & 15) + (has_lengths ? 255 * n_full + last : 0);
    f.end = offset + 2 + (has_lengths ? n_full + 1 : 0);
    f.good = !(has_more & (more == 255)) & !(has_lengths & (n_full >= 4)) & (offset + 8 <= reach) &
             (f.end < in_left);
    return f;
}

/* Matches of this length or more have at least two length bytes. */
constexpr uint32_t LONG_MATCH = 4 + 15 + 255;

/* One lane.  The links (format::links), from a full look at each sequence. */
WHARF_DEVICE uint32_t exact_links(const lz::input &in, uint32_t in_left)
{
    uint32_t places = 0;
    WHARF_UNROLL
    for (unsigned k = 0; k < 4; k++) {
        lz::found f = lz4::look(in, 4 * lane_id() + k, in_left, lz::RING_NBYTES);
        bool is_inside = f.good & (f.end < lz::WINDOW_NBYTES);
        places |= (is_inside ? f.end : lz::WINDOW_NBYTES) << 8 * k;
    }
    return places;
}

/* One lane.  The links from tokens and the bytes after them alone.  Guesses that a match has at
 * most one length byte.  After many literals it gives no link.  Wrong guesses cost time only: see
 * lz_find.cuh. */
WHARF_DEVICE uint32_t guess_links(uint32_t tokens, uint32_t mores)
{
    uint32_t n = tokens >> 4 & 0x0f0f0f0f;
    uint32_t has_more = (n + 0x01010101) >> 4 & 0x01010101;
    uint32_t more = mores & ((has_more << 8) - has_more);
    /* Marks counts from 96 on.  Smaller ones give a place, at most 127 + 3 + 15 + 96 + 1, that fits
     * in its byte. */
    uint32_t is_far = (((more & 0x7f7f7f7f) + 0x20202020) | more) & 0x80808080;
    more &= ~(is_far | (is_far - (is_far >> 7)));
    uint32_t n_match = ((tokens & 0x0f0f0f0f) + 0x01010101) >> 4 & 0x01010101;
    uint32_t own = 0x03020100 + 0x04040404 * lane_id();
    return (own + 0x03030303 + n + has_more + more + n_match) | is_far;
}

/* collective.  Adds up length bytes, through the first that is not 255.  Returns a reason. */
WHARF_DEVICE uint32_t add_length_bytes(lz::stream &s, uint32_t &length)
{
    for (uint32_t turn = 1;; turn++) {
        if (turn % LENGTH_STEPS_BETWEEN_LOOKS == 0 && is_stopped(*s.stop))
            return lz::STOPPED;
        /* Each step takes at least one byte of input. */
        if (!s.steps.take(8))
            return WHARF_REASON_STEP_BUDGET;
        s.in.ensure(8 * WARP_LANES);
        uint32_t byte = s.in.peek_32(8 * lane_id()) & 0xff;
        uint32_t others = ballot(byte != 255);
        uint32_t n = others ? ffs(others) - 1 : WARP_LANES;
        uint32_t n_bytes = others ? n + 1 : n;
        if (n_bytes > lz::bytes_left(s.in))
            return WHARF_REASON_INPUT_TRUNCATED;
        length += 255 * n + (others ? shfl(byte, n) : 0);
        length = uniform(length < MOST ? length : MOST);
        s.in.skip(8 * n_bytes);
        if (others)
            return WHARF_REASON_NONE;
    }
}

/* What the rest of the stream depends on.  The same in all lanes. */
struct format {
    uint32_t match = 0; /* position of the last match in the output */
    bool has_match = false;
    bool is_at_end = false; /* the input has ended, after the literals of a sequence */
    bool has_long = false;  /* the last batch had matches that guess_links gets wrong */

    WHARF_DEVICE_MEMBER uint32_t begin(lz::stream &) { return WHARF_REASON_NONE; }

    WHARF_DEVICE_MEMBER bool is_done(const lz::stream &) const { return is_at_end; }

    WHARF_DEVICE_MEMBER void took_batch(uint32_t at, const lz::found &f, bool mine)
    {
        match = at;
        has_match = true;
        has_long = any_lane(mine & (f.match_length >= LONG_MATCH));
    }

    WHARF_DEVICE_MEMBER void took_block(uint32_t at)
    {
        match = at;
        has_match = true;
    }

    WHARF_DEVICE_MEMBER uint32_t take_one(lz::stream &st)
    {
        /* A call takes at least the token's eight bits. */
        if (!st.steps.take(8))
            return WHARF_REASON_STEP_BUDGET;
        if (lz::bytes_left(st.in) == 0)
            return WHARF_REASON_INPUT_TRUNCATED;
        uint32_t token = uniform(st.in.fetch_bits(8));
        uint32_t reason = uniform(take_literals(st, token >> 4));
        if (reason != WHARF_REASON_NONE || is_at_end)
            return reason;
        return take_match(st, token & 15);
    }

    static constexpr bool CYCLES = true;
    static constexpr bool JOINS = false;
    static constexpr uint32_t LONG_OVERLAP = 24;
    static constexpr uint32_t BLOCK_MOST_RATIO = 24;
    static constexpr uint32_t AHEAD_NBYTES = lz::RING_NBYTES;

    WHARF_DEVICE_MEMBER uint32_t links(const lz::input &in, uint32_t in_left) const
    {
        return has_long
                   ? lz4::exact_links(in, in_left)
                   : lz4::guess_links(in.peek_32(32 * lane_id()), in.peek_32(32 * lane_id() + 8));
    }

    template <typename Input>
    static WHARF_DEVICE_MEMBER lz::found look(const Input &in, uint32_t i, uint32_t in_left,
                                              uint32_t reach)
    {
        return lz4::look(in, i, in_left, reach);
    }

  private:
    WHARF_DEVICE_MEMBER uint32_t take_literals(lz::stream &st, uint32_t n)
    {
        if (n == 15) {
            uint32_t reason = uniform(add_length_bytes(st, n));
            if (reason != WHARF_REASON_NONE)
                return reason;
        }
        if (n > lz::bytes_left(st.in))
            return WHARF_REASON_INPUT_TRUNCATED;
        if (n > st.out.room())
            return WHARF_REASON_OUTPUT_FULL;
        uint32_t reason = uniform(lz::take_literals(st, n));
        if (reason != WHARF_REASON_NONE)
            return reason;
        is_at_end = uniform((uint32_t)(st.in.bits_left() == 0)) != 0;
        if (is_at_end && has_match && (n < 5 || st.out.position - match < 12))
            return WHARF_REASON_LZ4_END;
        return WHARF_REASON_NONE;
    }

    WHARF_DEVICE_MEMBER uint32_t take_match(lz::stream &st, uint32_t nibble)
    {
        uint32_t length = nibble + 4;
        if (lz::bytes_left(st.in) < 2)
            return WHARF_REASON_INPUT_TRUNCATED;
        uint32_t distance = uniform(st.in.fetch_bits(16));
        if (distance - 1 >= st.out.position)
            return WHARF_REASON_LZ4_OFFSET;
        if (nibble == 15) {
            uint32_t reason = uniform(add_length_bytes(st, length));
            if (reason != WHARF_REASON_NONE)
                return reason;
        }
        match = st.out.position;
        has_match = true;
        return lz::copy_match(st, distance, length, WHARF_REASON_OUTPUT_FULL);
    }
};

} // namespace lz4

/* collective. */
WHARF_DEVICE verdict lz4_decode(lz4_shared &s, const chunk_job &job)
{
    return lz::decode<lz4::format>(s, job);
}

} // namespace wharf

#endif
