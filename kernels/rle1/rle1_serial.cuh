/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle1_serial.cuh: rle1 decoded as in CODAG, as a baseline for measurements: one run or literal a
 * step, the same in all lanes.
 *
 * Source: J. Park et al., "CODAG: Characterizing and Optimizing Decompression Algorithms for GPUs".
 */
#ifndef WHARF_KERNELS_RLE1_RLE1_SERIAL_CUH
#define WHARF_KERNELS_RLE1_RLE1_SERIAL_CUH

#include "kernels/rle1/rle1_exact.cuh"

namespace wharf
{

template <typename Input>
using rle1_serial_shared = rle::serial_shared<Input>;
constexpr unsigned RLE1_SERIAL_WARPS_PER_SM = 32;

/* collective. */
template <typename Input>
WHARF_DEVICE verdict rle1_serial_decode(rle1_serial_shared<Input> &s, const chunk_job &job)
{
    return rle::decode_serial<rle1::serial_decoder>(s, job);
}

} // namespace wharf

#endif
