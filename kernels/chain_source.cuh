/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain_source.cuh: the source of a chain's chunk, which is made of outputs of earlier batches.
 *
 * A chunk's parts are one source if each is good, lies where the one before it ends, and fills its
 * place, which only the last one need not.  A warp looks at the parts of a chunk, one in each lane
 * at a time.  The earlier batches are done: nothing is written meanwhile.
 *
 * A chunk without such a source has NULL for it, and in the place of its size the outcome that it
 * ends with, as a number that is not 0: a decoder refuses it like any source at NULL, and then its
 * outcome is put right.
 */
#ifndef WHARF_KERNELS_CHAIN_SOURCE_CUH
#define WHARF_KERNELS_CHAIN_SOURCE_CUH

#include "kernels/device_arrays.h"
#include "kernels/device_batch.h"
#include "kernels/warp.cuh"

namespace wharf
{

struct chain_source {
    const uint8_t *in;
    uint64_t in_nbytes;
};

/* One lane.  `number` is that of the part that the outcome is about. */
WHARF_DEVICE chain_source failed_source(uint32_t result, uint32_t reason, uint32_t number)
{
    return {nullptr,
            (uint64_t)(result & 0xffff) << 48 | (uint64_t)(reason & 0xffff) << 32 | number};
}

/* One lane.  The outcome of a chunk whose source is at NULL and has this size, which is not 0. */
WHARF_DEVICE wharf_outcome failure_of(uint64_t in_nbytes)
{
    return {(uint32_t)(in_nbytes >> 48), (uint32_t)(in_nbytes >> 32) & 0xffff, (uint32_t)in_nbytes,
            0, 0};
}

struct chain_part {
    uint64_t begin, end; /* its place */
    uint64_t nbytes;
    uint32_t result;
    bool is_known;
};

/* One lane.  The part at `at` of the order. */
WHARF_DEVICE chain_part part_at(const wharf_device_chain &chain, uint32_t at)
{
    chain_part part = {};
    uint32_t i = chain.order ? chain.order[at] : at;
    part.is_known = i < chain.n_parts;
    if (part.is_known) {
        part.begin = reinterpret_cast<uint64_t>(chain.parts[i]);
        part.end = part.begin + chain.parts_avail[i];
        part.nbytes = chain.outcomes[i].out_nbytes;
        part.result = chain.outcomes[i].result;
    }
    return part;
}

/* One lane.  Why a part cannot be joined to the ones before it, which end at `end`, or NONE. */
WHARF_DEVICE uint32_t flaw_of_part(const chain_part &part, bool is_first, bool is_last,
                                   uint64_t end)
{
    uint64_t avail = part.end - part.begin;
    if (!part.is_known || (!is_first && part.begin != end))
        return WHARF_REASON_CHAIN_PLACE;
    if (part.result != WHARF_OK)
        return WHARF_REASON_CHAIN_PART;
    if (part.nbytes > avail || (part.begin == 0 && avail > 0))
        return WHARF_REASON_CHAIN_PLACE;
    return part.nbytes < avail && !is_last ? WHARF_REASON_CHAIN_GAP : WHARF_REASON_NONE;
}

/* One lane.  The result of a chunk with this flaw in a part that has a result of its own. */
WHARF_DEVICE uint32_t result_of_flaw(uint32_t reason, uint32_t part_result)
{
    return reason == WHARF_REASON_CHAIN_PART  ? part_result
           : reason == WHARF_REASON_CHAIN_GAP ? (uint32_t)WHARF_OUTPUT_SHORT
                                              : (uint32_t)WHARF_BAD_REQUEST;
}

/* collective.  The sum of all lanes' numbers. */
WHARF_DEVICE uint64_t sum_of_lanes(uint64_t v)
{
    for (unsigned step = WARP_LANES / 2; step > 0; step /= 2)
        v += shfl(v, lane_id() ^ step);
    return v;
}

/* collective.  The source of chunk i: what its parts hold, or why it has none. */
WHARF_DEVICE chain_source find_source(const wharf_device_chain &chain, uint32_t i)
{
    uint32_t from = chain.offsets[i], to = chain.offsets[i + 1];
    uint64_t begin = 0, end = 0, nbytes = 0;
    if (from > to || to > chain.n_parts)
        return failed_source(WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_BATCH, 0);
    for (uint32_t base = from; base < to; base += WARP_LANES) {
        uint32_t at = base + lane_id();
        chain_part part = {};
        uint32_t reason = WHARF_REASON_NONE;
        if (at < to)
            part = part_at(chain, at);
        uint64_t end_before = shfl_up(part.end, 1);
        if (at < to)
            reason =
                flaw_of_part(part, at == from, at == to - 1, lane_id() == 0 ? end : end_before);
        if (uint32_t bad = ballot(reason != WHARF_REASON_NONE)) {
            unsigned lane = first_lane(bad);
            uint32_t result = result_of_flaw(reason, part.result);
            return failed_source(shfl(result, lane), shfl(reason, lane), base - from + lane);
        }
        /* More than a chunk can have stays more, and sums of up to 2^30 such parts fit. */
        nbytes += part.nbytes < WHARF_DEVICE_CHUNK_MAX_NBYTES ? part.nbytes
                                                              : WHARF_DEVICE_CHUNK_MAX_NBYTES + 1;
        begin = base == from ? shfl(part.begin, 0) : begin;
        end = shfl(part.end, WARP_LANES - 1);
    }
    nbytes = sum_of_lanes(nbytes);
    return {nbytes > 0 ? reinterpret_cast<const uint8_t *>(begin) : nullptr, nbytes};
}

} // namespace wharf

#endif
