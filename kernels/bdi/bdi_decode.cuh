/* SPDX-License-Identifier: Apache-2.0 */
/* bdi_decode.cuh: bdi, encoders/line/LINES.md, on the device. */
#ifndef WHARF_KERNELS_BDI_BDI_DECODE_CUH
#define WHARF_KERNELS_BDI_BDI_DECODE_CUH

#include "kernels/line/line_frame.cuh"

namespace wharf
{

using bdi_shared = line_shared<WHARF_CODEC_BDI>;
constexpr size_t BDI_SCRATCH_NBYTES = 0;
constexpr unsigned BDI_WARPS_PER_SM = 32;

/* collective. */
WHARF_DEVICE verdict bdi_decode(bdi_shared &s, const chunk_job &job)
{
    return line_decode<WHARF_CODEC_BDI>(s, job);
}

} // namespace wharf

#endif
