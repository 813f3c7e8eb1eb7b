/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_chain.cuh: which parts of a stream are links, and where their output belongs.
 *
 * Each part says at which later one it ended.  Those that the first part leads to are marked by
 * doubling: after k rounds all within 2^k steps are, and each part knows the one 2^k steps ahead.
 * Each thread then has some parts side by side, of which it adds up what the threads behind it
 * need.  One block does it all.
 */
#ifndef WHARF_KERNELS_INFLATE_INFLATE_CHAIN_CUH
#define WHARF_KERNELS_INFLATE_INFLATE_CHAIN_CUH

#include "kernels/inflate_parts.h"
#include "kernels/warp.cuh"

namespace wharf
{
namespace inflate
{

constexpr unsigned CHAIN_WARPS = 16;
constexpr unsigned CHAIN_THREADS = 32 * CHAIN_WARPS;

/* What each thread's parts come to.  Offsets are in bytes of output. */
struct chain_shared {
    uint64_t n_out[CHAIN_THREADS];
    uint64_t first_end[CHAIN_THREADS];   /* where a member ends first, or NOWHERE */
    uint64_t last_end[CHAIN_THREADS];    /* where one ends last */
    uint32_t first_owner[CHAIN_THREADS]; /* the first's link, counted from the thread's first */
    uint32_t n_links[CHAIN_THREADS];
    uint32_t cut[CHAIN_THREADS]; /* the first part that is reached and is no link, or n_parts */
};

/* For all warps of a block.  Marks the parts that part 0 leads to. */
WHARF_DEVICE void mark_reached(const wharf_inflate_job &job, unsigned number)
{
    const uint32_t n = job.n_parts;
    uint32_t *now = job.jumps, *then = job.jumps + n;
    for (uint32_t i = number; i < n; i += CHAIN_THREADS) {
        uint32_t next = load(&job.parts[i].next);
        store(&now[i], next < n ? next : n);
        store_shared_by_device(&job.reached[i], (uint32_t)(i == 0));
    }
    syncblock();
    for (uint32_t span = 1; span < n; span *= 2) {
        for (uint32_t i = number; i < n; i += CHAIN_THREADS) {
            uint32_t next = load(&now[i]);
            if (next < n && load_shared_by_device(&job.reached[i]))
                store_shared_by_device(&job.reached[next], 1u);
            store(&then[i], next < n ? load(&now[next]) : n);
        }
        syncblock();
        uint32_t *last = now;
        now = then;
        then = last;
    }
}

/* One thread's parts. */
struct chain_share {
    const wharf_inflate_job &job;
    chain_shared &s;
    unsigned number;
    uint32_t begin, end;

    WHARF_DEVICE_MEMBER chain_share(const wharf_inflate_job &j, chain_shared &shared, unsigned i)
        : job(j), s(shared), number(i)
    {
        uint32_t n = (job.n_parts + CHAIN_THREADS - 1) / CHAIN_THREADS;
        begin = number * n < job.n_parts ? number * n : job.n_parts;
        end = job.n_parts - begin < n ? job.n_parts : begin + n;
    }

    WHARF_DEVICE_MEMBER bool is_reached(uint32_t i) const
    {
        return load_shared_by_device(&job.reached[i]) != 0;
    }

    WHARF_DEVICE_MEMBER void add_output()
    {
        uint64_t n = 0;
        for (uint32_t i = begin; i < end; i++)
            n += is_reached(i) ? load(&job.parts[i].n_out) : 0;
        store(&s.n_out[number], n);
    }

    WHARF_DEVICE_MEMBER uint64_t out_before(unsigned before) const
    {
        uint64_t n = 0;
        for (unsigned k = 0; k < before; k++)
            n += load(&s.n_out[k]);
        return n;
    }

    /* The first part that is reached, but open, or has no room. */
    WHARF_DEVICE_MEMBER void find_cut()
    {
        uint64_t at = out_before(number);
        uint32_t cut = job.n_parts;
        for (uint32_t i = begin; i < end && cut == job.n_parts; i++) {
            if (!is_reached(i))
                continue;
            at += load(&job.parts[i].n_out);
            if (load(&job.parts[i].next) == WHARF_INFLATE_OPEN || at > job.out_avail)
                cut = i;
        }
        store(&s.cut[number], cut);
    }

    /* Where the parts end that are links. */
    WHARF_DEVICE_MEMBER void cut_off()
    {
        uint32_t cut = job.n_parts;
        for (unsigned k = 0; k < CHAIN_THREADS; k++)
            cut = load(&s.cut[k]) < cut ? load(&s.cut[k]) : cut;
        end = end < cut ? end : cut;
        begin = begin < end ? begin : end;
    }

    WHARF_DEVICE_MEMBER void add_links()
    {
        uint64_t at = out_before(number);
        uint64_t first = WHARF_INFLATE_NOWHERE, last = WHARF_INFLATE_NOWHERE;
        uint32_t n = 0, owner = 0;
        for (uint32_t i = begin; i < end; i++) {
            if (!is_reached(i))
                continue;
            const wharf_inflate_part *part = &job.parts[i];
            uint32_t n_head = load(&part->n_head);
            if (n_head != WHARF_INFLATE_NO_END) {
                owner = first == WHARF_INFLATE_NOWHERE ? n : owner;
                first = first == WHARF_INFLATE_NOWHERE ? at + n_head : first;
                last = at + load(&part->n_out) - load(&part->n_tail);
            }
            at += load(&part->n_out);
            n++;
        }
        store(&s.first_end[number], first);
        store(&s.last_end[number], last);
        store(&s.first_owner[number], owner);
        store(&s.n_links[number], n);
    }

    WHARF_DEVICE_MEMBER uint32_t links_before(unsigned before) const
    {
        uint32_t n = 0;
        for (unsigned k = 0; k < before; k++)
            n += load(&s.n_links[k]);
        return n;
    }

    /* Where the last member began before the thread's first part. */
    WHARF_DEVICE_MEMBER uint64_t member_before(unsigned before) const
    {
        for (unsigned k = before; k > 0; k--)
            if (load(&s.last_end[k - 1]) != WHARF_INFLATE_NOWHERE)
                return load(&s.last_end[k - 1]);
        return 0;
    }

    WHARF_DEVICE_MEMBER void make_links()
    {
        uint64_t at = out_before(number), member = member_before(number);
        uint32_t k = links_before(number);
        for (uint32_t i = begin; i < end; i++) {
            if (!is_reached(i))
                continue;
            const wharf_inflate_part part = job.parts[i];
            bool has_end = part.n_head != WHARF_INFLATE_NO_END;
            wharf_inflate_link link = {};
            link.start = part.start;
            link.end = part.end;
            link.out_begin = at;
            link.member_begin = member;
            link.n_out = part.n_out;
            link.part = i;
            link.has_end = has_end;
            job.links[k] = link;
            at += part.n_out;
            member = has_end ? at - part.n_tail : member;
            k++;
        }
    }

    /* Says for each link where the member ends that is open at its end: backwards. */
    WHARF_DEVICE_MEMBER void find_owners(uint32_t n_links, uint64_t n_out)
    {
        uint32_t owner = n_links;
        uint64_t ends = n_out;
        uint32_t k = links_before(number + 1);
        uint32_t behind = k;
        for (unsigned j = number + 1; j < CHAIN_THREADS && owner == n_links; j++) {
            if (load(&s.first_end[j]) != WHARF_INFLATE_NOWHERE) {
                owner = behind + load(&s.first_owner[j]);
                ends = load(&s.first_end[j]);
            }
            behind += load(&s.n_links[j]);
        }
        for (uint32_t n = load(&s.n_links[number]); n > 0; n--) {
            wharf_inflate_link *link = &job.links[--k];
            store(&link->open_owner, owner);
            store(&link->open_end, ends);
            if (load(&link->has_end)) {
                owner = k;
                ends = load(&link->out_begin) + load(&job.parts[load(&link->part)].n_head);
            }
        }
    }
};

/* One thread.  What is behind the links, but for what the last of them says. */
WHARF_DEVICE void describe_rest(const chain_share &share, wharf_inflate_control *control,
                                uint32_t n_links, uint64_t n_out)
{
    store(&control->n_links, n_links);
    store(&control->rest_out, n_out);
    store(&control->rest_member, share.member_before(CHAIN_THREADS));
    store(&control->rest_sums[0], 0u);
    store(&control->rest_sums[1], 0u);
    if (n_links == 0) {
        store(&control->rest_bit, (uint64_t)0);
        store(&control->is_whole, 0u);
    }
}

/* For all warps of a block. */
WHARF_DEVICE void chain_parts(chain_shared &s, unsigned warp, const wharf_inflate_job &job)
{
    unsigned number = 32 * warp + lane_id();
    mark_reached(job, number);
    chain_share share(job, s, number);
    share.add_output();
    syncblock();
    share.find_cut();
    syncblock();
    share.cut_off();
    share.add_output();
    syncblock();
    share.add_links();
    syncblock();
    uint32_t n_links = share.links_before(CHAIN_THREADS);
    uint64_t n_out = share.out_before(CHAIN_THREADS);
    share.make_links();
    share.find_owners(n_links, n_out);
    if (number == 0)
        describe_rest(share, job.control, n_links, n_out);
    uint32_t n_behind = n_links - share.links_before(number + 1);
    if (n_links && n_behind == 0 && load(&s.n_links[number])) {
        const wharf_inflate_link *last = &job.links[n_links - 1];
        store(&job.control->rest_bit, load(&last->end));
        store(&job.control->is_whole,
              (uint32_t)(load(&job.parts[load(&last->part)].next) == job.n_parts));
    }
}

} // namespace inflate
} // namespace wharf

#endif
