/* SPDX-License-Identifier: Apache-2.0 */
/* simt_inflate.cc: a large stream of Deflate, zlib or gzip on the SIMT layer. */
#include "kernels/simt/simt_inflate.h"

#include <string.h>

#include "encoders/wharf_codec.h"
#include "kernels/inflate/inflate_chain.cuh"
#include "kernels/inflate/inflate_crc.cuh"
#include "kernels/inflate/inflate_deliver.cuh"
#include "kernels/inflate/inflate_measure.cuh"
#include "kernels/inflate/inflate_rest.cuh"
#include "kernels/inflate/inflate_windows.cuh"
#include "kernels/simt/simt.h"

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

/* In two slices of the source, as where the second arrives later. */
void find_and_measure(wharf_inflate_job job)
{
    uint32_t n_measured = 0;
    job.end_part = 0;
    for (uint64_t slice = 1; slice <= 2; slice++) {
        job.first_part = job.end_part;
        job.end_part = job.n_found = wharf_inflate_parts_within(&job, job.in_nbytes * slice / 2);
        job.control->n_searched = 0;
        run_blocks<find_shared>(
            job, N_BLOCKS, FIND_WARPS,
            [&](find_shared &s, unsigned warp, uint32_t) { find_parts(s, warp, job); });
        wharf_inflate_job measured = job;
        measured.slice_nbytes = wharf_inflate_measured_slice(&job);
        measured.first_part = n_measured;
        measured.end_part = n_measured = wharf_inflate_parts_behind(&job, job.n_found);
        job.control->n_measured = 0;
        run_warps<measure_shared>(
            job, [&](measure_shared &s, uint32_t warp) { measure_parts(s, measured, warp); });
    }
}

void chain(const wharf_inflate_job &job)
{
    run_blocks<chain_shared>(job, 1, CHAIN_WARPS, [&](chain_shared &s, unsigned warp, uint32_t) {
        chain_parts(s, warp, job);
    });
    run_blocks<nothing>(
        job, job.n_groups, WINDOW_WARPS,
        [&](nothing &, unsigned warp, uint32_t block) { compose_group(job, warp, block); });
    run_blocks<nothing>(job, 1, WINDOW_WARPS,
                        [&](nothing &, unsigned warp, uint32_t) { join_groups(job, warp); });
    run_blocks<nothing>(job, N_BLOCKS, WINDOW_WARPS, [&](nothing &, unsigned warp, uint32_t block) {
        settle_windows(job, warp, block, N_BLOCKS);
    });
}

/* In two pieces of the output. */
template <typename Sum>
void deliver(wharf_inflate_job job)
{
    for (uint32_t piece = 0; piece < 2; piece++) {
        job.first_link = piece ? job.end_link : 0;
        job.end_link = piece ? UINT32_MAX : job.control->n_links / 2;
        job.control->n_delivered = 0;
        run_blocks<deflate_block_shared>(job, job.n_blocks, DEFLATE_BLOCK_WARPS,
                                         [&](deflate_block_shared &s, unsigned warp, uint32_t) {
                                             deliver_links_together<Sum>(s, warp, job);
                                         });
        if (job.n_blocks == 0)
            run_warps<deflate_shared>(
                job, [&](deflate_shared &s, uint32_t) { deliver_links<Sum>(s, job); });
    }
}

template <typename Sum>
void run_all(const wharf_inflate_job &job)
{
    if (job.n_parts > 1) {
        find_and_measure(job);
        chain(job);
        deliver<Sum>(job);
    }
    run_blocks<rest_shared>(job, 1, REST_WARPS, [&](rest_shared &s, unsigned warp, uint32_t) {
        finish_stream<Sum>(s, job, warp);
    });
    if (job.wants_crc)
        run_warps<nothing>(job, [&](nothing &, uint32_t warp) { add_crc(job, warp, N_WARPS); });
}

} // namespace

const struct wharf_inflate_shape wharf_simt_inflate_shape = {
    N_WARPS, N_BLOCKS, N_GROUPS, 0, 16 << 10, 256 << 10, MAX_CHUNK_NBYTES};

void wharf_simt_inflate(const struct wharf_inflate_job *job)
{
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
}
