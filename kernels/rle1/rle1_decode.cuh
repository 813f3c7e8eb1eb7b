/* SPDX-License-Identifier: Apache-2.0 */
/* rle1_decode.cuh: rle1, encoders/rle1/rle1_format.h, on the device. */
#ifndef WHARF_KERNELS_RLE1_RLE1_DECODE_CUH
#define WHARF_KERNELS_RLE1_RLE1_DECODE_CUH

#include "kernels/rle1/rle1_careful.cuh"

namespace wharf
{

struct rle1_shared {
    input_registers::shared input;
};
constexpr size_t RLE1_SCRATCH_NBYTES = 0;
constexpr unsigned RLE1_WARPS_PER_SM = 32;

namespace rle1
{

template <typename T>
WHARF_DEVICE verdict decode(rle1_shared &s, const chunk_job &job)
{
    return decode_serially<T, input_registers>(s.input, job);
}

} // namespace rle1

/* collective. */
WHARF_DEVICE verdict rle1_decode(rle1_shared &s, const chunk_job &job)
{
    return WHARF_RLE_BY_SIZE(job.parameter, rle1::decode, s, job);
}

} // namespace wharf

#endif
