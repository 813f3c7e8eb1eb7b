/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle2_serial.cuh: rle2 as CODAG decodes it, a baseline to measure: a run or a number a step, all
 * lanes alike.
 */
#ifndef WHARF_KERNELS_RLE2_RLE2_SERIAL_CUH
#define WHARF_KERNELS_RLE2_RLE2_SERIAL_CUH

#include "kernels/rle2/rle2_careful.cuh"

namespace wharf
{

template <typename Input>
struct rle2_serial_shared {
    typename Input::shared input;
};
constexpr unsigned RLE2_SERIAL_WARPS_PER_SM = 32;

namespace rle2
{

template <typename Input>
struct serially {
    template <typename T>
    static WHARF_DEVICE_MEMBER verdict decode(rle2_serial_shared<Input> &s, const chunk_job &job)
    {
        return decode_serially<T, Input>(s.input, job);
    }
};

} // namespace rle2

/* collective. */
template <typename Input>
WHARF_DEVICE verdict rle2_serial_decode(rle2_serial_shared<Input> &s, const chunk_job &job)
{
    using by = rle2::serially<Input>;
    return WHARF_RLE_BY_SIZE(job.parameter, by::template decode, s, job);
}

} // namespace wharf

#endif
