/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_around.cuh: decodes a whole chunk of Blosc by one warp, around the decoders of a kernel
 * that has those of other codecs: epoch kernels, and the kernel of all codecs.
 *
 * The streams inside are decoded by the same code as chunks of their own codecs, which stands in
 * the kernel once: begin() and next() each say which codec's job is the next, and the kernel's one
 * switch over codecs does it.  What has to be kept meanwhile is in scratch, not in registers.
 */
#ifndef WHARF_KERNELS_BLOSC_BLOSC_AROUND_CUH
#define WHARF_KERNELS_BLOSC_BLOSC_AROUND_CUH

#include "encoders/wharf_codec.h"
#include "kernels/blosc/blosc_filter.cuh"
#include "kernels/blosc/blosc_lz.cuh"
#include "kernels/blosc/blosc_streams.cuh"

namespace wharf
{
namespace blosc
{

/* Instead of a codec's number: blosclz, which is no codec of its own; and the chunk's end. */
constexpr uint32_t CODEC_LZ = 0x10000, CODEC_NONE = 0x10001;

/* In scratch, behind that of the decoders inside. */
struct around {
    chunk_job job;   /* the chunk's */
    chunk_job inner; /* of the stream to be decoded */
    plan p;
    cursor at;
    verdict v; /* of the chunk, once it has ended */
    alignas(16) uint8_t stage[STAGE_LEAST_NBYTES];
};

WHARF_DEVICE uint32_t codec_inside(uint32_t inside)
{
    switch (inside) {
    case WHARF_BLOSC_LZ4:
        return WHARF_CODEC_LZ4;
    case WHARF_BLOSC_SNAPPY:
        return WHARF_CODEC_SNAPPY;
    case WHARF_BLOSC_ZLIB:
        return WHARF_CODEC_ZLIB;
    case WHARF_BLOSC_ZSTD:
        return WHARF_CODEC_ZSTD;
    default:
        return CODEC_LZ;
    }
}

/* collective.  Ends the chunk. */
WHARF_DEVICE uint32_t end_chunk(around &a, const verdict &v)
{
    if (lane_id() == 0)
        a.v = v;
    syncwarp();
    return CODEC_NONE;
}

/* collective.  All streams are there: what is left of a good chunk. */
WHARF_DEVICE verdict undo_all(around &a)
{
    stage st = {a.stage, sizeof(a.stage), a.job.stop};
    for (uint32_t g = 0; g < a.p.n_groups; g++) {
        undo_group(warp_team(), st, a.p, a.job.out, g);
        if (is_stopped(a.job.stop))
            return stopped();
    }
    return good(a.p.in_nbytes, a.p.out_nbytes);
}

/* collective.  Goes on from the cursor c. */
WHARF_DEVICE uint32_t go_on(around &a, cursor c)
{
    bool is_compressed;
    verdict v = find_compressed(a.job, a.p, c, is_compressed);
    syncwarp();
    if (!is_compressed)
        return end_chunk(a, uniform(v.result) == WHARF_OK ? undo_all(a) : v);
    if (lane_id() == 0) {
        a.at = c;
        a.inner = job_inside(a.job, c.pl, c.size);
    }
    syncwarp();
    return codec_inside(a.p.inside);
}

/* collective.  The first codec of a chunk, whose job is a.job. */
WHARF_DEVICE_NOINLINE uint32_t begin(around *scratch)
{
    around &a = *uniform_global(scratch);
    make_plan(a.job, a.p, sizeof(a.stage) - STAGE_SPARE);
    if (a.p.kind == OF_STREAMS)
        return uniform(go_on(a, begin_streams(a.job, a.p, 0, count_planned(a.p))));
    verdict v = a.p.failure;
    for (uint32_t i = 0; i < a.p.n_items && uniform(v.result) == WHARF_OK; i++)
        v = is_stopped(a.job.stop) ? stopped() : put_piece(a.job, a.p, i);
    return end_chunk(a, uniform(v.result) == WHARF_OK ? good(a.p.in_nbytes, a.p.out_nbytes) : v);
}

/* collective.  The next one, behind a stream of this verdict. */
WHARF_DEVICE_NOINLINE uint32_t next(around *scratch, verdict v)
{
    around &a = *uniform_global(scratch);
    cursor c = a.at;
    v = verdict_of_stream(v, c.pl, c.size);
    if (uniform(v.result) != WHARF_OK)
        return end_chunk(a, v);
    leave_stream(a.job, a.p, c);
    return uniform(go_on(a, c));
}

} // namespace blosc
} // namespace wharf

#endif
