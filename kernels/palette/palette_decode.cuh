/* SPDX-License-Identifier: Apache-2.0 */
/* palette_decode.cuh: palette, encoders/line/LINES.md, on the device. */
#ifndef WHARF_KERNELS_PALETTE_PALETTE_DECODE_CUH
#define WHARF_KERNELS_PALETTE_PALETTE_DECODE_CUH

#include "kernels/line/line_frame.cuh"

namespace wharf
{

using palette_shared = line_shared<WHARF_CODEC_PALETTE>;
constexpr size_t PALETTE_SCRATCH_NBYTES = 0;
constexpr unsigned PALETTE_WARPS_PER_SM = 32;

/* collective. */
WHARF_DEVICE verdict palette_decode(palette_shared &s, const chunk_job &job)
{
    return line_decode<WHARF_CODEC_PALETTE>(s, job);
}

} // namespace wharf

#endif
