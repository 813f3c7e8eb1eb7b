/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simt_blosc.cc: Blosc's phases on the SIMT layer, each by one warp or block.
 *
 * The stage is as small as one may be for every second seed, so that blocks are cut in pieces.
 */
#include "kernels/simt/simt_blosc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/blosc/blosc_batch.cuh"

namespace wharf
{
namespace simt
{
namespace
{

constexpr uint32_t LARGE_STAGE_NBYTES = 144 << 10;

/* What a block of warps shares. */
template <uint32_t STAGE_NBYTES>
struct order_memory {
    blosc::order_shared own;
    alignas(16) uint8_t stage[STAGE_NBYTES];
};

template <typename Inside>
int decode(const blosc::work &w, const options &opt, uint64_t &n_steps)
{
    void *scratch = nullptr;
    if (posix_memalign(&scratch, 256, Inside::SCRATCH_NBYTES ? Inside::SCRATCH_NBYTES : 1))
        return -ENOMEM;
    memset(scratch, (int)(opt.seed * 0x9e3779b97f4a7c15u >> 56), Inside::SCRATCH_NBYTES);
    n_steps += run_warp<typename Inside::shared>(opt, [&](typename Inside::shared &s) {
        blosc::decode_warp<Inside>(s, w, 0, 1, static_cast<uint8_t *>(scratch));
    });
    free(scratch);
    return 0;
}

template <uint32_t STAGE_NBYTES>
uint64_t order(const blosc::work &w, const options &opt)
{
    using memory = order_memory<STAGE_NBYTES>;
    return run_block<memory>(opt, blosc::ORDER_WARPS, [&](memory &s, unsigned warp) {
        blosc::order_block(s.own, s.stage, w, warp, 0, 1);
    });
}

int run(const blosc::work &w, const options &opt, uint64_t &n_steps)
{
    struct nothing {
    };
    n_steps += run_warp<nothing>(opt, [&](nothing &) { blosc::plan_warp(w, 0, 1); });
    if (int rc = decode<blosc::light>(w, opt, n_steps))
        return rc;
    if (int rc = decode<blosc::of_zlib>(w, opt, n_steps))
        return rc;
    if (int rc = decode<blosc::of_zstd>(w, opt, n_steps))
        return rc;
    if (w.state->totals[blosc::GROUPS] > 0)
        n_steps += w.stage_nbytes == LARGE_STAGE_NBYTES ? order<LARGE_STAGE_NBYTES>(w, opt)
                                                        : order<blosc::STAGE_LEAST_NBYTES>(w, opt);
    n_steps += run_warp<nothing>(opt, [&](nothing &) { blosc::settle_warp(w, 0, 1); });
    return 0;
}

} // namespace

int decode_blosc(const wharf_device_batch &batch, const options &opt, uint64_t *ret_n_steps)
{
    size_t nbytes = blosc::work_nbytes(batch.n_chunks);
    void *memory = nullptr;
    uint64_t n_steps = 0;
    if (posix_memalign(&memory, 256, nbytes))
        return -ENOMEM;
    memset(memory, (int)(opt.seed * 0x9e3779b97f4a7c15u >> 56), nbytes);
    memset(memory, 0, sizeof(blosc::control));
    blosc::work w = blosc::lay_out(static_cast<uint8_t *>(memory), batch.n_chunks);
    memcpy(w.chunks, batch.chunks, batch.n_chunks * sizeof(*batch.chunks));
    w.outcomes = batch.outcomes;
    w.stage_nbytes = opt.seed % 2 ? LARGE_STAGE_NBYTES : blosc::STAGE_LEAST_NBYTES;
    int rc = batch.n_chunks ? run(w, opt, n_steps) : 0;
    free(memory);
    if (rc == 0 && ret_n_steps)
        *ret_n_steps = n_steps;
    return rc;
}

} // namespace simt
} // namespace wharf
