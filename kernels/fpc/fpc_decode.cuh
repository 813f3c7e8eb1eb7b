/* SPDX-License-Identifier: Apache-2.0 */
/* fpc_decode.cuh: fpc, encoders/line/LINES.md, on the device. */
#ifndef WHARF_KERNELS_FPC_FPC_DECODE_CUH
#define WHARF_KERNELS_FPC_FPC_DECODE_CUH

#include "kernels/line/line_frame.cuh"

namespace wharf
{

using fpc_shared = line_shared<WHARF_CODEC_FPC>;
constexpr size_t FPC_SCRATCH_NBYTES = 0;
constexpr unsigned FPC_WARPS_PER_SM = 32;

/* collective. */
WHARF_DEVICE verdict fpc_decode(fpc_shared &s, const chunk_job &job)
{
    return line_decode<WHARF_CODEC_FPC>(s, job);
}

} // namespace wharf

#endif
