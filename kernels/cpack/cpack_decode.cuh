/* SPDX-License-Identifier: Apache-2.0 */
/* cpack_decode.cuh: cpack, encoders/line/LINES.md, on the device. */
#ifndef WHARF_KERNELS_CPACK_CPACK_DECODE_CUH
#define WHARF_KERNELS_CPACK_CPACK_DECODE_CUH

#include "kernels/line/line_frame.cuh"

namespace wharf
{

using cpack_shared = line_shared<WHARF_CODEC_CPACK>;
constexpr size_t CPACK_SCRATCH_NBYTES = 0;
constexpr unsigned CPACK_WARPS_PER_SM = 32;

/* collective. */
WHARF_DEVICE verdict cpack_decode(cpack_shared &s, const chunk_job &job)
{
    return line_decode<WHARF_CODEC_CPACK>(s, job);
}

} // namespace wharf

#endif
