/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_walk.cuh: walks over a stream's headers, blocks and trailers, from any block on: what
 * measuring, delivering and the rest have in common.
 *
 * Streams are larger than what positions of 32 bits reach.  So a walk looks at a slice of the
 * source from some byte on, of at most slice_nbytes; positions in bits of the stream are made
 * of pointers.
 *
 * A walker W has
 *   st                             flate::state or flate::block_state, aimed at a slice
 *   step_counter steps
 *   const wharf_inflate_job &job
 *   bool pauses(uint64_t bit)      collective.  In front of each block: whether the walk ends here.
 *                                  May aim the state anew.
 *   void begin_member()            collective.  Behind a header.
 *   uint32_t copy_stored(uint32_t nbytes), decode_body()
 *                                  collective.  A block's content; a reason.
 *   verdict end_member(const chunk_job &trailer, uint64_t bit)
 *                                  collective.  Behind the last block of a member; `trailer` is the
 *                                  source from there on, of which no more counts than a trailer.
 *                                  Good, or why not.
 */
#ifndef WHARF_KERNELS_INFLATE_INFLATE_WALK_CUH
#define WHARF_KERNELS_INFLATE_INFLATE_WALK_CUH

#include "encoders/wharf_codec.h"
#include "kernels/deflate/deflate_block.cuh"
#include "kernels/gzip/gzip_decode.cuh"
#include "kernels/inflate_parts.h"
#include "kernels/zlib/zlib_decode.cuh"

namespace wharf
{
namespace inflate
{

/* The source from byte `at` of the stream on, in 32 bits. */
WHARF_DEVICE chunk_job slice_of(const wharf_inflate_job &job, uint64_t at)
{
    chunk_job slice = {};
    uint64_t left = job.in_nbytes - at;
    slice.in = job.in + at;
    slice.in_nbytes = left < job.slice_nbytes ? (uint32_t)left : job.slice_nbytes;
    return slice;
}

/* The position of a state in bits of the stream. */
template <typename St>
WHARF_DEVICE uint64_t bit_of(const wharf_inflate_job &job, const St &st)
{
    return 8 * (uint64_t)(st.source.aligned - job.in) + st.at;
}

/* collective.  Makes a state look at the source from a bit of the stream on. */
template <typename St>
WHARF_DEVICE void aim(const wharf_inflate_job &job, St &st, step_counter &steps, uint64_t bit)
{
    chunk_job slice = slice_of(job, bit / 8);
    st.source.init(uniform_global(slice.in), uniform(slice.in_nbytes));
    st.source.begin = uniform(st.source.begin);
    st.source.end = uniform(st.source.end);
    st.at = uniform(8 * st.source.begin + (uint32_t)(bit & 7));
    st.window = flate::NO_WINDOW;
    steps.left = uniform(step_budget(slice.in_nbytes, 0));
}

/* collective.  What shared memory has of output before, and of tables, is no longer good. */
template <typename St>
WHARF_DEVICE void forget_output(St &st)
{
    syncwarp();
    if (lane_id() == 0)
        store(&st.s().cycle.position, flate::NO_WINDOW);
    syncwarp();
}

/* collective.  A state that has looked at nothing yet. */
template <typename P>
WHARF_DEVICE void begin_state(const wharf_inflate_job &job, flate::state<P> &st,
                              flate::shared<P> &s)
{
    chunk_job chunk = {};
    chunk.stop = {job.stop, job.stop_value};
    st.ref.init(s);
    if (lane_id() == 0)
        begin_shared(s, chunk);
    syncwarp();
}

/* collective, for the first warp of a block. */
template <typename P>
WHARF_DEVICE void begin_state(const wharf_inflate_job &job, flate::block_state<P> &st,
                              flate::block_shared<P> &s)
{
    begin_state(job, static_cast<flate::state<typename P::one> &>(st), s.one);
    st.all.init(s);
}

/* collective.  The header at a byte of the stream: good with its size, or why not. */
WHARF_DEVICE verdict read_header_at(const wharf_inflate_job &job, uint64_t at)
{
    if (job.codec == WHARF_CODEC_DEFLATE)
        return good(0, 0);
    chunk_job slice = slice_of(job, at);
    if (job.codec == WHARF_CODEC_ZLIB) {
        verdict v = zlib_read_header(slice);
        return {uniform(v.result), uniform(v.reason), 0, uniform(v.in_nbytes), 0};
    }
    gzip::header h = gzip::read_header(slice, 0);
    uint32_t reason = uniform(h.reason);
    return reason == WHARF_REASON_NONE ? good(uniform(h.end), 0) : bad(WHARF_BAD_DATA, reason, 0);
}

WHARF_DEVICE uint32_t trailer_nbytes(uint32_t codec)
{
    return codec == WHARF_CODEC_GZIP   ? WHARF_GZIP_TRAILER_NBYTES
           : codec == WHARF_CODEC_ZLIB ? WHARF_ZLIB_TRAILER_NBYTES
                                       : 0;
}

/* The checksum in a trailer that is there. */
WHARF_DEVICE uint32_t trailer_sum(uint32_t codec, const uint8_t *trailer)
{
    uint32_t v = gzip::load_32(trailer);
    return codec == WHARF_CODEC_GZIP ? v : byte_perm(v, 0, 0x0123);
}

/* A member's trailer, as gzip_decode and zlib_decode judge it. */
WHARF_DEVICE verdict judge_trailer(uint32_t codec, const chunk_job &trailer, uint32_t sum,
                                   uint64_t nbytes)
{
    uint32_t reason = WHARF_REASON_NONE;
    if (codec == WHARF_CODEC_GZIP)
        reason = gzip::check_trailer(trailer, 0, sum, (uint32_t)nbytes);
    else if (codec == WHARF_CODEC_ZLIB)
        reason = trailer.in_nbytes < WHARF_ZLIB_TRAILER_NBYTES ? WHARF_REASON_INPUT_TRUNCATED
                 : trailer_sum(codec, trailer.in) != sum       ? WHARF_REASON_ZLIB_CHECKSUM
                                                               : WHARF_REASON_NONE;
    reason = uniform(reason);
    if (reason == WHARF_REASON_NONE)
        return good(0, 0);
    return bad(reason == WHARF_REASON_INPUT_TRUNCATED ? WHARF_BAD_DATA : WHARF_BAD_CHECKSUM, reason,
               0);
}

enum class walk_end { paused, over, bad };

/* The same in all lanes. */
struct walk_result {
    walk_end end;
    uint32_t result, reason; /* if bad */
    uint64_t bit;            /* where it ended, or what is bad */
};

WHARF_DEVICE walk_result bad_walk(const verdict &v, uint64_t bit)
{
    return {walk_end::bad, v.result, v.reason, bit};
}

/* collective.  The blocks of a member, from the state's position on, to the byte behind them. */
template <typename W>
WHARF_DEVICE walk_result walk_blocks(W &w)
{
    flate::block b;
    do {
        uint64_t bit = bit_of(w.job, w.st);
        if (w.pauses(bit))
            return {walk_end::paused, 0, 0, bit};
        if (!w.steps.take(flate::BLOCK_STEPS))
            return bad_walk(flate::bad_stream(WHARF_REASON_STEP_BUDGET, 0), bit);
        if (w.st.is_stopped())
            return bad_walk(stopped(), 0);
        b = flate::read_header(w.st);
        uint32_t reason = b.reason;
        if (reason == WHARF_REASON_NONE) {
            w.st.at = b.body;
            reason =
                b.type == WHARF_DEFLATE_STORED ? w.copy_stored(b.stored_nbytes) : w.decode_body();
        }
        if (reason != WHARF_REASON_NONE)
            return bad_walk(flate::bad_stream(reason, 0), bit_of(w.job, w.st));
    } while (!b.final);
    w.st.at = (w.st.at + 7) & ~7u;
    syncwarp();
    return {walk_end::over, 0, 0, bit_of(w.job, w.st)};
}

/* collective.  Walks from a block, or from a member's header, to a pause, the stream's end or
 * something bad. */
template <typename W>
WHARF_DEVICE walk_result walk(W &w, uint64_t bit, bool at_header)
{
    const wharf_inflate_job &job = w.job;
    for (;;) {
        if (at_header) {
            verdict header = read_header_at(job, bit / 8);
            if (header.result != WHARF_OK)
                return bad_walk(header, bit);
            bit += 8 * (uint64_t)header.in_nbytes;
        }
        aim(job, w.st, w.steps, bit);
        if (at_header)
            w.begin_member();
        walk_result r = walk_blocks(w);
        if (r.end != walk_end::over)
            return r;
        verdict trailer = w.end_member(slice_of(job, r.bit / 8), r.bit);
        if (trailer.result != WHARF_OK)
            return bad_walk(trailer, r.bit);
        bit = r.bit + 8 * trailer_nbytes(job.codec);
        if (job.codec != WHARF_CODEC_GZIP ||
            !any_lane(gzip::another_member(slice_of(job, bit / 8), 0)))
            return {walk_end::over, 0, 0, bit};
        at_header = true;
    }
}

} // namespace inflate
} // namespace wharf

#endif
