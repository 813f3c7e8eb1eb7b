/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_deliver.cuh: decodes each link of a stream to bytes at their place in the output, with
 * the decoders for chunks: a warp for each, or, where links are few, a block of warps.
 *
 * The window before a link is the end of the link before, of which the bytes are there already.
 * The warp that delivers that link stores the same bytes again meanwhile.
 */
#ifndef WHARF_KERNELS_INFLATE_INFLATE_DELIVER_CUH
#define WHARF_KERNELS_INFLATE_INFLATE_DELIVER_CUH

#include "kernels/inflate/inflate_find.cuh"
#include "kernels/inflate/inflate_sums.cuh"
#include "kernels/inflate/inflate_walk.cuh"

namespace wharf
{
namespace inflate
{

/* How much of a member's output before a position matches may reach. */
WHARF_DEVICE uint32_t window_nbytes(uint64_t n_before)
{
    return n_before < WHARF_DEFLATE_WINDOW_NBYTES ? (uint32_t)n_before
                                                  : (uint32_t)WHARF_DEFLATE_WINDOW_NBYTES;
}

/* Registers of a warp that delivers a link, alone or as its block's first: the same in all lanes.
 * State is flate::state or flate::block_state. */
template <typename Sum, typename State>
struct deliverer {
    using rules = sum_rules<Sum>;

    const wharf_inflate_job &job;
    wharf_inflate_link *link;
    uint64_t end;
    State st;
    step_counter steps;
    piece_sum<Sum> sum;
    bool is_open; /* the member began before this link */

    WHARF_DEVICE_MEMBER uint64_t out_at() const
    {
        return (uint64_t)(st.out.out - job.out) + st.out.position;
    }

    WHARF_DEVICE_MEMBER bool pauses(uint64_t bit) const { return bit >= end; }

    /* collective. */
    WHARF_DEVICE_MEMBER void begin_member()
    {
        st.out.out += st.out.position;
        st.out.avail -= st.out.position;
        st.out.position = 0;
        forget_output(st);
        sum.init(st.out);
    }

    WHARF_DEVICE_MEMBER uint32_t copy_stored(uint32_t nbytes)
    {
        return flate::copy_stored(st, nbytes);
    }

    WHARF_DEVICE_MEMBER uint32_t decode_body() { return flate::decode_body(st, sum, steps); }

    /* collective.  The piece's checksum is added to those of the member's. */
    WHARF_DEVICE_MEMBER void add_piece(uint32_t *sums, uint64_t n_behind)
    {
        uint32_t value = sum.finish(st.out.position);
        uint32_t n = st.out.position - sum.begin;
        if (lane_id() == 0 && n > 0)
            rules::add(sums, value, n, n_behind);
        syncwarp();
    }

    /* collective. */
    WHARF_DEVICE_MEMBER verdict end_member(const chunk_job &trailer, uint64_t bit)
    {
        if (is_open)
            return end_open(trailer, bit);
        uint32_t value = sum.finish(st.out.position);
        verdict v = judge_trailer(job.codec, trailer, value, st.out.position);
        if (v.result != WHARF_OK && lane_id() == 0) {
            store(&link->flaw, v.reason);
            store(&link->flaw_bit, bit);
        }
        syncwarp();
        return v;
    }

    /* collective.  Its checksum is known when all links are delivered. */
    WHARF_DEVICE_MEMBER verdict end_open(const chunk_job &trailer, uint64_t bit)
    {
        uint64_t n = out_at() - link->member_begin;
        is_open = false;
        add_piece(link->sums, 0);
        if (uniform(trailer.in_nbytes) < trailer_nbytes(job.codec))
            return bad(WHARF_BAD_DATA, WHARF_REASON_INPUT_TRUNCATED, 0);
        if (job.codec == WHARF_CODEC_DEFLATE)
            return good(0, 0);
        bool wrong_length =
            job.codec == WHARF_CODEC_GZIP && gzip::load_32(trailer.in + 4) != (uint32_t)n;
        if (lane_id() == 0) {
            store(&link->want_sum, trailer_sum(job.codec, trailer.in));
            store(&link->wrong_length, (uint32_t)wrong_length);
            store(&link->trailer, bit);
            store(&link->member_nbytes, n);
        }
        syncwarp();
        return good(0, 0);
    }
};

/* collective.  Link number k. */
template <typename Sum, typename State, typename Shared>
WHARF_DEVICE void deliver_link(Shared &s, const wharf_inflate_job &job, uint32_t k,
                               uint32_t n_links)
{
    wharf_inflate_link *link = &job.links[k];
    uint64_t out_begin = load(&link->out_begin);
    uint32_t n_out = uniform(load(&link->n_out));
    uint32_t n_window = uniform(window_nbytes(out_begin - load(&link->member_begin)));
    deliverer<Sum, State> d = {job, link, load(&link->end), {}, {0}, {}, true};
    begin_state(job, d.st, s);
    d.st.out.init(uniform_global(job.out + (out_begin - n_window)), n_window + n_out);
    d.st.out.position = n_window;
    d.sum.init(d.st.out);
    bool is_last = k + 1 == n_links && load(&job.control->is_whole);
    walk_result r = walk(d, load(&link->start), k == 0);
    bool same = r.bit == d.end && d.out_at() == out_begin + n_out &&
                r.end == (is_last ? walk_end::over : walk_end::paused);
    if (r.end == walk_end::paused) {
        uint32_t owner = uniform(load(&link->open_owner));
        uint32_t *sums = owner < n_links ? job.links[owner].sums : job.control->rest_sums;
        d.add_piece(sums, load(&link->open_end) - d.out_at());
    }
    syncwarp(); /* a flaw that lane 0 has stored */
    bool flawed = load(&link->flaw) != WHARF_REASON_NONE;
    if (!same && !flawed && lane_id() == 0)
        store_shared_by_device(&job.control->has_failed, 1u);
    syncwarp(); /* all are done with shared memory before the next link */
}

/* collective. */
template <typename Sum, typename State, typename Shared>
WHARF_DEVICE void deliver_links_with(Shared &s, const wharf_inflate_job &job)
{
    uint32_t n_links = uniform(load(&job.control->n_links));
    uint32_t end = n_links < job.end_link ? n_links : job.end_link;
    for (;;) {
        uint32_t k = job.first_link + take_number(&job.control->n_delivered);
        if (k >= end)
            return;
        deliver_link<Sum, State>(s, job, k, n_links);
    }
}

/* collective.  By a warp for each. */
template <typename Sum>
WHARF_DEVICE void deliver_links(deflate_shared &s, const wharf_inflate_job &job)
{
    deliver_links_with<Sum, flate::state<flate::tuning>>(s, job);
}

/* For all warps of a block.  By a block for each. */
template <typename Sum>
WHARF_DEVICE void deliver_links_together(deflate_block_shared &s, unsigned warp,
                                         const wharf_inflate_job &job)
{
    warp = uniform(warp);
    if (warp != 0) {
        flate::help(s, warp);
        return;
    }
    deliver_links_with<Sum, flate::block_state<flate::block_tuning>>(s, job);
    end_commands(s);
}

} // namespace inflate
} // namespace wharf

#endif
