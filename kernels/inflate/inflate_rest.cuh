/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_rest.cuh: the end of a stream's decode, by one block of warps: verifies the checksums of
 * members that several links have, decodes what is behind the links, and tells the outcome.
 *
 * Of a good stream nothing is behind them.  Of others the rest begins with the first part that was
 * not plainly good, and is decoded as the block of deflate_block.cuh decodes a chunk.  So errors
 * are reported by the same code as a chunk's.  Where delivering met what measuring had not, which
 * is a distance that reaches in front of a member, the rest is the whole stream.
 */
#ifndef WHARF_KERNELS_INFLATE_INFLATE_REST_CUH
#define WHARF_KERNELS_INFLATE_INFLATE_REST_CUH

#include "kernels/inflate/inflate_sums.cuh"
#include "kernels/inflate/inflate_walk.cuh"

namespace wharf
{
namespace inflate
{

constexpr unsigned REST_WARPS = DEFLATE_BLOCK_WARPS;

struct rest_shared {
    deflate_block_shared block;
    uint32_t first_flaw[REST_WARPS];
};

/* ---- what is behind the links ------------------------------------------------------------- */

/* Registers of the block's first warp: the same in all lanes. */
template <typename Sum>
struct rest_decoder {
    using P = flate::block_tuning;
    using rules = sum_rules<Sum>;

    const wharf_inflate_job &job;
    flate::block_state<P> st;
    step_counter steps;
    piece_sum<Sum> sum;
    /* Of the member, before the piece. */
    uint32_t value;
    uint64_t nbytes;

    WHARF_DEVICE_MEMBER uint64_t out_at() const
    {
        return (uint64_t)(st.out.out - job.out) + st.out.position;
    }

    /* collective.  Output goes on at a byte of the destination, and matches may reach n_window
     * bytes back.  A new piece of the checksum begins. */
    WHARF_DEVICE_MEMBER void aim_output(uint64_t at, uint32_t n_window)
    {
        uint64_t room = job.out_avail - at;
        uint32_t most = job.slice_nbytes - WHARF_DEFLATE_WINDOW_NBYTES;
        st.out.init(uniform_global(job.out + (at - n_window)),
                    uniform(n_window + (room < most ? (uint32_t)room : most)));
        st.out.position = uniform(n_window);
        forget_output(st);
        sum.init(st.out);
    }

    /* collective. */
    WHARF_DEVICE_MEMBER void end_piece()
    {
        uint32_t of_piece = sum.finish(st.out.position);
        uint32_t n = st.out.position - sum.begin;
        value = n ? rules::join(value, of_piece, n) : value;
        nbytes += n;
    }

    /* collective.  Looks at another slice, if this one's end is near. */
    WHARF_DEVICE_MEMBER void move_on()
    {
        uint32_t n = st.out.position;
        end_piece();
        aim(job, st, steps, bit_of(job, st));
        aim_output(out_at(), n < WHARF_DEFLATE_WINDOW_NBYTES ? n : WHARF_DEFLATE_WINDOW_NBYTES);
    }

    /* In the middle of a slice, or of its output, so that no region of a body comes near the end.
     */
    WHARF_DEVICE_MEMBER bool is_far() const
    {
        return st.at / 4 >= job.slice_nbytes || st.out.position >= job.slice_nbytes / 2;
    }

    /* Whether the slice or its output ends before the stream or the destination. */
    WHARF_DEVICE_MEMBER bool is_cut() const
    {
        return st.source.aligned + st.source.end != job.in + job.in_nbytes ||
               st.out.out + st.out.avail != job.out + job.out_avail;
    }

    WHARF_DEVICE_MEMBER bool pauses(uint64_t)
    {
        if (is_far())
            move_on();
        return false;
    }

    WHARF_DEVICE_MEMBER void begin_member()
    {
        aim_output(out_at(), 0);
        value = rules::OF_NOTHING;
        nbytes = 0;
    }

    WHARF_DEVICE_MEMBER uint32_t copy_stored(uint32_t n) { return flate::copy_stored(st, n); }

    /* collective.  By all warps, or else by the first one from the body's start. */
    WHARF_DEVICE_MEMBER uint32_t decode_body()
    {
        give_command(st.all,
                     {st.source, st.out.out, st.out.avail, st.at, st.out.position, steps.left, 0});
        flate::body_result r = flate::decode_together(st.all, 0);
        if (!uniform(r.done))
            return decode_alone();
        st.at = uniform(r.at);
        st.out.position = uniform(r.position);
        steps.left = uniform(r.steps_left);
        sum.update(st.out.position);
        return WHARF_REASON_NONE;
    }

    /* collective.  As flate::decode_body, slice after slice. */
    WHARF_DEVICE_MEMBER uint32_t decode_alone()
    {
        auto &one = static_cast<flate::state<P::one> &>(st);
        uint32_t range = P::one::FIRST_RANGE_NBITS;
        for (;;) {
            if (is_far())
                move_on();
            if (!steps.take(flate::REGION_STEPS + flate::GROUP_STEPS))
                return WHARF_REASON_STEP_BUDGET;
            if (st.is_stopped())
                return flate::STOPPED;
            flate::status ended = flate::status::stop;
            if (st.at < st.end())
                ended = flate::decode_region(one, range, steps);
            if (ended == flate::status::block_end)
                return WHARF_REASON_NONE;
            if (ended == flate::status::stop) {
                uint32_t reason = flate::decode_exactly(one, steps);
                bool lacks =
                    reason == WHARF_REASON_INPUT_TRUNCATED || reason == WHARF_REASON_OUTPUT_FULL;
                if (!lacks || !is_cut())
                    return reason;
                move_on();
            }
            sum.update(st.out.position);
        }
    }

    WHARF_DEVICE_MEMBER verdict end_member(const chunk_job &trailer, uint64_t)
    {
        end_piece();
        sum.init(st.out);
        return judge_trailer(job.codec, trailer, value, nbytes);
    }
};

/* collective.  Decodes from a bit of the stream on, and stores the outcome. */
template <typename Sum>
WHARF_DEVICE void decode_rest(deflate_block_shared &s, const wharf_inflate_job &job,
                              bool everything)
{
    const wharf_inflate_control *control = job.control;
    everything = everything || load(&control->n_links) == 0;
    uint64_t out_begin = everything ? 0 : load(&control->rest_out);
    uint64_t n_before = everything ? 0 : out_begin - load(&control->rest_member);
    uint32_t value = sum_rules<Sum>::value_of(control->rest_sums, n_before);
    rest_decoder<Sum> d = {job, {}, {0}, {}, value, n_before};
    begin_state(job, d.st, s);
    d.aim_output(out_begin, n_before < WHARF_DEFLATE_WINDOW_NBYTES
                                ? (uint32_t)n_before
                                : (uint32_t)WHARF_DEFLATE_WINDOW_NBYTES);
    walk_result r = walk(d, everything ? 0 : load(&control->rest_bit), everything);
    if (lane_id() == 0) {
        if (r.end == walk_end::bad)
            *job.outcome = {r.result, r.reason, r.bit, 0, 0};
        else
            *job.outcome = {WHARF_OK, WHARF_REASON_NONE, 0, r.bit / 8, d.out_at()};
    }
}

/* ---- links ---------------------------------------------------------------------------------- */

/* One lane.  What is wrong with the first member that ends in a link: a reason. */
template <typename Sum>
WHARF_DEVICE uint32_t flaw_of_member(const wharf_inflate_job &job, const wharf_inflate_link &link)
{
    if (!load(&link.has_end) || job.codec == WHARF_CODEC_DEFLATE)
        return WHARF_REASON_NONE;
    if (sum_rules<Sum>::value_of(link.sums, load(&link.member_nbytes)) != load(&link.want_sum))
        return job.codec == WHARF_CODEC_GZIP ? WHARF_REASON_GZIP_CHECKSUM
                                             : WHARF_REASON_ZLIB_CHECKSUM;
    return load(&link.wrong_length) ? WHARF_REASON_GZIP_LENGTH : WHARF_REASON_NONE;
}

/* For all warps of a block.  The first link in which a member ends whose trailer is wrong, or
 * n_links. */
template <typename Sum>
WHARF_DEVICE uint32_t find_flaw(rest_shared &s, const wharf_inflate_job &job, unsigned warp)
{
    uint32_t n_links = load(&job.control->n_links), first = n_links;
    for (uint32_t k = 32 * warp + lane_id(); k < n_links; k += 32 * REST_WARPS) {
        const wharf_inflate_link &link = job.links[k];
        bool bad = flaw_of_member<Sum>(job, link) != WHARF_REASON_NONE ||
                   load(&link.flaw) != WHARF_REASON_NONE;
        first = bad && k < first ? k : first;
    }
    first = reduce_min(first);
    if (lane_id() == 0)
        store(&s.first_flaw[warp], first);
    syncblock();
    for (unsigned i = 0; i < REST_WARPS; i++)
        first = load(&s.first_flaw[i]) < first ? load(&s.first_flaw[i]) : first;
    return uniform(first);
}

/* One lane. */
template <typename Sum>
WHARF_DEVICE void tell_flaw(const wharf_inflate_job &job, const wharf_inflate_link &link)
{
    uint32_t reason = flaw_of_member<Sum>(job, link);
    if (reason != WHARF_REASON_NONE)
        *job.outcome = {WHARF_BAD_CHECKSUM, reason, load(&link.trailer), 0, 0};
    else
        *job.outcome = {load(&link.flaw) == WHARF_REASON_INPUT_TRUNCATED
                            ? (uint32_t)WHARF_BAD_DATA
                            : (uint32_t)WHARF_BAD_CHECKSUM,
                        load(&link.flaw), load(&link.flaw_bit), 0, 0};
}

/* For all warps of a block. */
template <typename Sum>
WHARF_DEVICE void finish_stream(rest_shared &s, const wharf_inflate_job &job, unsigned warp)
{
    const wharf_inflate_control *control = job.control;
    warp = uniform(warp);
    bool has_failed = any_lane(load(&control->has_failed) != 0);
    uint32_t flawed = find_flaw<Sum>(s, job, warp);
    if (warp != 0) {
        flate::help(s.block, warp);
        return;
    }
    if (!has_failed && flawed < load(&control->n_links)) {
        if (lane_id() == 0)
            tell_flaw<Sum>(job, job.links[flawed]);
    } else if (!has_failed && any_lane(load(&control->is_whole) != 0)) {
        if (lane_id() == 0)
            *job.outcome = {WHARF_OK, WHARF_REASON_NONE, 0, load(&control->rest_bit) / 8,
                            load(&control->rest_out)};
    } else {
        decode_rest<Sum>(s.block, job, has_failed);
    }
    end_commands(s.block);
}

} // namespace inflate
} // namespace wharf

#endif
