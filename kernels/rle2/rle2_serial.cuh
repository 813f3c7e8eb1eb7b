/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle2_serial.cuh: rle2 decoded as in CODAG (rle1_serial.cuh), as a baseline for measurements: one
 * run or number a step, the same in all lanes.
 */
#ifndef WHARF_KERNELS_RLE2_RLE2_SERIAL_CUH
#define WHARF_KERNELS_RLE2_RLE2_SERIAL_CUH

#include "kernels/rle2/rle2_exact.cuh"

namespace wharf
{

template <typename Input>
using rle2_serial_shared = rle::serial_shared<Input>;
constexpr unsigned RLE2_SERIAL_WARPS_PER_SM = 32;

/* collective. */
template <typename Input>
WHARF_DEVICE verdict rle2_serial_decode(rle2_serial_shared<Input> &s, const chunk_job &job)
{
    return rle::decode_serial<rle2::serial_decoder>(s, job);
}

} // namespace wharf

#endif
