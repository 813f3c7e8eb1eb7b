/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_shape.cuh: what a kernel around a decoder takes of a multiprocessor. */
#ifndef WHARF_KERNELS_KERNEL_SHAPE_CUH
#define WHARF_KERNELS_KERNEL_SHAPE_CUH

#include "kernels/device_codec.cuh"

namespace wharf
{

WHARF_CONSTEXPR size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/*
 * Four warps a block: blocks of fewer run out of the 32 that a multiprocessor holds, and larger
 * ones leave more of it idle where registers or shared memory do not divide evenly.
 */
template <typename Codec>
struct kernel_shape {
    static constexpr unsigned WARPS = Codec::WARPS_PER_SM < 4 ? Codec::WARPS_PER_SM : 4;
    static constexpr unsigned THREADS = WARPS * 32;
    static constexpr unsigned BLOCKS_PER_SM = Codec::WARPS_PER_SM / WARPS;
    static constexpr size_t SHARED_NBYTES = round_up(sizeof(typename Codec::shared), 128);
    static constexpr size_t SCRATCH_NBYTES = round_up(Codec::SCRATCH_NBYTES, 256);
};

} // namespace wharf

#endif
