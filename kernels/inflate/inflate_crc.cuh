/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_crc.cuh: the CRC-32 of all that a good stream decoded to, for who wants one besides the
 * stream's own checksums.  Each warp sums an equal piece of the output, moves that on by what is
 * behind it, and adds it by an atomic (inflate_sums.cuh).
 *
 * A kernel of its own, behind the rest: to read the output once more takes a hundredth of a
 * decode's time, and serves all codecs, whatever they sum themselves.
 */
#ifndef WHARF_KERNELS_INFLATE_INFLATE_CRC_CUH
#define WHARF_KERNELS_INFLATE_INFLATE_CRC_CUH

#include "kernels/inflate/inflate_sums.cuh"
#include "kernels/inflate_parts.h"

namespace wharf
{
namespace inflate
{

/* Shorter pieces cost more by their ends than by their bytes. */
constexpr uint64_t LEAST_CRC_NBYTES = 4096, MOST_CRC_NBYTES = (uint64_t)1 << 30;

/* collective.  Warp number `warp` of n_warps.  Whoever writes to the output meanwhile changes the
 * sum alone. */
WHARF_DEVICE void add_crc(const wharf_inflate_job &job, uint32_t warp, uint32_t n_warps)
{
    if (any_lane(load(&job.outcome->result) != WHARF_OK))
        return;
    uint64_t n_out = load(&job.outcome->out_nbytes);
    uint64_t n = (n_out / n_warps + ROUND_NBYTES) / ROUND_NBYTES * ROUND_NBYTES;
    n = n < LEAST_CRC_NBYTES ? LEAST_CRC_NBYTES : n < MOST_CRC_NBYTES ? n : MOST_CRC_NBYTES;
    for (uint64_t at = n * warp; at < n_out; at += n * n_warps) {
        uint32_t nbytes = uniform((uint32_t)(n_out - at < n ? n_out - at : n));
        crc32_sum sum;
        sum.init(uniform_global(job.out + at));
        uint32_t value = sum.finish(nbytes);
        if (lane_id() == 0)
            sum_rules<crc32_sum>::add(&job.control->out_crc, value, nbytes, n_out - at - nbytes);
        syncwarp();
    }
}

} // namespace inflate
} // namespace wharf

#endif
