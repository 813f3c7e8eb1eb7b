/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decoder.cuh: what a device decoder is given and what it gives back.
 *
 * For the codec called `name`, kernels/name/name_decode.cuh defines in namespace wharf:
 *
 *   struct name_shared            its shared memory, one for each warp; a plain struct, may be
 *                                 empty.  Holds arbitrary bytes when a chunk begins.
 *   constexpr size_t NAME_SCRATCH_NBYTES
 *                                 its scratch in global memory, one for each warp; may be 0.
 *   constexpr unsigned NAME_WARPS_PER_SM
 *                                 how many warps should find room on one multiprocessor, 1 to 64:
 *                                 what bounds the registers of a thread (65536 / 32 / this).
 *   WHARF_DEVICE verdict name_decode(name_shared &s, const chunk_job &job)
 *                                 collective.  Decodes one chunk; all lanes return the same.
 *                                 Where shared_among_all<name_shared> is another type, with that
 *                                 as well.
 *
 * A codec may have a decoder for few chunks as well, kernels/name/name_block.cuh, in which all
 * warps of a block decode one chunk together:
 *
 *   struct name_block_shared      its shared memory, one for a block
 *   constexpr unsigned NAME_BLOCK_WARPS
 *   constexpr unsigned NAME_BLOCK_MOST_CHUNKS, NAME_BLOCK_MOST_ITEMS
 *                                 as long as each block that the GPU holds gets no more chunks than
 *                                 that, it is faster than a warp for each: in batches, where a
 *                                 multiprocessor holds two blocks, and in epoch kernels, one.
 *   constexpr uint32_t NAME_BLOCK_MOST_RATIO, NAME_BLOCK_LEAST_NBYTES
 *                                 where blocks get more than a chunk each, a warp is as good for
 *                                 those of more bytes of output for one of input; and where there
 *                                 are more chunks than multiprocessors, for smaller ones.
 *   WHARF_DEVICE verdict name_block_decode(name_block_shared &s, const chunk_job &job)
 *                                 collective, for the block's first warp.  Its scratch is as large
 *                                 as that of name_decode.
 *   WHARF_DEVICE void name_block_help(name_block_shared &s, unsigned warp)
 *                                 collective, for each other warp: does what the first one asks
 *                                 for, in all its chunks.
 *   WHARF_DEVICE void name_block_end(name_block_shared &s)
 *                                 collective, for the first warp, behind its last chunk: now the
 *                                 others return.
 *
 * and the same with `pair` in place of `block` for batches, where two blocks share a
 * multiprocessor.
 *
 * And it may have one for chunks that are as most are, kernels/name/name_quick.cuh:
 *
 *   struct name_quick_shared
 *   constexpr unsigned NAME_QUICK_WARPS_PER_SM
 *   WHARF_DEVICE bool name_quick_decode(name_quick_shared &s, const chunk_job &job,
 *                                       verdict &ret_verdict)
 *                                 collective.  False if it leaves the chunk to name_decode.  It has
 *                                 no scratch.
 *
 * And it may have one for a crew, kernels/name/name_crew.cuh, in which one warp of a block helps
 * the others, its workers, with a chunk each:
 *
 *   struct name_crew_shared       its shared memory, one for a block, and in it
 *   struct name_crew_worker       workers[NAME_CREW_WORKERS], one for each
 *   constexpr unsigned NAME_CREW_WORKERS, NAME_CREW_BLOCKS_PER_SM
 *   WHARF_DEVICE void name_crew_begin(name_crew_shared &s, unsigned warp)
 *                                 for all warps, before anything else.  Synchronises the block.
 *   WHARF_DEVICE verdict name_crew_decode(name_crew_worker &s, const chunk_job &job)
 *                                 collective, for a worker, as name_decode.
 *   WHARF_DEVICE void name_crew_end(name_crew_worker &s)
 *                                 collective, for a worker, behind its last chunk
 *   WHARF_DEVICE void name_crew_help(name_crew_shared &s)
 *                                 collective, for the warp behind the workers: returns when all
 *                                 have ended.
 *
 * A decoder knows neither batches nor blocks nor which warp it is.  Its input is hostile: it
 * stays inside job.in, job.out, its shared memory and its scratch whatever the bytes are, with
 * bounds that it keeps in registers, and it ends after a number of steps that is linear in
 * in_nbytes + out_avail.  It counts them (step_counter), so that a mistake in it ends as well.
 */
#ifndef WHARF_KERNELS_DECODER_CUH
#define WHARF_KERNELS_DECODER_CUH

#include "kernels/warp.cuh"
#include "proto/wharf_result.h"

namespace wharf
{

/*
 * The largest chunk on a device, in or out; the launch layer refuses larger ones.  So positions fit
 * 32 bits, even in bits: counted from an aligned word before the input they are below 2^31 + 2^7,
 * and with a decoder's look-ahead still far below 3 * 2^30, which can mark a position after the
 * end.  The sum of two positions does not fit.
 */
constexpr uint32_t MAX_CHUNK_NBYTES = 1u << 28;

/*
 * THE STEP BUDGET of a chunk.  No correct decoder can exhaust it, whatever the input.  If a decoder
 * stops making progress by mistake, the budget ends the chunk as INTERNAL, STEP_BUDGET, and frees
 * its warp.
 *
 * A decoder takes from the budget in each turn of a loop whose length the input decides. Invariant:
 * for each unit that it takes, the stream has advanced by a bit of input or a byte of output.  So
 * it takes at most 8 * in_nbytes + out_avail in total, and usually much less.  The budget is 1.5
 * times that for input, twice for output, plus a constant for the end of a stream.  Each decoder
 * derives its numbers in a comment.  Loops with a constant bound, and loops that only move output,
 * need not count.
 */
constexpr uint32_t STEPS_PER_INPUT_BYTE = 12;
constexpr uint32_t STEPS_PER_OUTPUT_BYTE = 2;
constexpr uint32_t STEPS_BESIDES = 4096;
static_assert((STEPS_PER_INPUT_BYTE + STEPS_PER_OUTPUT_BYTE) * (uint64_t)MAX_CHUNK_NBYTES +
                  STEPS_BESIDES <=
              0xffffffffu);

WHARF_CONSTEXPR uint32_t step_budget(uint32_t in_nbytes, uint32_t out_avail)
{
    return STEPS_PER_INPUT_BYTE * in_nbytes + STEPS_PER_OUTPUT_BYTE * out_avail + STEPS_BESIDES;
}

/* How a decode can be stopped: when a word in global memory gets a value.  NULL: never. */
struct stop_word {
    const uint64_t *at;
    uint64_t value;
};

/* collective.  Whether the word has the value; sees it after about a microsecond. */
WHARF_DEVICE bool is_stopped(const stop_word &stop)
{
    const uint64_t *at = load(&stop.at);
    uint64_t value = load(&stop.value);
    if (!any_lane(at != nullptr))
        return false;
    uint64_t word = lane_id() == 0 ? load_shared_by_device(at) : 0;
    /* A vote, because the compiler does not consider a shuffle's result uniform (KERNELS.md, rule
     * 9). */
    return any_lane(shfl(word, 0) == value);
}

/*
 * A decoder's shared memory and warps in the kernel of all decoders, where a hungry decoder reduces
 * the warps of all others.  By default the same as in its own kernel.
 */
template <typename Shared>
struct shared_among_all {
    using type = Shared;
    static constexpr unsigned WARPS_PER_SM = 0; /* as many as in its own kernel */
};

/* One chunk.  The same in all lanes. */
struct chunk_job {
    const uint8_t *in; /* any alignment; read as a constant while the kernel runs */
    uint32_t in_nbytes;
    uint8_t *out; /* any alignment; not overlapping `in` */
    uint32_t out_avail;
    uint32_t parameter; /* one of the codec's */
    /* The image of a registered model (struct wharf_model_ops of encoders/codec.h), which counts in
     * the parameter's place; or NULL.  Made by the host: it is not hostile. */
    const uint8_t *model;
    uint8_t *scratch; /* NAME_SCRATCH_NBYTES or more, aligned to 256; arbitrary bytes */
    uint32_t step_budget;
    /* Decoders that can take long check it regularly, and end as stopped(). */
    stop_word stop;
};

/* The rest of a chunk's budget.  The same in all lanes. */
struct step_counter {
    uint32_t left;

    /* collective. */
    WHARF_DEVICE_MEMBER void init(const chunk_job &job) { left = uniform(job.step_budget); }

    /* One lane.  Takes n; false if fewer are left, and then none is left. */
    WHARF_DEVICE_MEMBER bool take(uint32_t n)
    {
        bool enough = n <= left;
        left = enough ? left - n : 0;
        return enough;
    }
};

/* struct wharf_outcome in 32-bit positions.  The same in all lanes. */
struct verdict {
    uint32_t result;
    uint32_t reason;
    uint32_t bit_offset;
    uint32_t in_nbytes;
    uint32_t out_nbytes;
};

WHARF_DEVICE verdict good(uint32_t in_nbytes, uint32_t out_nbytes)
{
    return {WHARF_OK, WHARF_REASON_NONE, 0, in_nbytes, out_nbytes};
}

WHARF_DEVICE verdict bad(uint32_t result, uint32_t reason, uint32_t bit_offset)
{
    return {result, reason, bit_offset, 0, 0};
}

WHARF_DEVICE verdict stopped()
{
    return bad(WHARF_CANCELLED, WHARF_REASON_NONE, 0);
}

} // namespace wharf

#endif
