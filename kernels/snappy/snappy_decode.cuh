/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snappy_decode.cuh: snappy, encoders/snappy/snappy_format.h, on the device.
 *
 * All lanes read the same tags and copy together, as in lz4_decode.cuh.
 */
#ifndef WHARF_KERNELS_SNAPPY_SNAPPY_DECODE_CUH
#define WHARF_KERNELS_SNAPPY_SNAPPY_DECODE_CUH

#include "kernels/lz_device.cuh"

namespace wharf
{

struct snappy_shared {
    lz::input::shared ring;
};
constexpr size_t SNAPPY_SCRATCH_NBYTES = 0;
constexpr unsigned SNAPPY_WARPS_PER_SM = 32;

namespace snappy
{

struct state {
    lz::input in;
    output_stream out; /* which ends where the stream's length says */
    step_counter steps;
};

/* collective.  The length of the output.  Returns a reason. */
WHARF_DEVICE uint32_t take_length(state &s, uint32_t out_avail)
{
    uint32_t length = 0;
    for (unsigned i = 0; i < 5; i++) {
        if (lz::bytes_left(s.in) == 0)
            return WHARF_REASON_INPUT_TRUNCATED;
        uint32_t byte = uniform(s.in.fetch_bits(8));
        if (i == 4 && byte > 15) /* 4 times 7 bits are there */
            return WHARF_REASON_SNAPPY_LENGTH;
        length |= (byte & 127) << 7 * i;
        if (byte < 128)
            break;
    }
    if (length > out_avail)
        return WHARF_REASON_OUTPUT_FULL;
    s.out.avail = length;
    return WHARF_REASON_NONE;
}

/* collective. */
WHARF_DEVICE uint32_t take_literals(state &s, uint32_t n)
{
    if (n >= 60) {
        if (lz::bytes_left(s.in) < n - 59)
            return WHARF_REASON_INPUT_TRUNCATED;
        n = uniform(s.in.fetch_bits(8 * (n - 59)));
    }
    /* One more, which may be 2^32. */
    if (n >= s.out.room())
        return WHARF_REASON_SNAPPY_PAST_END;
    if (n >= lz::bytes_left(s.in))
        return WHARF_REASON_INPUT_TRUNCATED;
    lz::take_literals(s.in, s.out, n + 1);
    return WHARF_REASON_NONE;
}

/* collective. */
WHARF_DEVICE uint32_t take_match(state &s, uint32_t tag)
{
    uint32_t kind = tag & 3;
    bool is_near = kind == 1;
    uint32_t n_bytes = is_near ? 1 : kind == 2 ? 2 : 4;
    uint32_t length = is_near ? 4 + (tag >> 2 & 7) : 1 + (tag >> 2);
    if (lz::bytes_left(s.in) < n_bytes)
        return WHARF_REASON_INPUT_TRUNCATED;
    uint32_t distance = uniform(s.in.fetch_bits(8 * n_bytes)) | (is_near ? (tag >> 5) << 8 : 0);
    if (distance - 1 >= s.out.position)
        return WHARF_REASON_SNAPPY_OFFSET;
    return s.out.copy_match(distance, length) ? WHARF_REASON_NONE : WHARF_REASON_SNAPPY_PAST_END;
}

/* collective.  Returns a reason. */
WHARF_DEVICE uint32_t take_element(state &s)
{
    /* The tag is left behind. */
    if (!s.steps.take(8))
        return WHARF_REASON_STEP_BUDGET;
    if (lz::bytes_left(s.in) == 0)
        return WHARF_REASON_INPUT_TRUNCATED;
    uint32_t tag = uniform(s.in.fetch_bits(8));
    return (tag & 3) == 0 ? take_literals(s, tag >> 2) : take_match(s, tag);
}

} // namespace snappy

/* collective. */
WHARF_DEVICE verdict snappy_decode(snappy_shared &shared, const chunk_job &job)
{
    snappy::state s;
    s.in.init(shared.ring, job.in, job.in_nbytes);
    s.out.init(job.out, job.out_avail);
    s.steps.init(job);
    uint32_t start = 0;
    uint32_t reason = snappy::take_length(s, job.out_avail);
    while (reason == WHARF_REASON_NONE && s.out.room() > 0) {
        start = s.in.bit_position();
        reason = snappy::take_element(s);
    }
    if (reason != WHARF_REASON_NONE)
        return lz::failed(reason, start);
    return good(s.in.bit_position() / 8, s.out.position);
}

} // namespace wharf

#endif
