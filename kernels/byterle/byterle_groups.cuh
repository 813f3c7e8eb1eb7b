/* SPDX-License-Identifier: Apache-2.0 */
/*
 * byterle_groups.cuh: the groups of byterle, encoders/byterle/byterle_format.h, for it and boolrle.
 */
#ifndef WHARF_KERNELS_BYTERLE_BYTERLE_GROUPS_CUH
#define WHARF_KERNELS_BYTERLE_BYTERLE_GROUPS_CUH

#include "kernels/rle_device.cuh"

namespace wharf
{
namespace byterle
{

/*
 * collective.  All groups of an input, one after the other.  A group's n bytes are at `at`, or the
 * one there n times: put(source, at, is_run, n) makes something of them, if at most `room` bytes
 * have been there in all.  Of a good stream, out_nbytes is for the caller to fill in.
 */
template <typename Put>
WHARF_DEVICE verdict decode_groups(const chunk_job &job, uint32_t room, Put put)
{
    input_source source;
    step_counter steps;
    source.init(job.in, job.in_nbytes);
    steps.init(job);
    uint32_t at = 0;
    for (uint32_t turn = 1; at < job.in_nbytes; turn++) {
        /* A group is two bytes of input at least. */
        if (!steps.take(16))
            return rle::failed(WHARF_REASON_STEP_BUDGET, 8 * at);
        uint32_t control = uniform(load_nc(job.in + at));
        bool is_run = control < 128;
        uint32_t n = is_run ? control + 3 : 256 - control;
        uint32_t body_nbytes = is_run ? 1 : n;
        if (body_nbytes >= job.in_nbytes - at)
            return rle::failed(WHARF_REASON_INPUT_TRUNCATED, 8 * at);
        if (n > room)
            return rle::failed(WHARF_REASON_OUTPUT_FULL, 8 * at);
        put(source, at + 1, is_run, n);
        room -= n;
        at += 1 + body_nbytes;
        if (rle::is_stopped_at_turn(job, turn))
            return stopped();
    }
    return good(at, 0);
}

} // namespace byterle
} // namespace wharf

#endif
