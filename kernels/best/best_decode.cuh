/* SPDX-License-Identifier: Apache-2.0 */
/* best_decode.cuh: best, encoders/line/LINES.md, on the device. */
#ifndef WHARF_KERNELS_BEST_BEST_DECODE_CUH
#define WHARF_KERNELS_BEST_BEST_DECODE_CUH

#include "kernels/line/line_frame.cuh"

namespace wharf
{

using best_shared = line_shared<WHARF_CODEC_BEST>;
constexpr size_t BEST_SCRATCH_NBYTES = 0;
constexpr unsigned BEST_WARPS_PER_SM = 32;

/* collective. */
WHARF_DEVICE verdict best_decode(best_shared &s, const chunk_job &job)
{
    return line_decode<WHARF_CODEC_BEST>(s, job);
}

} // namespace wharf

#endif
