/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz4_decode.cuh: lz4, encoders/lz4/lz4_format.h, on the device.
 *
 * All lanes read the same tokens and copy together: a short sequence's literals and match at once,
 * a byte a lane; of others, literals and matches of up to 32 bytes likewise, longer ones by words.
 */
#ifndef WHARF_KERNELS_LZ4_LZ4_DECODE_CUH
#define WHARF_KERNELS_LZ4_LZ4_DECODE_CUH

#include "kernels/lz_device.cuh"

namespace wharf
{

struct lz4_shared {
    lz::input::shared ring;
};
constexpr size_t LZ4_SCRATCH_NBYTES = 0;
constexpr unsigned LZ4_WARPS_PER_SM = 32;

namespace lz4
{

/* Above any size, and far from overflow when more length bytes are added. */
constexpr uint32_t MOST = 1u << 30;

struct state {
    lz::input in;
    output_stream out;
    step_counter steps;
    uint32_t match; /* where the last one was written to */
    bool has_match;
    bool is_at_end; /* the input ended with the literals of a sequence */
};

/* collective.  Adds up length bytes, up to the first that is not 255.  Returns a reason. */
WHARF_DEVICE uint32_t add_length_bytes(state &s, uint32_t &length)
{
    for (;;) {
        /* At least one byte is left behind. */
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
        length = length < MOST ? length : MOST;
        s.in.skip(8 * n_bytes);
        if (others)
            return WHARF_REASON_NONE;
    }
}

/* collective. */
WHARF_DEVICE uint32_t take_literals(state &s, uint32_t n)
{
    if (n == 15) {
        uint32_t reason = add_length_bytes(s, n);
        if (reason != WHARF_REASON_NONE)
            return reason;
    }
    if (n > lz::bytes_left(s.in))
        return WHARF_REASON_INPUT_TRUNCATED;
    if (n > s.out.room())
        return WHARF_REASON_OUTPUT_FULL;
    lz::take_literals(s.in, s.out, n);
    s.is_at_end = s.in.bits_left() == 0;
    if (s.is_at_end && s.has_match && (n < 5 || s.out.position - s.match < 12))
        return WHARF_REASON_LZ4_END;
    return WHARF_REASON_NONE;
}

/* collective. */
WHARF_DEVICE uint32_t take_match(state &s, uint32_t nibble)
{
    uint32_t length = nibble + 4;
    if (lz::bytes_left(s.in) < 2)
        return WHARF_REASON_INPUT_TRUNCATED;
    uint32_t distance = uniform(s.in.fetch_bits(16));
    if (distance - 1 >= s.out.position)
        return WHARF_REASON_LZ4_OFFSET;
    if (nibble == 15) {
        uint32_t reason = add_length_bytes(s, length);
        if (reason != WHARF_REASON_NONE)
            return reason;
    }
    s.match = s.out.position;
    s.has_match = true;
    return s.out.copy_match(distance, length) ? WHARF_REASON_NONE : WHARF_REASON_OUTPUT_FULL;
}

/* A sequence without length bytes has at most so many bytes of input, and no more output than there
 * are lanes. */
constexpr uint32_t SHORT_NBYTES = 1 + 14 + 2;
static_assert(14 + 18 == WARP_LANES);

/*
 * collective.  Most sequences: one without length bytes, that is not the last, in one go, a byte a
 * lane.  False, with nothing done, where it is another one, or not in order.
 */
WHARF_DEVICE bool take_short_sequence(state &s)
{
    if (lz::bytes_left(s.in) <= SHORT_NBYTES || s.out.room() < WARP_LANES)
        return false;
    s.in.ensure(8 * SHORT_NBYTES);
    uint32_t token = uniform(s.in.peek_bits(8));
    uint32_t n = token >> 4, length = (token & 15) + 4;
    if (n == 15 || length == 19)
        return false;
    uint32_t distance = uniform(s.in.peek_32(8 + 8 * n) & 0xffff);
    uint32_t at = s.out.position;
    if (distance - 1 >= at + n || !s.steps.take(8))
        return false;
    uint32_t lane = lane_id();
    uint32_t literal = s.in.peek_32(8 + 8 * lane) & 0xff;
    /* Where this lane's byte of the match comes from, counted from the first literal. */
    uint32_t nth = lane - n;
    if (distance < length)
        nth %= distance;
    uint32_t from = n - distance + nth;
    /* What was written before, before it is read. */
    syncwarp();
    uint32_t among = shfl(literal, from);
    if (lane >= n && lane < n + length)
        literal = from < n ? among : load(s.out.out + (at + from));
    if (lane < n + length)
        store(s.out.out + at + lane, (uint8_t)literal);
    s.match = at + n;
    s.has_match = true;
    s.out.position = at + n + length;
    s.in.skip(8 * (3 + n));
    return true;
}

/* collective.  Returns a reason. */
WHARF_DEVICE uint32_t take_sequence(state &s)
{
    /* The token is left behind. */
    if (!s.steps.take(8))
        return WHARF_REASON_STEP_BUDGET;
    if (lz::bytes_left(s.in) == 0)
        return WHARF_REASON_INPUT_TRUNCATED;
    uint32_t token = uniform(s.in.fetch_bits(8));
    uint32_t reason = take_literals(s, token >> 4);
    if (reason != WHARF_REASON_NONE || s.is_at_end)
        return reason;
    return take_match(s, token & 15);
}

} // namespace lz4

/* collective. */
WHARF_DEVICE verdict lz4_decode(lz4_shared &shared, const chunk_job &job)
{
    lz4::state s;
    s.in.init(shared.ring, job.in, job.in_nbytes);
    s.out.init(job.out, job.out_avail);
    s.steps.init(job);
    s.match = 0;
    s.has_match = s.is_at_end = false;
    uint32_t start, reason;
    do {
        start = s.in.bit_position();
        reason = lz4::take_short_sequence(s) ? (uint32_t)WHARF_REASON_NONE : lz4::take_sequence(s);
    } while (reason == WHARF_REASON_NONE && !s.is_at_end);
    if (reason != WHARF_REASON_NONE)
        return lz::failed(reason, start);
    return good(job.in_nbytes, s.out.position);
}

} // namespace wharf

#endif
