/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snappy_decode.cuh: snappy, encoders/snappy/snappy_format.h, on the device, by lz_decode.cuh.
 */
#ifndef WHARF_KERNELS_SNAPPY_SNAPPY_DECODE_CUH
#define WHARF_KERNELS_SNAPPY_SNAPPY_DECODE_CUH

#include "encoders/snappy/snappy_format.h"
#include "kernels/lz_decode.cuh"

namespace wharf
{

using snappy_shared = lz::shared;
constexpr size_t SNAPPY_SCRATCH_NBYTES = 0;
constexpr unsigned SNAPPY_WARPS_PER_SM = 32;

namespace snappy
{

/* One lane.  The element that would begin i bytes behind the position, if it is one for a batch:
 * literals with at most one byte that says how many, or a match less than 2^16 back. */
template <typename Input>
WHARF_DEVICE lz::found look(const Input &in, uint32_t i, uint32_t in_left)
{
    lz::found f;
    uint32_t word = in.peek_32(8 * i);
    uint32_t tag = word & 0xff, more = word >> 8 & 0xff;
    uint32_t kind = tag & 3, n = (tag & 0xff) >> 2;
    bool has_more = n == 60;
    f.good = true;
    f.n_literals = 0;
    f.literals = i + 1 + has_more;
    f.match_length = 1 + n;
    f.distance = word >> 8 & 0xffff;
    f.end = i + 3;
    if (kind == 0) {
        f.n_literals = 1 + (has_more ? more : n);
        f.match_length = 0;
        f.end = f.literals + f.n_literals;
        f.good = n <= 60;
    } else if (kind == 1) {
        f.match_length = 4 + (n & 7);
        f.distance = (tag >> 5) << 8 | more;
        f.end = i + 2;
    } else if (kind == 3) {
        f.good = false;
    }
    f.good &= (f.end <= in_left);
    return f;
}

/* One lane.  As format::links says, of four tags: the kinds of matches that look() takes have 2 and
 * 3 bytes, up to 60 literals one more than these, and behind more no other is looked for. */
WHARF_DEVICE uint32_t links_of(uint32_t tags)
{
    uint32_t is_literals = ~(tags | tags >> 1) & 0x01010101;
    uint32_t n = tags >> 2 & 0x3f3f3f3f & ((is_literals << 8) - is_literals);
    uint32_t is_far = ((n + 0x04040404) & 0x40404040) << 1;
    uint32_t own = 0x03020100 + 0x04040404 * lane_id();
    return (own + 0x02020202 + n + (tags >> 1 & 0x01010101)) | is_far;
}

/* collective.  Literals, of which the tag's high six bits say how many. */
WHARF_DEVICE uint32_t take_literals(lz::stream &st, uint32_t n)
{
    if (n >= 60) {
        if (lz::bytes_left(st.in) < n - 59)
            return WHARF_REASON_INPUT_TRUNCATED;
        n = uniform(st.in.fetch_bits(8 * (n - 59)));
    }
    /* One more, which may be 2^32. */
    if (n >= st.out.room())
        return WHARF_REASON_SNAPPY_PAST_END;
    if (n >= lz::bytes_left(st.in))
        return WHARF_REASON_INPUT_TRUNCATED;
    return lz::take_literals(st, n + 1);
}

/* collective. */
WHARF_DEVICE uint32_t take_match(lz::stream &st, uint32_t tag)
{
    uint32_t kind = tag & 3;
    bool is_near = kind == 1;
    uint32_t n_bytes = is_near ? 1 : kind == 2 ? 2 : 4;
    uint32_t length = is_near ? 4 + (tag >> 2 & 7) : 1 + (tag >> 2);
    if (lz::bytes_left(st.in) < n_bytes)
        return WHARF_REASON_INPUT_TRUNCATED;
    uint32_t distance = uniform(st.in.fetch_bits(8 * n_bytes)) | (is_near ? (tag >> 5) << 8 : 0);
    if (distance - 1 >= st.out.position)
        return WHARF_REASON_SNAPPY_OFFSET;
    return lz::copy_match(st, distance, length, WHARF_REASON_SNAPPY_PAST_END);
}

struct format {
    /* collective.  The length of the output, which st.out is then to hold. */
    WHARF_DEVICE_MEMBER uint32_t begin(lz::stream &st)
    {
        uint32_t length = 0;
        for (unsigned i = 0; i < 5; i++) {
            if (lz::bytes_left(st.in) == 0)
                return WHARF_REASON_INPUT_TRUNCATED;
            uint32_t byte = uniform(st.in.fetch_bits(8));
            if (i == 4 && byte > 15) /* 4 times 7 bits are there */
                return WHARF_REASON_SNAPPY_LENGTH;
            length |= (byte & 127) << 7 * i;
            if (byte < 128)
                break;
        }
        if (length > st.out.avail)
            return WHARF_REASON_OUTPUT_FULL;
        st.out.avail = uniform(length);
        return WHARF_REASON_NONE;
    }

    WHARF_DEVICE_MEMBER bool is_done(const lz::stream &st) const { return st.out.room() == 0; }

    WHARF_DEVICE_MEMBER void took_batch(uint32_t, const lz::found &, bool) {}
    WHARF_DEVICE_MEMBER void took_block(uint32_t) {}

    WHARF_DEVICE_MEMBER uint32_t take_one(lz::stream &st)
    {
        /* The tag is left behind. */
        if (!st.steps.take(8))
            return WHARF_REASON_STEP_BUDGET;
        if (lz::bytes_left(st.in) == 0)
            return WHARF_REASON_INPUT_TRUNCATED;
        uint32_t tag = uniform(st.in.fetch_bits(8));
        return (tag & 3) == 0 ? snappy::take_literals(st, tag >> 2) : snappy::take_match(st, tag);
    }

    /* A tag and the bytes that belong to it. */
    static constexpr bool CYCLES = false;
    static constexpr bool JOINS = true;
    static constexpr uint32_t LONG_OVERLAP = 64;
    static constexpr uint32_t BLOCK_MOST_RATIO = WHARF_SNAPPY_MAX_RATIO;
    static constexpr uint32_t AHEAD_NBYTES = lz::WINDOW_NBYTES + 8;

    WHARF_DEVICE_MEMBER uint32_t links(const lz::input &in, uint32_t) const
    {
        return links_of(in.peek_32(32 * lane_id()));
    }

    template <typename Input>
    static WHARF_DEVICE_MEMBER lz::found look(const Input &in, uint32_t i, uint32_t in_left,
                                              uint32_t)
    {
        return snappy::look(in, i, in_left);
    }
};

} // namespace snappy

/* collective. */
WHARF_DEVICE verdict snappy_decode(snappy_shared &s, const chunk_job &job)
{
    return lz::decode<snappy::format>(s, job);
}

} // namespace wharf

#endif
