/* SPDX-License-Identifier: Apache-2.0 */
/* rle2_decode.cuh: rle2, encoders/rle2/rle2_format.h, on the device. */
#ifndef WHARF_KERNELS_RLE2_RLE2_DECODE_CUH
#define WHARF_KERNELS_RLE2_RLE2_DECODE_CUH

#include "kernels/rle2/rle2_careful.cuh"

namespace wharf
{

struct rle2_shared {
    input_registers::shared input;
};
constexpr size_t RLE2_SCRATCH_NBYTES = 0;
constexpr unsigned RLE2_WARPS_PER_SM = 32;

namespace rle2
{

template <typename T>
WHARF_DEVICE verdict decode(rle2_shared &s, const chunk_job &job)
{
    return decode_serially<T, input_registers>(s.input, job);
}

} // namespace rle2

/* collective. */
WHARF_DEVICE verdict rle2_decode(rle2_shared &s, const chunk_job &job)
{
    return WHARF_RLE_BY_SIZE(job.parameter, rle2::decode, s, job);
}

} // namespace wharf

#endif
