/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_walk.cuh: makes the plan of a chunk: reads its header, and then the sizes of all streams,
 * without what is in them.
 *
 * Blocks of a chunk begin where a table says, which is hostile: lanes walk over the streams of 32
 * blocks at a time, and then look, in the order of blocks, whether all streams so far still have
 * fewer bytes than the chunk.  So what is decoded later is linear in the chunk's size, whatever
 * blocks it shares among streams.  Blocks of bitshuffle's framing follow one another: where each
 * begins is noted in its own place in the output, in which nothing is yet.
 */
#ifndef WHARF_KERNELS_BLOSC_BLOSC_WALK_CUH
#define WHARF_KERNELS_BLOSC_BLOSC_WALK_CUH

#include "kernels/blosc/blosc_header.cuh"

namespace wharf
{
namespace blosc
{

/* Rounds of a walk between two looks whether to stop. */
constexpr uint32_t ROUNDS_BETWEEN_LOOKS = 64;
/* For a round, which takes at least the four bytes of a block's start or of a stream's size. */
constexpr uint32_t ROUND_STEPS = 8;

/* What a lane found in a block. */
struct walked {
    uint32_t n_good; /* streams in front of the failure */
    uint32_t reason;
    uint32_t at;      /* of the failure, in the input */
    uint32_t charged; /* bytes of the streams with their sizes, at most those that were left */
};

/* One lane.  The streams of a block, which with their sizes may have left_nbytes. */
WHARF_DEVICE walked walk_block(const uint8_t *in, const plan &p, uint32_t block,
                               uint32_t left_nbytes)
{
    uint32_t start_at = p.header_nbytes + SIZE_NBYTES * block;
    uint32_t streams_at = p.header_nbytes + SIZE_NBYTES * p.n_blocks;
    uint32_t n = block == p.n_blocks - 1 ? p.n_last : p.n_splits;
    uint32_t at = load_le32(in + start_at), end = p.end;
    walked w = {0, WHARF_REASON_NONE, start_at, 0};
    if (at < streams_at || at > end - SIZE_NBYTES || nbytes_of_block(p, block) % n) {
        w.reason = WHARF_REASON_BLOSC_START;
        return w;
    }
    for (; w.n_good < n; w.n_good++) {
        w.at = at;
        w.reason = WHARF_REASON_BLOSC_STREAM;
        if (end - at < SIZE_NBYTES)
            return w;
        uint32_t size = load_le32(in + at);
        at += SIZE_NBYTES;
        /* Minus a byte's value: a run of it, and a byte that says so. */
        bool is_run = size > INT32_MOST;
        if (is_run && (at == end || 0 - size > 255 || !(load_nc(in + at) & 1)))
            return w;
        size = is_run ? 1 : size;
        if (size > end - at)
            return w;
        if (SIZE_NBYTES + size > left_nbytes - w.charged) {
            w.reason = WHARF_REASON_BLOSC_OVERLAP;
            return w;
        }
        w.charged += SIZE_NBYTES + size;
        at += size;
    }
    w.reason = WHARF_REASON_NONE;
    return w;
}

/* collective.  Of the chunk's streams, how many are good, and what is wrong with the next one. */
WHARF_DEVICE void walk_chunk(const chunk_job &job, plan &p)
{
    step_counter steps;
    steps.init(job);
    uint32_t n_blocks = p.n_blocks, n_splits = p.n_splits;
    uint32_t left = p.end - p.header_nbytes - SIZE_NBYTES * n_blocks;
    for (uint32_t first = 0, round = 1; first < n_blocks; first += WARP_LANES, round++) {
        verdict v = good(0, 0);
        if (round % ROUNDS_BETWEEN_LOOKS == 0 && is_stopped(job.stop))
            v = stopped();
        if (!steps.take(ROUND_STEPS))
            v = fail(WHARF_REASON_STEP_BUDGET, 0);
        if (v.result != WHARF_OK) {
            if (lane_id() == 0) {
                p.n_good = first * n_splits;
                p.failure = v;
            }
            syncwarp();
            return;
        }
        uint32_t block = first + lane_id();
        walked w = {0, WHARF_REASON_NONE, 0, 0};
        if (block < n_blocks)
            w = walk_block(job.in, p, block, left);
        syncwarp();
        /* In two halves: the sum of 32 sizes does not fit. */
        uint64_t before =
            ((uint64_t)exclusive_add(w.charged >> 16) << 16) + exclusive_add(w.charged & 0xffff);
        bool is_bad = w.reason != WHARF_REASON_NONE || before + w.charged > left;
        uint32_t wrong = ballot(is_bad);
        if (wrong) {
            if (lane_id() == first_lane(wrong)) {
                w = walk_block(job.in, p, block, left - (uint32_t)before);
                p.n_good = block * n_splits + w.n_good;
                p.failure = fail(w.reason, w.at);
            }
            syncwarp();
            return;
        }
        left -= uniform(shfl((uint32_t)before + w.charged, 31));
    }
    if (lane_id() == 0)
        p.n_good = (n_blocks - 1) * n_splits + p.n_last;
    syncwarp();
}

/* One lane.  Notes where a frame's block begins; and reads it. */
WHARF_DEVICE void note_start(uint8_t *out, uint32_t at)
{
    for (unsigned i = 0; i < SIZE_NBYTES; i++)
        store(out + i, (uint8_t)(at >> 8 * i));
}

WHARF_DEVICE uint32_t load_note(const uint8_t *out)
{
    return load(out) | (uint32_t)load(out + 1) << 8 | (uint32_t)load(out + 2) << 16 |
           (uint32_t)load(out + 3) << 24;
}

/* collective.  The same for a frame, whose elements behind the last block it copies. */
WHARF_DEVICE void walk_frame(const chunk_job &job, plan &p)
{
    step_counter steps;
    steps.init(job);
    uint32_t n_blocks = p.n_blocks, block_nbytes = p.block_nbytes, end = p.end;
    uint32_t at = p.header_nbytes, block = 0;
    verdict v = good(0, 0);
    for (; block < n_blocks; block++) {
        if (block % ROUNDS_BETWEEN_LOOKS == ROUNDS_BETWEEN_LOOKS - 1 && is_stopped(job.stop)) {
            v = stopped();
            break;
        }
        if (!steps.take(ROUND_STEPS)) {
            v = fail(WHARF_REASON_STEP_BUDGET, at);
            break;
        }
        if (end - at < SIZE_NBYTES) {
            v = fail(WHARF_REASON_INPUT_TRUNCATED, at);
            break;
        }
        uint32_t size = uniform(load_be32(job.in + at));
        if (size > end - at - SIZE_NBYTES) {
            v = fail(WHARF_REASON_BLOSC_STREAM, at);
            break;
        }
        if (lane_id() == 0)
            note_start(job.out + block * block_nbytes, at);
        syncwarp();
        at += SIZE_NBYTES + size;
    }
    uint32_t rest = p.out_nbytes % (8 * p.element_nbytes);
    if (v.result == WHARF_OK && end - at < rest)
        v = fail(WHARF_REASON_INPUT_TRUNCATED, at);
    if (v.result == WHARF_OK)
        for (uint32_t i = lane_id(); i < rest; i += WARP_LANES)
            store(job.out + p.out_nbytes - rest + i, load_nc(job.in + at + i));
    syncwarp();
    if (lane_id() == 0) {
        p.n_good = block;
        p.in_nbytes = at + rest;
        p.failure = v;
    }
    syncwarp();
}

/* collective.  The plan of a chunk, in memory that only this warp uses meanwhile.  Groups of blocks
 * have `room` bytes together. */
WHARF_DEVICE void make_plan(const chunk_job &job, plan &p, uint32_t room)
{
    if (lane_id() == 0) {
        p = {};
        if (job.parameter)
            read_frame(job, p);
        else
            read_chunk(job, p);
    }
    syncwarp();
    if (p.kind == OF_STREAMS && p.is_frame)
        walk_frame(job, p);
    else if (p.kind == OF_STREAMS)
        walk_chunk(job, p);
    if (lane_id() == 0)
        cut(p, room);
    syncwarp();
}

} // namespace blosc
} // namespace wharf

#endif
