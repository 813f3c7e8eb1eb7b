/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simt_batch.cc: batches on the SIMT layer, with scratch of its exact size for the sanitizers.
 */
#include "kernels/simt/simt_batch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/batch_warp.cuh"
#include "kernels/simt/simt_blosc.h"

namespace wharf
{
namespace
{

constexpr size_t SCRATCH_ALIGN = 256;

/* Scratch of its exact size, so that the sanitizer sees what goes past it. */
uint8_t *new_scratch(size_t nbytes, uint64_t seed)
{
    void *p;
    if (posix_memalign(&p, SCRATCH_ALIGN, nbytes ? nbytes : 1))
        return nullptr;
    memset(p, (int)(seed * 0x9e3779b97f4a7c15u >> 56), nbytes);
    return static_cast<uint8_t *>(p);
}

/* By the quick decoder, where the codec has one: then its own has what that leaves. */
template <typename Quick>
uint64_t run_quick(wharf_device_batch &batch, batch_control *control, const simt::options &options)
{
    if constexpr (std::is_void<Quick>::value) {
        return 0;
    } else {
        uint64_t n_steps =
            simt::run_warp<typename Quick::shared>(options, [&](typename Quick::shared &s) {
                run_batch_warp<Quick>(s, batch, control, 0, 1, nullptr);
            });
        batch.codec |= WHARF_DEVICE_REST;
        return n_steps;
    }
}

template <typename Codec>
int run(wharf_device_batch batch, const simt::options &options, uint64_t *ret_n_steps)
{
    uint8_t *scratch = new_scratch(Codec::SCRATCH_NBYTES, options.seed);
    if (!scratch)
        return -ENOMEM;
    batch_control control = {};
    uint64_t n_steps = run_quick<typename quick_before<Codec>::type>(batch, &control, options);
    n_steps += simt::run_warp<typename Codec::shared>(options, [&](typename Codec::shared &s) {
        run_batch_warp<Codec>(s, batch, &control, 0, 1, scratch);
    });
    free(scratch);
    if (ret_n_steps)
        *ret_n_steps = n_steps;
    return 0;
}

/* By one block; and by Own what that leaves of several chunks, which wait for it. */
template <typename Codec, typename Own = void>
int run_blocks(wharf_device_batch batch, const simt::options &options, uint64_t *ret_n_steps)
{
    uint8_t *scratch = new_scratch(Codec::SCRATCH_NBYTES, options.seed);
    if (!scratch)
        return -ENOMEM;
    batch_control control = {};
    bool leaves = !std::is_void<Own>::value && batch.n_chunks > 1;
    batch.codec |= leaves ? WHARF_DEVICE_LEAVING : 0;
    uint64_t n_steps = simt::run_block<typename Codec::shared>(
        options, Codec::WARPS, [&](typename Codec::shared &s, unsigned warp) {
            run_batch_block<Codec>(s, batch, &control, 0, 1, warp, scratch);
        });
    if constexpr (!std::is_void<Own>::value) {
        batch.codec = (batch.codec & ~WHARF_DEVICE_KERNEL_BITS) | WHARF_DEVICE_REST;
        if (leaves)
            n_steps += simt::run_warp<typename Own::shared>(options, [&](typename Own::shared &s) {
                run_batch_warp<Own>(s, batch, &control, 0, 1, scratch);
            });
    }
    free(scratch);
    if (ret_n_steps)
        *ret_n_steps = n_steps;
    return 0;
}

template <typename Codec>
int run_crew(const wharf_device_batch &batch, const simt::options &options, uint64_t *ret_n_steps)
{
    constexpr size_t N =
        (Codec::SCRATCH_NBYTES + SCRATCH_ALIGN - 1) / SCRATCH_ALIGN * SCRATCH_ALIGN;
    uint8_t *scratch = new_scratch(Codec::WORKERS * N, options.seed);
    if (!scratch)
        return -ENOMEM;
    batch_control control = {};
    uint64_t n_steps = simt::run_block<typename Codec::all_shared>(
        options, Codec::WORKERS + 1, [&](typename Codec::all_shared &s, unsigned warp) {
            run_batch_crew<Codec>(s, batch, &control, 0, 1, warp, scratch, N);
        });
    free(scratch);
    if (ret_n_steps)
        *ret_n_steps = n_steps;
    return 0;
}

} // namespace
} // namespace wharf

int wharf_simt_can_decode(uint32_t codec)
{
    switch (codec) {
#define X(ID, name) case WHARF_CODEC_##ID:
        WHARF_DEVICE_CODEC_LIST(X)
#undef X
#define X(ID, name)                                                                                \
    case WHARF_DEVICE_SERIAL | WHARF_CODEC_##ID:                                                   \
    case WHARF_DEVICE_SERIAL_REGISTERS | WHARF_CODEC_##ID:                                         \
    case WHARF_DEVICE_SERIAL_PREFETCH | WHARF_CODEC_##ID:
        WHARF_SERIAL_CODEC_LIST(X)
#undef X
#define X(ID, name) case WHARF_DEVICE_BLOCK | WHARF_CODEC_##ID:
        WHARF_BLOCK_CODEC_LIST(X)
#undef X
#define X(ID, name) case WHARF_DEVICE_CREW | WHARF_CODEC_##ID:
        WHARF_CREW_CODEC_LIST(X)
#undef X
#define X(ID, name) case WHARF_DEVICE_INDEXED | WHARF_CODEC_##ID:
        WHARF_INDEXED_CODEC_LIST(X)
#undef X
    case WHARF_CODEC_BLOSC:
        return 1;
    default:
        return 0;
    }
}

uint32_t wharf_simt_step_budget(uint32_t in_nbytes, uint32_t out_avail)
{
    return wharf::step_budget(in_nbytes, out_avail);
}

int wharf_simt_decode_batch(const struct wharf_device_batch *batch, enum wharf_simt_order order,
                            uint64_t seed, uint64_t *ret_n_steps)
{
    static const wharf::simt::lane_order orders[] = {wharf::simt::lane_order::ascending,
                                                     wharf::simt::lane_order::descending,
                                                     wharf::simt::lane_order::random};
    if ((unsigned)order >= sizeof(orders) / sizeof(orders[0]))
        return -EINVAL;
    wharf::simt::options options = {orders[order], seed};
    switch (batch->codec) {
#define X(ID, name)                                                                                \
    case WHARF_CODEC_##ID:                                                                         \
        return wharf::run<wharf::name##_codec>(*batch, options, ret_n_steps);
        WHARF_DEVICE_CODEC_LIST(X)
#undef X
#define X(ID, name)                                                                                \
    case WHARF_DEVICE_SERIAL | WHARF_CODEC_##ID:                                                   \
        return wharf::run<wharf::name##_serial_codec<wharf::serial_ring>>(*batch, options,         \
                                                                          ret_n_steps);            \
    case WHARF_DEVICE_SERIAL_REGISTERS | WHARF_CODEC_##ID:                                         \
        return wharf::run<wharf::name##_serial_codec<wharf::serial_registers>>(*batch, options,    \
                                                                               ret_n_steps);       \
    case WHARF_DEVICE_SERIAL_PREFETCH | WHARF_CODEC_##ID:                                          \
        return wharf::run_blocks<wharf::name##_prefetch_codec>(*batch, options, ret_n_steps);
        WHARF_SERIAL_CODEC_LIST(X)
#undef X
#define X(ID, name)                                                                                \
    case WHARF_DEVICE_BLOCK | WHARF_CODEC_##ID:                                                    \
        return wharf::run_blocks<wharf::name##_block_codec, wharf::name##_codec>(*batch, options,  \
                                                                                 ret_n_steps);
        WHARF_BLOCK_CODEC_LIST(X)
#undef X
#define X(ID, name)                                                                                \
    case WHARF_DEVICE_CREW | WHARF_CODEC_##ID:                                                     \
        return wharf::run_crew<wharf::name##_crew_codec>(*batch, options, ret_n_steps);
        WHARF_CREW_CODEC_LIST(X)
#undef X
#define X(ID, name)                                                                                \
    case WHARF_DEVICE_INDEXED | WHARF_CODEC_##ID:                                                  \
        return wharf::run<wharf::name##_indexed_codec>(*batch, options, ret_n_steps);
        WHARF_INDEXED_CODEC_LIST(X)
#undef X
    case WHARF_CODEC_BLOSC:
        return wharf::simt::decode_blosc(*batch, options, ret_n_steps);
    case WHARF_DEVICE_ANY_CODEC:
        return wharf::run<wharf::any_codec>(*batch, options, ret_n_steps);
    default:
        return -EINVAL;
    }
}
