/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snappy_decode.cuh: decodes snappy (encoders/snappy/snappy_format.h) on the device: the format for
 * lz_decode.cuh, which has the decoder.
 *
 * A batch of lz_decode.cuh takes common elements, which look() reads and links() finds.  take_one
 * decodes any other element with all checks, the same in all lanes, and alone reports errors.
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

/* One lane.  Reads the element that would begin i bytes after the position.  It is `good` only if
 * it suits a batch: literals with at most one length byte, or a match of kind 1 or 2, whose
 * distance is below 2^16. */
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

/*
 * One lane.  The links (format::links) from four tags, in four bytes at once.  Elements of kinds 1
 * and 2 have 2 and 3 bytes, and n literals, up to 60, have n + 1 bytes.  After more literals it
 * gives no link.
 */
WHARF_DEVICE uint32_t links_of(uint32_t tags)
{
    uint32_t is_literals = ~(tags | tags >> 1) & 0x01010101;
    uint32_t n = tags >> 2 & 0x3f3f3f3f & ((is_literals << 8) - is_literals);
    uint32_t is_far = ((n + 0x04040404) & 0x40404040) << 1;
    uint32_t own = 0x03020100 + 0x04040404 * lane_id();
    return (own + 0x02020202 + n + (tags >> 1 & 0x01010101)) | is_far;
}

/* collective.  Decodes literals; n is the tag's high six bits. */
WHARF_DEVICE uint32_t take_literals(lz::stream &st, uint32_t n)
{
    if (n >= 60) {
        if (lz::bytes_left(st.in) < n - 59)
            return WHARF_REASON_INPUT_TRUNCATED;
        n = uniform(st.in.fetch_bits(8 * (n - 59)));
    }
    /* There are n + 1 literals, which may be 2^32. */
    if (n >= st.out.room())
        return WHARF_REASON_SNAPPY_PAST_END;
    if (n >= lz::bytes_left(st.in))
        return WHARF_REASON_INPUT_TRUNCATED;
    return lz::take_literals(st, n + 1);
}

/* collective.  Decodes a match. */
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

/* The format for lz_decode.cuh.  It has no state. */
struct format {
    /* collective.  Reads the length of the output, to which it limits st.out. */
    WHARF_DEVICE_MEMBER uint32_t begin(lz::stream &st)
    {
        uint32_t length = 0;
        for (unsigned i = 0; i < 5; i++) {
            if (lz::bytes_left(st.in) == 0)
                return WHARF_REASON_INPUT_TRUNCATED;
            uint32_t byte = uniform(st.in.fetch_bits(8));
            if (i == 4 && byte > 15) /* the fifth byte has the upper four bits */
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
        /* A call takes at least the tag's eight bits. */
        if (!st.steps.take(8))
            return WHARF_REASON_STEP_BUDGET;
        if (lz::bytes_left(st.in) == 0)
            return WHARF_REASON_INPUT_TRUNCATED;
        uint32_t tag = uniform(st.in.fetch_bits(8));
        return (tag & 3) == 0 ? snappy::take_literals(st, tag >> 2) : snappy::take_match(st, tag);
    }

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
