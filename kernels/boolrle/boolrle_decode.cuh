/* SPDX-License-Identifier: Apache-2.0 */
/* boolrle_decode.cuh: boolrle, encoders/boolrle/boolrle_format.h, on the device. */
#ifndef WHARF_KERNELS_BOOLRLE_BOOLRLE_DECODE_CUH
#define WHARF_KERNELS_BOOLRLE_BOOLRLE_DECODE_CUH

#include "kernels/byterle/byterle_groups.cuh"

namespace wharf
{

struct boolrle_shared {
};
constexpr size_t BOOLRLE_SCRATCH_NBYTES = 0;
constexpr unsigned BOOLRLE_WARPS_PER_SM = 32;

/* collective.  The last bits may be more than there is room for. */
WHARF_DEVICE verdict boolrle_decode(boolrle_shared &, const chunk_job &job)
{
    uint32_t n_values = 0;
    verdict v = byterle::decode_groups(
        job, (job.out_avail + 7) / 8,
        [&](const input_source &, uint32_t from, bool is_run, uint32_t n) {
            uint32_t left = job.out_avail - n_values;
            uint32_t n_bits = 8 * n < left ? 8 * n : left;
            for (uint32_t i = lane_id(); i < n_bits; i += WARP_LANES) {
                uint32_t bits = load_nc(job.in + from + (is_run ? 0 : i / 8));
                store(job.out + n_values + i, (uint8_t)(bits >> (7 - i % 8) & 1));
            }
            n_values += n_bits;
        });
    v.out_nbytes = v.result == WHARF_OK ? n_values : 0;
    return v;
}

} // namespace wharf

#endif
