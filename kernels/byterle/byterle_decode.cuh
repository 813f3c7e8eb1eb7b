/* SPDX-License-Identifier: Apache-2.0 */
/* byterle_decode.cuh: byterle, encoders/byterle/byterle_format.h, on the device. */
#ifndef WHARF_KERNELS_BYTERLE_BYTERLE_DECODE_CUH
#define WHARF_KERNELS_BYTERLE_BYTERLE_DECODE_CUH

#include "kernels/byterle/byterle_groups.cuh"

namespace wharf
{

struct byterle_shared {
};
constexpr size_t BYTERLE_SCRATCH_NBYTES = 0;
constexpr unsigned BYTERLE_WARPS_PER_SM = 32;

/* collective. */
WHARF_DEVICE verdict byterle_decode(byterle_shared &, const chunk_job &job)
{
    output_stream out;
    out.init(job.out, job.out_avail);
    verdict v = byterle::decode_groups(
        job, job.out_avail,
        [&](const input_source &source, uint32_t from, bool is_run, uint32_t n) {
            if (is_run)
                out.write_run<uint8_t>(load_nc(job.in + from), 0, n);
            else
                out.copy_input(source, from, n);
        });
    v.out_nbytes = v.result == WHARF_OK ? out.position : 0;
    return v;
}

} // namespace wharf

#endif
