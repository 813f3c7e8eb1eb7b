/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_poll.cuh: the polling warp: the only one that looks at what the host writes meanwhile, and
 * the only one that decides when the kernel leaves.  models/epoch.pml has its steps of leaving.
 */
#ifndef WHARF_KERNELS_EPOCH_POLL_CUH
#define WHARF_KERNELS_EPOCH_POLL_CUH

#include "kernels/epoch_state.cuh"

namespace wharf
{

/* Items of a group: a quad a lane. */
constexpr uint32_t ITEMS_AT_ONCE = 8;
/* Groups whose loads are on their way together. */
constexpr unsigned GROUPS_AT_ONCE = 4;
/* So many times as many between two looks at the other words. */
constexpr unsigned TAKES_AT_ONCE = 4;
/* Items that come with a look, a quad a lane; the lanes from 28 on have the look's words. */
constexpr uint32_t ITEMS_IN_LOOK = 7;
/* The host hears so often that somebody polls. */
constexpr uint32_t BEAT_NS = 100000;

/* What one look shows; the same in all lanes. */
struct poll_look {
    uint32_t tail, cancel_tail;
    uint32_t quit, park;
    uint32_t n_ended; /* items that are completed or to be moved */
    /* Not the same: lane 4i + k has quad k of the i-th next item, if that is there. */
    u32x4 quad;
};

struct poller {
    uint32_t head, cancel_head; /* taken */
    uint32_t n_tasks;           /* published */
    uint32_t n_beats;
    uint32_t start_ns, active_ns, beat_ns;
    bool stopped; /* takes no more */
    bool has_looked;
    uint32_t batch_end; /* with per_batch: where the first look ended, and so does what is taken */
};

/* collective.  Three words and the next items, on their way at the same time. */
WHARF_DEVICE poll_look poll_words(const epoch_params &p, const poller &own)
{
    uint32_t lane = lane_id();
    uint32_t *from = lane == 28   ? &p.queue.front->tail
                     : lane == 29 ? &p.queue.worker->quit
                                  : &p.control->n_done;
    uint64_t pair = 0;
    u32x4 quad = {0, 0, 0, 0};
    if (lane < 28) {
        uint32_t place = (own.head + lane / 4) & (p.queue.n_entries - 1);
        quad = load_quad_shared_with_host(reinterpret_cast<const u32x4 *>(&p.queue.items[place]) +
                                          lane % 4);
    } else if (lane < 31) {
        pair = load_shared_with_host(pair_at(from));
    }
    uint64_t tails = shfl(pair, 28), orders = shfl(pair, 29), ended = shfl(pair, 30);
    return {(uint32_t)tails,
            (uint32_t)(tails >> 32),
            (uint32_t)orders,
            (uint32_t)(orders >> 32),
            (uint32_t)ended + (uint32_t)(ended >> 32),
            quad};
}

/* collective. */
WHARF_DEVICE uint32_t poll_time()
{
    return shfl((uint32_t)time_ns(), 0);
}

/* collective.  Lets the other warps know how many tasks there are, and how they leave. */
WHARF_DEVICE void tell_warps(const epoch_params &p, const poller &own, leaving_how leaving)
{
    if (lane_id() == 0)
        store_shared_by_device(pair_at(&p.control->n_tasks), pair_of(own.n_tasks, leaving));
}

/* collective.  Writes the state word, and what the host may know of the queues before it. */
WHARF_DEVICE void tell_state(const epoch_params &p, wharf_work_state state)
{
    if (lane_id() == 0)
        store_shared_with_host(&p.queue.kernel->state, WHARF_WORK_STATE(p.epoch, state));
}

/* collective.  Up to 32 cancels: each lane marks the slot of one. */
WHARF_DEVICE void take_cancels(const epoch_params &p, poller &own, uint32_t cancel_tail)
{
    uint32_t n = cancel_tail - own.cancel_head;
    n = n < 32 ? n : 32;
    fence_system(); /* the load of the tail, before those of the cancels */
    if (lane_id() < n) {
        const wharf_work_cancel *from =
            &p.queue.front->cancels[(own.cancel_head + lane_id()) & (WHARF_WORK_N_CANCELS - 1)];
        uint64_t word = load_shared_with_host(reinterpret_cast<const uint64_t *>(from));
        uint32_t slot = (uint32_t)word & (p.queue.n_entries - 1);
        store_shared_by_device(&p.slots[slot].cancelled, word);
    }
    fence_system(); /* those loads, before the store that frees their places */
    syncwarp();
    own.cancel_head += n;
    if (lane_id() == 0)
        store_shared_with_host(&p.queue.kernel->cancel_head, own.cancel_head);
}

/*
 * collective.  Publishes the tasks of a group of items, the first of which has number `index`:
 * lane 4i holds the number of item i's slices, other lanes 0.  They are in their slots, and fenced.
 */
WHARF_DEVICE void publish_tasks(const epoch_params &p, poller &own, uint32_t index,
                                uint32_t n_slices)
{
    uint32_t end = inclusive_add(n_slices);
    uint32_t total = shfl(end, 31);
    WHARF_NO_UNROLL
    for (uint32_t base = 0; base < total; base += 32) {
        uint32_t task = base + lane_id();
        uint32_t item = 0, first = 0;
        WHARF_NO_UNROLL
        for (uint32_t i = 0; i < ITEMS_AT_ONCE; i++) {
            uint32_t before = shfl(end, 4 * i);
            item = task >= before ? i + 1 : item;
            first = task >= before ? before : first;
        }
        if (task < total) {
            uint32_t slot = (index + item) & (p.queue.n_entries - 1);
            uint32_t number = own.n_tasks + task;
            store_shared_by_device(task_at(p, number), task_word(number, slot, task - first));
        }
    }
    own.n_tasks += total;
}

/* What the polling warp has to know of an item; the same in its four lanes. */
struct item_facts {
    uint32_t src_nbytes, dst_nbytes, attempt, codec, flags, opcode;
};

/* collective.  By the members' offsets in struct wharf_work_item. */
WHARF_DEVICE item_facts facts_of(const u32x4 &quad)
{
    uint32_t first = lane_id() & ~3u;
    uint32_t rest = shfl(quad.z, first + 3);
    return {shfl(quad.z, first),     shfl(quad.z, first + 1),
            shfl(quad.z, first + 2), shfl(quad.y, first + 3) & 0xffff,
            rest & 0xffff,           rest >> 16 & 0xff};
}

/*
 * collective.  Puts n items into their slots, of which lane 4i + k has item i's quad k, the first
 * of which has number `index`.  Returns in lane 4i how many tasks they become.
 */
WHARF_DEVICE uint32_t place_group(const epoch_params &p, uint32_t index, uint32_t n,
                                  const u32x4 &quad, const item_facts &facts, uint32_t now)
{
    uint32_t lane = lane_id();
    epoch_slot *slot = &p.slots[(index + lane / 4) & (p.queue.n_entries - 1)];
    uint32_t n_slices = 0;
    if (lane / 4 >= n)
        return 0;
    store(reinterpret_cast<u32x4 *>(&slot->item) + lane % 4, quad);
    if (lane % 4 == 0) {
        bool copy =
            is_copy(facts.opcode, facts.codec, facts.flags, facts.src_nbytes, facts.dst_nbytes);
        n_slices = copy ? n_slices_of(facts.src_nbytes) : 1;
        store(&slot->index, index + lane / 4);
        store(&slot->taken_ns, now);
        store(&slot->n_slices, n_slices);
        store(&slot->n_slices_left, n_slices);
    }
    return n_slices;
}

WHARF_DEVICE uint32_t at_most(uint32_t n, uint32_t most)
{
    return n < most ? n : most;
}

/* collective.  Takes up to GROUPS_AT_ONCE groups of items of those before `tail`. */
WHARF_DEVICE void take_items(const epoch_params &p, poller &own, uint32_t tail, uint32_t now)
{
    uint32_t n = at_most(tail - own.head, GROUPS_AT_ONCE * ITEMS_AT_ONCE);
    uint32_t lane = lane_id();
    u32x4 quads[GROUPS_AT_ONCE] = {};
    uint32_t n_slices[GROUPS_AT_ONCE];
    WHARF_UNROLL
    for (unsigned g = 0; g < GROUPS_AT_ONCE; g++) {
        uint32_t i = ITEMS_AT_ONCE * g + lane / 4;
        uint32_t place = (own.head + i) & (p.queue.n_entries - 1);
        if (i < n)
            quads[g] = load_shared_with_host(
                reinterpret_cast<const u32x4 *>(&p.queue.items[place]) + lane % 4);
    }
    WHARF_UNROLL
    for (unsigned g = 0; g < GROUPS_AT_ONCE; g++) {
        uint32_t before = at_most(ITEMS_AT_ONCE * g, n);
        n_slices[g] = place_group(p, own.head + before, at_most(n - before, ITEMS_AT_ONCE),
                                  quads[g], facts_of(quads[g]), now);
    }
    syncwarp();
    fence_device(); /* the slots, before the tasks that name them */
    WHARF_UNROLL
    for (unsigned g = 0; g < GROUPS_AT_ONCE; g++)
        if (ITEMS_AT_ONCE * g < n)
            publish_tasks(p, own, own.head + ITEMS_AT_ONCE * g, n_slices[g]);
    own.head += n;
    tell_warps(p, own, STAYING);
    if (lane == 0)
        store_shared_with_host(&p.queue.kernel->head, own.head);
}

/* collective.  How many of the items in a look are there whole, of those before its tail: by
 * their tags, since their loads may have been answered before that of the tail. */
WHARF_DEVICE uint32_t n_whole(const poller &own, const poll_look &look)
{
    uint32_t lane = lane_id();
    bool missing = lane / 4 >= ITEMS_IN_LOOK || look.quad.w != own.head + lane / 4 + 1;
    return at_most((ffs(ballot(missing)) - 1) / 4, look.tail - own.head);
}

/* collective.  Completes those of a look's items for whose four lanes `mine` is true, by the quads
 * of struct wharf_work_completion.  There is no output, hence no fence. */
WHARF_DEVICE void complete_noops(const epoch_params &p, const poller &own, bool mine,
                                 const item_facts &facts)
{
    uint32_t lane = lane_id();
    uint32_t lanes = ballot(mine);
    uint32_t first = lane == 0 && lanes ? atomic_add(&p.control->n_done, popc(lanes) / 4) : 0;
    uint32_t n = shfl(first, 0) + popc(lanes & lanemask_lt()) / 4;
    wharf_work_completion *to = &p.queue.done[n & (p.queue.n_entries - 1)];
    uint32_t k = lane % 4;
    u32x4 quad = {0, 0, 0, n + 1};
    if (k == 0)
        quad = {own.head + lane / 4, facts.attempt, 0, n + 1};
    if (k == 2)
        quad = {p.epoch, 0, 0, n + 1};
    if (mine)
        store_quad_shared_with_host(reinterpret_cast<u32x4 *>(to) + k, quad);
}

/*
 * collective.  Takes n items that came with a look: completes those without work, and publishes the
 * tasks of the others.  No fence to the system is between the look and their inputs: those are
 * loaded when the words of the look have come, past the caches.
 */
WHARF_DEVICE void take_look(const epoch_params &p, poller &own, const poll_look &look, uint32_t n,
                            uint32_t now)
{
    item_facts facts = facts_of(look.quad);
    bool here = lane_id() / 4 < n;
    bool noop = here && !p.faults && facts.opcode != WHARF_WORK_DECODE;
    complete_noops(p, own, noop, facts);
    if (any_lane(here && !noop)) {
        uint32_t n_slices = place_group(p, own.head, n, look.quad, facts, now);
        syncwarp();
        fence_device(); /* the slots, before the tasks that name them */
        publish_tasks(p, own, own.head, noop ? 0 : n_slices);
        tell_warps(p, own, STAYING);
    }
    own.head += n;
    if (lane_id() == 0)
        store_shared_with_host(&p.queue.kernel->head, own.head);
}

/*
 * collective.  Nothing is under way and nothing was seen: says so, and looks once more.  Returns
 * whether the kernel goes.
 */
WHARF_DEVICE bool leave_if_still_idle(const epoch_params &p, const poller &own)
{
    tell_state(p, WHARF_WORK_LEAVING);
    /* Orders the store of LEAVING before the loads of the tails: the front orders its stores of
     * the tails before its load of the state, so one of us sees what the other did. */
    fence_system_total();
    syncwarp();
    poll_look look = poll_words(p, own);
    bool gone = look.tail == own.head && look.cancel_tail == own.cancel_head;
    tell_state(p, gone ? WHARF_WORK_OUT : WHARF_WORK_RUNNING);
    return gone;
}

WHARF_DEVICE void beat(const epoch_params &p, poller &own, uint32_t now)
{
    if (now - own.beat_ns < BEAT_NS)
        return;
    own.beat_ns = now;
    own.n_beats++;
    if (lane_id() == 0)
        store_shared_with_host(&p.queue.kernel->beat, own.n_beats);
}

/* collective.  Takes what a look showed; whether there was anything. */
WHARF_DEVICE bool take_some(const epoch_params &p, poller &own, const poll_look &look, uint32_t now)
{
    bool some = false;
    if (look.cancel_tail != own.cancel_head) {
        take_cancels(p, own, look.cancel_tail);
        some = true;
    }
    uint32_t n = own.stopped ? 0 : n_whole(own, look);
    if (n) {
        take_look(p, own, look, n, now);
        /* The next look will do for what is left, or not yet there. */
        if (n < ITEMS_IN_LOOK || look.tail - own.head < ITEMS_IN_LOOK)
            return true;
        some = true;
    }
    if (look.tail != own.head && !own.stopped) {
        fence_system(); /* the load of the tail, before those of the items */
        for (unsigned i = 0; i < TAKES_AT_ONCE && look.tail != own.head; i++)
            take_items(p, own, look.tail, now);
        some = true;
    }
    return some;
}

/*
 * collective.  Nothing is under way.  Returns whether the kernel goes, and the state says so.
 */
WHARF_DEVICE bool decide(const epoch_params &p, const poller &own, uint32_t now)
{
    if (now - own.active_ns >= p.idle_ns && leave_if_still_idle(p, own))
        return true;
    if (!own.stopped)
        return false;
    tell_state(p, WHARF_WORK_OUT_MORE);
    return true;
}

/* collective.  Whether the kernel has been there for long enough. */
WHARF_DEVICE bool stay_is_over(const epoch_params &p, const poller &own, uint32_t now)
{
    if (p.per_batch)
        return (int32_t)(own.head - own.batch_end) >= 0;
    return p.stay_ns && now - own.start_ns >= p.stay_ns;
}

/* collective.  Turns of looking, taking and deciding; how the kernel leaves.  A turn takes as long
 * as the look at the host's words: about a microsecond. */
WHARF_DEVICE leaving_how poll_until_done(const epoch_params &p, poller &own)
{
    for (;;) {
        poll_look look = poll_words(p, own);
        uint32_t now = poll_time();
        beat(p, own, now);
        if (look.quit)
            return QUITTING;
        bool stopped = own.stopped;
        own.stopped |= look.park != 0;
        own.batch_end = own.has_looked ? own.batch_end : look.tail;
        own.has_looked = true;
        if (take_some(p, own, look, now) || look.n_ended != own.head)
            own.active_ns = now;
        else if (decide(p, own, now))
            return LEAVING_WHEN_DONE;
        own.stopped |= stay_is_over(p, own, now);
        if (own.stopped && !stopped)
            tell_warps(p, own, LEAVING_WHEN_DONE);
        if (lane_id() == 0)
            pause_poll();
    }
}

/* collective.  Cancels all that may be under way, so that no decode keeps a kernel that quits. */
WHARF_DEVICE void cancel_all(const epoch_params &p)
{
    for (uint32_t base = 0; base < p.queue.n_entries; base += 32) {
        epoch_slot *slot = &p.slots[base + lane_id()];
        store_shared_by_device(&slot->cancelled,
                               cancel_word(load(&slot->index), load(&slot->item.attempt)));
    }
}

/* collective.  The polling warp's life. */
WHARF_DEVICE_NOINLINE void poll(const epoch_params &p)
{
    uint32_t now = poll_time();
    poller own = {p.control->head,
                  p.control->cancel_head,
                  p.control->n_tasks,
                  0,
                  now,
                  now,
                  now,
                  false,
                  false,
                  0};
    leaving_how how = poll_until_done(p, own);
    tell_warps(p, own, how);
    if (how == QUITTING) {
        cancel_all(p);
        tell_state(p, WHARF_WORK_OUT_MORE);
    }
    if (lane_id() == 0) {
        store(&p.control->head, own.head);
        store(&p.control->cancel_head, own.cancel_head);
    }
}

} // namespace wharf

#endif
