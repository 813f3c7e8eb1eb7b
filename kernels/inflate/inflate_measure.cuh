/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_measure.cuh: decodes each part of a stream from its start to the start of a later one,
 * with markers for its unknown window: how much output that is, and the last 32 KiB of it.
 *
 * A start that the walk passes is skipped: that one was wrong, or this one is.  Nothing here is
 * reported: where anything is bad, the part stays open, and is no link.
 */
#ifndef WHARF_KERNELS_INFLATE_INFLATE_MEASURE_CUH
#define WHARF_KERNELS_INFLATE_INFLATE_MEASURE_CUH

#include "kernels/inflate/inflate_find.cuh"
#include "kernels/inflate/inflate_walk.cuh"
#include "kernels/inflate/inflate_wide.cuh"

namespace wharf
{
namespace inflate
{

using measure_shared = flate::shared<flate::wide_tuning>;
constexpr unsigned MEASURE_WARPS_PER_SM = 32;
static_assert(sizeof(measure_shared) <= 7040);

/* collective.  The first part from number i on that has a start, or n_parts. */
WHARF_DEVICE uint32_t next_start(const wharf_inflate_job &job, uint32_t i)
{
    for (; i < job.n_found; i += 32) {
        uint32_t mine = i + lane_id();
        bool has = mine < job.n_found && load(&job.parts[mine].start) != WHARF_INFLATE_NOWHERE;
        uint32_t all = ballot(has);
        if (all)
            return i + first_lane(all);
    }
    return job.n_parts;
}

/* Registers of a warp that measures a part: the same in all lanes. */
struct measurer {
    const wharf_inflate_job &job;
    flate::state<flate::wide_tuning> st;
    step_counter steps;
    uint32_t next;         /* the start that comes next */
    uint64_t first, last;  /* where it may be met; NOWHERE: there is none */
    uint64_t limit;        /* nothing is measured from there on */
    uint32_t n_head;       /* output up to the first end of a member, or NO_END */
    uint32_t member_begin; /* position of the last member that began */

    WHARF_DEVICE_MEMBER uint32_t n_out() const { return st.out.position - flate::WINDOW_NUNITS; }

    /* collective.  The next start is that of the first part from number i on. */
    WHARF_DEVICE_MEMBER void look_for(uint32_t i)
    {
        next = uniform(next_start(job, i));
        first = last = WHARF_INFLATE_NOWHERE;
        if (next < job.n_parts) {
            last = load(&job.parts[next].start);
            first = last - load(&job.parts[next].slack);
        }
    }

    /* collective. */
    WHARF_DEVICE_MEMBER bool is_too_much(uint64_t bit) const
    {
        uint64_t n = n_out();
        return bit > limit || n > WHARF_INFLATE_MOST_OUT || n > job.out_avail;
    }

    /* Whether neither the next start nor the stream's end is near enough: then there is no use in
     * measuring, as where nothing is found in any part. */
    WHARF_DEVICE_MEMBER bool is_hopeless() const
    {
        return first > limit && 8 * job.in_nbytes > limit;
    }

    /* collective.  At the next start, or where the part is too long. */
    WHARF_DEVICE_MEMBER bool pauses(uint64_t bit)
    {
        while (last < bit)
            look_for(next + 1);
        return bit >= first || is_too_much(bit);
    }

    WHARF_DEVICE_MEMBER void begin_member() { member_begin = st.out.position; }

    WHARF_DEVICE_MEMBER uint32_t copy_stored(uint32_t nbytes)
    {
        return flate::copy_stored_wide(st, nbytes);
    }

    /* collective.  A block that is too long has a reason of its own; nobody reads which. */
    WHARF_DEVICE_MEMBER uint32_t decode_body()
    {
        flate::status ended = flate::status::more;
        uint32_t range = flate::wide_tuning::FIRST_RANGE_NBITS;
        while (ended == flate::status::more) {
            if (!steps.take(flate::REGION_STEPS + flate::GROUP_STEPS) ||
                is_too_much(bit_of(job, st)) || st.is_stopped())
                return WHARF_REASON_STEP_BUDGET;
            ended = st.at < st.end() ? flate::decode_region(st, range, steps) : flate::status::stop;
        }
        return ended == flate::status::block_end ? WHARF_REASON_NONE : WHARF_REASON_STEP_BUDGET;
    }

    WHARF_DEVICE_MEMBER verdict end_member(const chunk_job &trailer, uint64_t)
    {
        n_head = n_head == WHARF_INFLATE_NO_END ? n_out() : n_head;
        member_begin = st.out.position;
        return trailer.in_nbytes < trailer_nbytes(job.codec)
                   ? bad(WHARF_BAD_DATA, WHARF_REASON_INPUT_TRUNCATED, 0)
                   : good(0, 0);
    }
};

/* collective.  Part number i, which has a start. */
WHARF_DEVICE void measure_part(measure_shared &s, const wharf_inflate_job &job, uint32_t i,
                               uint16_t *ring)
{
    uint64_t start = load(&job.parts[i].start);
    measurer m = {job,
                  {},
                  {0},
                  0,
                  0,
                  0,
                  start + 8 * job.most_nbytes,
                  WHARF_INFLATE_NO_END,
                  flate::WINDOW_NUNITS};
    begin_state(job, m.st, s);
    flate::begin_wide(m.st.out, ring);
    m.look_for(i + 1);
    if (any_lane(m.is_hopeless())) {
        if (lane_id() == 0)
            store(&job.parts[i].next, WHARF_INFLATE_OPEN);
        syncwarp();
        return;
    }
    walk_result r = walk(m, start, i == 0);
    bool met = r.end == walk_end::paused && r.bit >= m.first && !m.is_too_much(r.bit);
    bool is_link = met || (r.end == walk_end::over && !m.is_too_much(0));
    if (lane_id() == 0) {
        wharf_inflate_part *part = &job.parts[i];
        store(&part->end, r.bit);
        store(&part->next, met ? m.next : is_link ? job.n_parts : WHARF_INFLATE_OPEN);
        store(&part->n_out, m.n_out());
        store(&part->n_head, m.n_head);
        store(&part->n_tail, m.st.out.position - m.member_begin);
    }
    if (is_link)
        flate::end_wide(m.st.out, job.tails + (size_t)i * flate::WINDOW_NUNITS);
    syncwarp(); /* all are done with shared memory and ring before the next part */
}

/* collective.  Warp number `warp` of all, of which n_rings measure. */
WHARF_DEVICE void measure_parts(measure_shared &s, const wharf_inflate_job &job, uint32_t warp)
{
    if (warp >= job.n_rings)
        return;
    uint16_t *ring = job.rings + (size_t)warp * flate::RING_NUNITS;
    for (;;) {
        uint32_t i = job.first_part + take_number(&job.control->n_measured);
        if (i >= job.end_part)
            return;
        if (uniform(load(&job.parts[i].start) != WHARF_INFLATE_NOWHERE))
            measure_part(s, job, i, ring);
        else if (lane_id() == 0)
            store(&job.parts[i].next, WHARF_INFLATE_OPEN);
        syncwarp();
    }
}

} // namespace inflate
} // namespace wharf

#endif
