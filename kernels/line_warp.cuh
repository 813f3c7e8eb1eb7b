/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_warp.cuh: what each warp of a batch of lines to encode does: takes its share of the chunks.
 * The same on the GPU and on the SIMT layer.
 */
#ifndef WHARF_KERNELS_LINE_WARP_CUH
#define WHARF_KERNELS_LINE_WARP_CUH

#include "kernels/decoder.cuh"
#include "kernels/gather_chunks.cuh"
#include "kernels/line/line_encode.cuh"

namespace wharf
{

/* What an encoder stores 16 bytes at a time into. */
constexpr uint64_t LINE_OUT_ALIGN = 16;

/* One lane.  Why a chunk cannot be encoded, or NONE. */
WHARF_DEVICE uint32_t flaw_of_lines(const wharf_device_chunk &chunk)
{
    if (chunk.refusal != WHARF_REASON_NONE)
        return chunk.refusal;
    if (chunk.in_nbytes > MAX_CHUNK_NBYTES)
        return WHARF_REASON_REQUEST_SIZE;
    return reinterpret_cast<uint64_t>(chunk.out) % LINE_OUT_ALIGN ? WHARF_REASON_REQUEST_RANGE
                                                                  : WHARF_REASON_NONE;
}

/* collective.  One chunk: the outcome's out_nbytes are the stream's. */
template <uint32_t CODEC, uint32_t TYPE>
WHARF_DEVICE wharf_outcome encode_lines(line_encode_shared<CODEC, TYPE> &s,
                                        const wharf_device_chunk &chunk,
                                        const wharf_device_lines &lines)
{
    uint32_t flaw = flaw_of_lines(chunk);
    if (flaw != WHARF_REASON_NONE)
        return {WHARF_BAD_REQUEST, flaw, 0, 0, 0};
    /* No stream of such a source is as long: it is not cut off. */
    uint64_t most = 2 * (uint64_t)MAX_CHUNK_NBYTES;
    line_encode_job job = {chunk.in,    (uint32_t)chunk.in_nbytes,
                           chunk.out,   (uint32_t)(chunk.out_avail < most ? chunk.out_avail : most),
                           lines.shift, lines.layout};
    uint32_t nbytes = line_encode<CODEC, TYPE>(s, job);
    if (nbytes == 0)
        return {WHARF_OUTPUT_TOO_SMALL, WHARF_REASON_OUTPUT_FULL, 0, 0, 0};
    return {WHARF_OK, WHARF_REASON_NONE, 0, chunk.in_nbytes, nbytes};
}

/* collective.  Warp number `warp` of n_warps; chunks of a batch are of like size, so each warp's
 * are those that the numbers give it. */
template <uint32_t CODEC, uint32_t TYPE>
WHARF_DEVICE void run_line_warp(line_encode_shared<CODEC, TYPE> &s,
                                const wharf_device_arrays &arrays, const wharf_device_lines &lines,
                                uint32_t warp, uint32_t n_warps)
{
    for (uint64_t i = uniform(warp); i < arrays.n_chunks; i += n_warps) {
        wharf_outcome outcome = encode_lines<CODEC>(s, gather_chunk(arrays, (uint32_t)i), lines);
        if (lane_id() == 0)
            arrays.outcomes[i] = outcome;
        syncwarp(); /* all are done with shared memory */
    }
}

} // namespace wharf

#endif
