/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_shape.cuh: what a kernel around a decoder takes of a multiprocessor. */
#ifndef WHARF_KERNELS_KERNEL_SHAPE_CUH
#define WHARF_KERNELS_KERNEL_SHAPE_CUH

#include <type_traits>

#include "kernels/device_codec.cuh"

namespace wharf
{

WHARF_CONSTEXPR size_t round_up(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* Of a codec's WIDE_WARPS, or 0. */
template <typename Codec, typename = void>
struct wide_warps {
    static constexpr unsigned N = 0;
};
template <typename Codec>
struct wide_warps<Codec, std::void_t<decltype(Codec::WIDE_WARPS)>> {
    static constexpr unsigned N = Codec::WIDE_WARPS;
};

/*
 * Four warps a block: blocks of fewer run out of the 32 that a multiprocessor holds, and larger
 * ones leave more of it idle where registers or shared memory do not divide evenly.
 *
 * Wide blocks have all of a multiprocessor's warps, for batches with several chunks for each warp.
 * A scheduler prefers older blocks' warps, so that with several blocks some warps end their chunks
 * in half the time that others take, and wait at the batch's end; warps of one block it serves
 * alike.
 */
template <typename Codec>
struct kernel_shape {
    static constexpr unsigned WARPS = Codec::WARPS_PER_SM < 4 ? Codec::WARPS_PER_SM : 4;
    static constexpr unsigned WIDE_WARPS = wide_warps<Codec>::N;
    static constexpr unsigned THREADS = (WIDE_WARPS ? WIDE_WARPS : WARPS) * 32;
    static constexpr unsigned BLOCKS_PER_SM = Codec::WARPS_PER_SM * 32 / THREADS;
    static constexpr size_t SHARED_NBYTES = round_up(sizeof(typename Codec::shared), 128);
    static constexpr size_t SCRATCH_NBYTES = round_up(Codec::SCRATCH_NBYTES, 256);
};

} // namespace wharf

#endif
