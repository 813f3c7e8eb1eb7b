/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle1_serial.cuh: rle1 as CODAG decodes it, a baseline to measure: a run or a literal a step, all
 * lanes alike.
 */
#ifndef WHARF_KERNELS_RLE1_RLE1_SERIAL_CUH
#define WHARF_KERNELS_RLE1_RLE1_SERIAL_CUH

#include "kernels/rle1/rle1_careful.cuh"

namespace wharf
{

template <typename Input>
struct rle1_serial_shared {
    typename Input::shared input;
};
constexpr unsigned RLE1_SERIAL_WARPS_PER_SM = 32;

namespace rle1
{

template <typename Input>
struct serially {
    template <typename T>
    static WHARF_DEVICE_MEMBER verdict decode(rle1_serial_shared<Input> &s, const chunk_job &job)
    {
        return decode_serially<T, Input>(s.input, job);
    }
};

} // namespace rle1

/* collective. */
template <typename Input>
WHARF_DEVICE verdict rle1_serial_decode(rle1_serial_shared<Input> &s, const chunk_job &job)
{
    using by = rle1::serially<Input>;
    return WHARF_RLE_BY_SIZE(job.parameter, by::template decode, s, job);
}

} // namespace wharf

#endif
