/* SPDX-License-Identifier: Apache-2.0 */
/* stored_decode.cuh: bytes as they are, encoders/stored/stored_format.h, on the device. */
#ifndef WHARF_KERNELS_STORED_STORED_DECODE_CUH
#define WHARF_KERNELS_STORED_STORED_DECODE_CUH

#include "kernels/output_stream.cuh"

namespace wharf
{

struct stored_shared {
};
constexpr size_t STORED_SCRATCH_NBYTES = 0;
/* 64 registers a thread: four 16-byte loads and their neighbours on their way at once. */
constexpr unsigned STORED_WARPS_PER_SM = 32;

/* collective. */
WHARF_DEVICE verdict stored_decode(stored_shared &, const chunk_job &job)
{
    input_source source;
    output_stream output;
    source.init(job.in, job.in_nbytes);
    output.init(job.out, job.out_avail);
    if (!output.copy_input(source, 0, job.in_nbytes))
        return bad(WHARF_OUTPUT_TOO_SMALL, WHARF_REASON_OUTPUT_FULL, 8 * job.out_avail);
    return good(job.in_nbytes, job.in_nbytes);
}

} // namespace wharf

#endif
