/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch_warp.cuh: what each warp of a batch's kernel does: takes one chunk after the other until
 * none is left.  The same on the GPU and on the SIMT layer.
 */
#ifndef WHARF_KERNELS_BATCH_WARP_CUH
#define WHARF_KERNELS_BATCH_WARP_CUH

#include "kernels/checksum.cuh"
#include "kernels/device_batch.h"
#include "kernels/device_codec.cuh"
#include "proto/wharf_job.h"

namespace wharf
{

static_assert(WHARF_DEVICE_CHUNK_MAX_NBYTES == MAX_CHUNK_NBYTES);

/* In global memory.  Zero before a batch, and, except for n_rest, after its last warp has left. */
struct batch_control {
    uint32_t n_taken; /* chunks taken beyond each warp's first */
    uint32_t n_left;  /* warps that found nothing more */
    uint32_t n_rest;  /* chunks that a quick decoder left to the one behind it */
};

/*
 * collective.  What the job's flags make of a good decode: wharf_decode_job_settle, on the device.
 */
WHARF_DEVICE verdict settle(const wharf_device_chunk &chunk, const verdict &v)
{
    uint32_t end_bit = 8 * v.in_nbytes;
    if (v.result != WHARF_OK)
        return v;
    if ((chunk.flags & WHARF_JOB_EXACT_INPUT) && v.in_nbytes != chunk.in_nbytes)
        return bad(WHARF_BAD_DATA, WHARF_REASON_INPUT_LEFT, end_bit);
    if ((chunk.flags & WHARF_JOB_EXACT_OUTPUT) && v.out_nbytes != chunk.out_avail)
        return bad(WHARF_OUTPUT_SHORT, WHARF_REASON_OUTPUT_MISSING, end_bit);
    if (chunk.flags & WHARF_JOB_CHECKSUM) {
        crc32_sum sum;
        sum.init(chunk.out);
        if (sum.finish(v.out_nbytes) != chunk.checksum)
            return bad(WHARF_BAD_CHECKSUM, WHARF_REASON_JOB_CHECKSUM, end_bit);
    }
    return v;
}

/* Whether blocks that get so many chunks each leave a chunk to the codec's own decoder.  As long as
 * each gets one, those of long matches are as well off there. */
template <typename Codec>
WHARF_DEVICE bool leaves_chunk(const wharf_device_chunk &chunk, uint32_t n_each)
{
    using leaves = leaves_chunks<Codec>;
    bool are_long = n_each > 1 && chunk.out_avail / leaves::MOST_RATIO > chunk.in_nbytes;
    return leaves::value && (are_long || chunk.out_avail / n_each < leaves::LEAST_NBYTES);
}

/* collective.  One chunk, from its description to its outcome, which lane 0 stores. */
template <typename Codec>
WHARF_DEVICE void decode_chunk(typename Codec::shared &s, const wharf_device_chunk *d_chunk,
                               wharf_outcome *d_outcome, batch_control *control, uint32_t n_each,
                               uint8_t *scratch)
{
    wharf_device_chunk chunk = *d_chunk;
    uint32_t refusal = chunk.refusal ? chunk.refusal : (uint32_t)WHARF_REASON_REQUEST_SIZE;
    verdict v = bad(WHARF_BAD_REQUEST, refusal, 0);
    if (chunk.refusal == 0 && chunk.in_nbytes <= MAX_CHUNK_NBYTES &&
        chunk.out_avail <= MAX_CHUNK_NBYTES) {
        uint32_t in_nbytes = (uint32_t)chunk.in_nbytes, out_avail = (uint32_t)chunk.out_avail;
        uint32_t budget = chunk.step_budget ? chunk.step_budget : step_budget(in_nbytes, out_avail);
        chunk_job job = {chunk.in,    in_nbytes, chunk.out, out_avail, chunk.parameter,
                         chunk.model, scratch,   budget,    {}};
        if (n_each && leaves_chunk<Codec>(chunk, n_each))
            v = bad(WHARF_DEVICE_LEFT, 0, 0);
        else
            v = settle(chunk, Codec::decode(s, chunk.codec, job));
    }
    if (lane_id() == 0) {
        *d_outcome = {v.result, v.reason, v.bit_offset, v.in_nbytes, v.out_nbytes};
        if (leaves_chunks<Codec>::value && v.result == WHARF_DEVICE_LEFT)
            atomic_add(&control->n_rest, 1);
    }
    syncwarp(); /* every lane is done with shared memory and scratch before the next chunk */
}

/* The chunk of the warp that asked for another as number `taken`; n_chunks: none is left.  (n_warps
 * + taken would not fit 32 bits for the last of nearly 2^32 chunks.) */
WHARF_DEVICE uint32_t chunk_taken(uint32_t n_chunks, uint32_t n_warps, uint32_t taken)
{
    return n_warps < n_chunks && taken < n_chunks - n_warps ? n_warps + taken : n_chunks;
}

/* Whether this decoder is behind one that leaves chunks. */
template <typename Codec>
WHARF_DEVICE bool is_behind(const wharf_device_batch &batch)
{
    return (has_quick<Codec> || block_before<Codec>::value) &&
           (batch.codec & WHARF_DEVICE_REST) != 0;
}

/* collective.  Whether chunk i is for this decoder: behind another only what that left is. */
template <typename Codec>
WHARF_DEVICE bool is_for(const wharf_device_batch &batch, uint32_t i)
{
    if (!is_behind<Codec>(batch))
        return true;
    bool is_left = load(&batch.outcomes[i].result) == WHARF_DEVICE_LEFT;
    syncwarp(); /* every lane's load, before lane 0 stores the outcome anew */
    return any_lane(is_left);
}

/*
 * collective.  Warp number `warp` of n_warps, all of which must run; scratch is its own.  Chunks
 * differ much in their work, so after its first a warp takes whatever is next.
 */
template <typename Codec>
WHARF_DEVICE void run_batch_warp(typename Codec::shared &s, const wharf_device_batch &batch,
                                 batch_control *control, uint32_t warp, uint32_t n_warps,
                                 uint8_t *scratch)
{
    if (is_behind<Codec>(batch) && load(&control->n_rest) == 0)
        return;
    /* The chunks that each block gets, if they may leave some. */
    bool may_leave = leaves_chunks<Codec>::value && (batch.codec & WHARF_DEVICE_LEAVING) != 0;
    uint32_t n_each = may_leave ? (batch.n_chunks - 1) / n_warps + 1 : 0;
    /* What is loaded of a chunk is uniform, for the compiler, since its number is. */
    for (uint32_t i = uniform(warp); i < batch.n_chunks;) {
        if (is_for<Codec>(batch, i))
            decode_chunk<Codec>(s, batch.chunks + i, batch.outcomes + i, control, n_each, scratch);
        uint32_t taken = 0;
        if (lane_id() == 0)
            taken = atomic_add(&control->n_taken, 1);
        i = chunk_taken(batch.n_chunks, n_warps, uniform(shfl(taken, 0)));
    }
    if (lane_id() == 0 && atomic_add(&control->n_left, 1) == n_warps - 1) {
        /* All others have taken their last: nobody looks at these until the next batch. */
        store(&control->n_taken, 0u);
        store(&control->n_left, 0u);
    }
}

/* For all warps of block number `block` of n_blocks, each of which takes one chunk after the other;
 * warp is the warp's number in its block. */
template <typename Codec>
WHARF_DEVICE void run_batch_block(typename Codec::shared &s, const wharf_device_batch &batch,
                                  batch_control *control, uint32_t block, uint32_t n_blocks,
                                  unsigned warp, uint8_t *scratch)
{
    warp = uniform(warp);
    if (warp != 0) {
        Codec::help(s, warp);
        return;
    }
    run_batch_warp<Codec>(s, batch, control, block, n_blocks, scratch);
    Codec::end(s);
}

/* For all warps of block number `block` of n_blocks, of which each but the last takes one chunk
 * after the other, and the last one helps them; warp is the warp's number in its block.  Scratch is
 * that of all workers, scratch_nbytes for each. */
template <typename Codec>
WHARF_DEVICE void run_batch_crew(typename Codec::all_shared &s, const wharf_device_batch &batch,
                                 batch_control *control, uint32_t block, uint32_t n_blocks,
                                 unsigned warp, uint8_t *scratch, size_t scratch_nbytes)
{
    warp = uniform(warp);
    Codec::begin(s, warp);
    if (warp == Codec::WORKERS) {
        Codec::help(s);
        return;
    }
    /* The first chunks go to the first warps of all blocks, so that few chunks spread over all
     * multiprocessors. */
    uint32_t number = warp * n_blocks + block;
    run_batch_warp<Codec>(s.workers[warp], batch, control, number, n_blocks * Codec::WORKERS,
                          scratch + number * scratch_nbytes);
    Codec::end(s.workers[warp]);
}

} // namespace wharf

#endif
