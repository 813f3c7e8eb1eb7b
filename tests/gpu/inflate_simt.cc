/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_simt.cc: kernels/inflate_parts.h on the SIMT layer, beside cuda_batch_simt.cc: kernel
 * after kernel, each block after block.
 */
#include <string.h>

#include "encoders/wharf_codec.h"
#include "kernels/cuda_error.h"
#include "kernels/inflate/inflate_chain.cuh"
#include "kernels/inflate/inflate_deliver.cuh"
#include "kernels/inflate/inflate_measure.cuh"
#include "kernels/inflate/inflate_rest.cuh"
#include "kernels/inflate/inflate_windows.cuh"
#include "kernels/simt/simt.h"
#include "tests/gpu/cuda_batch_simt.h"

using namespace wharf;
using namespace wharf::inflate;

namespace
{

constexpr unsigned N_WARPS = 24, N_BLOCKS = 3, N_GROUPS = 4;

struct nothing {
};

simt::options any_order(const wharf_inflate_job &job, uint32_t number)
{
    return {simt::lane_order::random, job.in_nbytes + number};
}

template <typename Shared, typename F>
void run_blocks(const wharf_inflate_job &job, unsigned n_blocks, unsigned n_warps, const F &f)
{
    for (uint32_t block = 0; block < n_blocks; block++)
        simt::run_block<Shared>(any_order(job, block), n_warps,
                                [&](Shared &s, unsigned warp) { f(s, warp, block); });
}

template <typename Shared, typename F>
void run_warps(const wharf_inflate_job &job, const F &f)
{
    for (uint32_t warp = 0; warp < N_WARPS; warp++)
        simt::run_warp<Shared>(any_order(job, warp), [&](Shared &s) { f(s, warp); });
}

template <typename Sum>
void run_all(const wharf_inflate_job &job)
{
    if (job.n_parts > 1) {
        run_blocks<find_shared>(
            job, N_BLOCKS, FIND_WARPS,
            [&](find_shared &s, unsigned warp, uint32_t) { find_parts(s, warp, job); });
        run_warps<measure_shared>(
            job, [&](measure_shared &s, uint32_t warp) { measure_parts(s, job, warp); });
        run_blocks<chain_shared>(
            job, 1, CHAIN_WARPS,
            [&](chain_shared &s, unsigned warp, uint32_t) { chain_parts(s, warp, job); });
        run_blocks<nothing>(
            job, job.n_groups, WINDOW_WARPS,
            [&](nothing &, unsigned warp, uint32_t block) { compose_group(job, warp, block); });
        run_blocks<nothing>(job, 1, WINDOW_WARPS,
                            [&](nothing &, unsigned warp, uint32_t) { join_groups(job, warp); });
        run_blocks<nothing>(job, N_BLOCKS, WINDOW_WARPS,
                            [&](nothing &, unsigned warp, uint32_t block) {
                                settle_windows(job, warp, block, N_BLOCKS);
                            });
        run_blocks<deflate_block_shared>(job, job.n_blocks, DEFLATE_BLOCK_WARPS,
                                         [&](deflate_block_shared &s, unsigned warp, uint32_t) {
                                             deliver_links_together<Sum>(s, warp, job);
                                         });
        if (job.n_blocks == 0)
            run_warps<deflate_shared>(
                job, [&](deflate_shared &s, uint32_t) { deliver_links<Sum>(s, job); });
    }
    run_blocks<rest_shared>(job, 1, REST_WARPS, [&](rest_shared &s, unsigned warp, uint32_t) {
        finish_stream<Sum>(s, job, warp);
    });
}

int begin_call()
{
    cuda_batch_simt.n_calls++;
    return cuda_batch_simt.failure
               ? wharf_cuda_refuse(cuda_batch_simt.failure, "the test makes this call fail")
               : 0;
}

} // namespace

int wharf_cuda_load_inflate(struct wharf_inflate_shape *ret_shape)
{
    unsigned part = cuda_batch_simt.part_nbytes, most = cuda_batch_simt.most_nbytes;
    unsigned slice = cuda_batch_simt.slice_nbytes;
    *ret_shape = {N_WARPS,
                  N_BLOCKS,
                  N_GROUPS,
                  0,
                  part ? part : 16u << 10,
                  most ? most : 256u << 10,
                  slice ? slice : MAX_CHUNK_NBYTES};
    return begin_call();
}

int wharf_cuda_start_inflate(const struct wharf_inflate_job *job, struct CUstream_st *)
{
    if (int rc = begin_call())
        return rc;
    memset(job->control, 0, sizeof(*job->control));
    switch (job->codec) {
    case WHARF_CODEC_GZIP:
        run_all<crc32_sum>(*job);
        break;
    case WHARF_CODEC_ZLIB:
        run_all<adler32_sum>(*job);
        break;
    default:
        run_all<flate::no_sum>(*job);
    }
    cuda_batch_simt.n_links = job->control->has_failed ? 0 : job->control->n_links;
    return 0;
}
