/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather_chunks.cuh: the chunks of a batch from a program's arrays, and what the CPU engine would
 * refuse before it decodes (encoders/decode_job.c).
 *
 * Arrays are read once, here.  Nothing waits for anything: a lane makes a chunk.
 */
#ifndef WHARF_KERNELS_GATHER_CHUNKS_CUH
#define WHARF_KERNELS_GATHER_CHUNKS_CUH

#include "kernels/device_arrays.h"
#include "kernels/device_batch.h"
#include "kernels/warp.cuh"

namespace wharf
{

/* One lane.  Why nbytes at p cannot be one object, or NONE. */
WHARF_DEVICE uint32_t flaw_of_range(const void *p, uint64_t nbytes)
{
    if (nbytes == 0)
        return WHARF_REASON_NONE;
    if (!p)
        return WHARF_REASON_REQUEST_NULL;
    if (nbytes > (uint64_t)INT64_MAX)
        return WHARF_REASON_REQUEST_SIZE;
    if (nbytes - 1 > UINT64_MAX - reinterpret_cast<uint64_t>(p))
        return WHARF_REASON_REQUEST_RANGE;
    return WHARF_REASON_NONE;
}

/* One lane.  The same of a source and a destination, which must not share a byte. */
WHARF_DEVICE uint32_t flaw_of_ranges(const uint8_t *in, uint64_t in_nbytes, const uint8_t *out,
                                     uint64_t out_avail)
{
    uint32_t reason = flaw_of_range(in, in_nbytes);
    uint64_t from = reinterpret_cast<uint64_t>(in), to = reinterpret_cast<uint64_t>(out);
    if (reason == WHARF_REASON_NONE)
        reason = flaw_of_range(out, out_avail);
    if (reason != WHARF_REASON_NONE || in_nbytes == 0 || out_avail == 0)
        return reason;
    bool overlap = from < to ? to - from < in_nbytes : from - to < out_avail;
    return overlap ? WHARF_REASON_REQUEST_OVERLAP : WHARF_REASON_NONE;
}

/* One lane.  Chunk i. */
WHARF_DEVICE wharf_device_chunk gather_chunk(const wharf_device_arrays &arrays, uint32_t i)
{
    wharf_device_chunk chunk = {};
    chunk.in = arrays.in[i];
    chunk.out = arrays.out[i];
    chunk.in_nbytes = arrays.in_nbytes[i];
    chunk.out_avail = arrays.out_avail[i];
    chunk.codec = arrays.codec;
    chunk.flags = arrays.flags;
    chunk.checksum = arrays.checksums ? arrays.checksums[i] : 0;
    chunk.parameter = arrays.parameter;
    chunk.refusal = flaw_of_ranges(chunk.in, chunk.in_nbytes, chunk.out, chunk.out_avail);
    chunk.model = arrays.model;
    return chunk;
}

} // namespace wharf

#endif
