/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_poll.cuh: the polling warp.
 *
 * It alone polls the words that the host writes, publishes items to the other warps, and decides
 * when the kernel leaves.  models/epoch.pml has its steps of leaving; the invariant is that no
 * published item is left behind without a kernel or an OUT state that makes the core wake the
 * worker.
 */
#ifndef WHARF_KERNELS_EPOCH_POLL_CUH
#define WHARF_KERNELS_EPOCH_POLL_CUH

#include "kernels/epoch_state.cuh"

namespace wharf
{

/* Items of a group: a quad a lane. */
constexpr uint32_t ITEMS_AT_ONCE = 8;
/* Groups whose loads are in flight together. */
constexpr unsigned GROUPS_AT_ONCE = 4;
/* How many times that is done between two looks at the other words. */
constexpr unsigned TAKES_AT_ONCE = 4;
/* Items that one look loads, a quad a lane; lanes from 28 on load the other words.  While items
 * arrive singly a look loads fewer, because each quad is a request of its own. */
constexpr uint32_t ITEMS_IN_LOOK = 7;
constexpr uint32_t ITEMS_IN_IDLE_LOOK = 2;
/* How often `beat` tells the host that the kernel polls. */
constexpr uint32_t BEAT_NS = 100000;

/* The result of one look; the same in all lanes, except `quad`. */
struct poll_look {
    uint32_t tail, cancel_tail;
    uint32_t quit, park;
    uint32_t n_done;  /* completions in the ring `done` */
    uint32_t n_ended; /* items that are completed or skipped */
    /* Lane 4i + k has quad k of the i-th next item, if it is published. */
    u32x4 quad;
};

struct poller {
    uint32_t head, cancel_head; /* taken */
    uint32_t n_passed;          /* of the taken items: WHARF_WORK_PASS */
    uint32_t n_tasks;           /* published */
    uint32_t width;             /* items in the next look */
    uint32_t n_beats;
    uint32_t start_ns, active_ns, beat_ns;
    bool stopped; /* takes no more */
    bool has_looked;
    uint32_t n_there; /* unfinished items, and the limit for the kernel of blocks */
    uint32_t n_few;
    /* It has added to the number of completions without waiting for the result. */
    bool noops_unordered;
    uint32_t batch_end; /* with per_batch: the tail at the first poll; later items stay queued */
    uint32_t many_ns;   /* when there was last enough work for the kernel for many items */
};

/* collective.  Loads three words and the next items, all in flight at the same time. */
WHARF_DEVICE poll_look poll_words(const epoch_params &p, const poller &own)
{
    uint32_t lane = lane_id();
    uint32_t *from = lane == 28   ? &p.queue.core->tail
                     : lane == 29 ? &p.queue.worker->quit
                                  : &p.control->n_done;
    uint64_t pair = 0;
    u32x4 quad = {0, 0, 0, 0};
    if (lane < 4 * own.width) {
        uint32_t place = (own.head + lane / 4) & (p.queue.n_entries - 1);
        quad = load_quad_shared_with_host(reinterpret_cast<const u32x4 *>(&p.queue.items[place]) +
                                          lane % 4);
    } else if (lane >= 28 && lane < 31) {
        pair = load_shared_with_host(pair_at(from));
    }
    uint64_t tails = from_lane<28>(pair), orders = from_lane<29>(pair), ended = from_lane<30>(pair);
    return {(uint32_t)tails,
            (uint32_t)(tails >> 32),
            (uint32_t)orders,
            (uint32_t)(orders >> 32),
            (uint32_t)ended,
            (uint32_t)ended + (uint32_t)(ended >> 32) + own.n_passed,
            quad};
}

/* collective. */
WHARF_DEVICE uint32_t poll_time()
{
    return from_lane<0>((uint32_t)time_ns());
}

/* collective.  Tells the other warps the number of tasks, and how to leave. */
WHARF_DEVICE void tell_warps(const epoch_params &p, const poller &own, leaving_how leaving)
{
    if (lane_id() == 0)
        store_shared_by_device(pair_at(&p.control->n_tasks), pair_of(own.n_tasks, leaving));
}

/* collective.  Writes the state word. */
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
    fence_system(); /* orders the load of the tail before those of the cancels */
    if (lane_id() < n) {
        const wharf_work_cancel *from =
            &p.queue.core->cancels[(own.cancel_head + lane_id()) & (WHARF_WORK_N_CANCELS - 1)];
        uint64_t word = load_shared_with_host(reinterpret_cast<const uint64_t *>(from));
        uint32_t slot = (uint32_t)word & (p.queue.n_entries - 1);
        store_shared_by_device(&p.slots[slot].cancelled, word);
    }
    fence_system(); /* orders those loads before the store that frees their places */
    syncwarp();
    own.cancel_head += n;
    if (lane_id() == 0)
        store_shared_with_host(&p.queue.kernel->cancel_head, own.cancel_head);
}

/* collective.  Before tasks are published: whoever completes them counts from there. */
WHARF_DEVICE void order_noops(poller &own)
{
    if (own.noops_unordered)
        fence_device();
    own.noops_unordered = false;
}

/*
 * collective.  Publishes the tasks of a group of items, the first of which has number `index`:
 * lane 4i holds the number of item i's slices, other lanes 0.  They are on their way to their
 * slots.
 */
WHARF_DEVICE void publish_tasks(const epoch_params &p, poller &own, uint32_t index,
                                uint32_t n_slices)
{
    uint32_t end = inclusive_add(n_slices);
    uint32_t total = from_lane<31>(end);
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
            uint32_t number = own.n_tasks + task;
            store_shared_by_device(task_at(p, number),
                                   task_word(number, index + item, task - first));
        }
    }
    own.n_tasks += total;
}

/* The members of an item that the polling warp needs; the same in its four lanes. */
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
 * collective.  Stores n items into their slots; lane 4i + k has quad k of item i, and the first
 * item has number `index`.  Does not store WHARF_WORK_PASS, whose slot may belong to a running
 * item.  Returns in lane 4i the number of item i's tasks.
 */
WHARF_DEVICE uint32_t place_group(const epoch_params &p, poller &own, uint32_t index, uint32_t n,
                                  const u32x4 &quad, const item_facts &facts, uint32_t now)
{
    uint32_t lane = lane_id();
    uint32_t number = index + lane / 4;
    u32x4 *slot = reinterpret_cast<u32x4 *>(&p.slots[number & (p.queue.n_entries - 1)]);
    bool passes = facts.opcode == WHARF_WORK_PASS;
    own.n_passed += popc(ballot(lane / 4 < n && passes)) / 4;
    if (lane / 4 >= n || passes)
        return 0;
    store_quad_shared_by_device(slot + lane % 4, quad);
    if (lane % 4 != 0)
        return 0;
    store_quad_shared_by_device(slot + 4, {number, now, 0, number + 1});
    bool copy = is_copy(facts.opcode, facts.codec, facts.flags, facts.src_nbytes, facts.dst_nbytes);
    return copy ? n_slices_of(facts.src_nbytes) : 1;
}

/* ---- which of the two kernels ---------------------------------------------------------------- */

/* A block's other warps do not help with copied items, so the kernel of blocks takes this many
 * times fewer of them. */
constexpr uint32_t FEWER_COPIES = 8;

/* One lane.  Whether the kernel for few items can take this item. */
WHARF_DEVICE bool is_for_blocks(const poller &own, const item_facts &facts)
{
    bool copy = is_copy(facts.opcode, facts.codec, facts.flags, facts.src_nbytes, facts.dst_nbytes);
    uint32_t fewer = times_fewer_for_blocks(facts.codec);
    fewer = copy && fewer == 0 ? FEWER_COPIES : fewer;
    bool few = fewer == 1 || own.n_there * fewer <= own.n_few;
    return !is_work(facts.opcode) || (fewer && few);
}

/* collective.  How many of the n items of a look this kernel takes. */
WHARF_DEVICE uint32_t n_for_us(const epoch_params &p, poller &own, const item_facts &facts,
                               uint32_t n, uint32_t now)
{
    uint32_t misfits = ballot(lane_id() / 4 < n && !is_for_blocks(own, facts));
    if (!misfits || !p.n_few)
        return n;
    own.many_ns = now;
    if (!p.by_blocks)
        return n;
    own.stopped = true;
    return first_lane(misfits) / 4;
}

/* collective.  Compares the number of unfinished items with the limits of both kernels, and stops
 * if the other one should run.  A kernel for one batch ends soon in any case. */
WHARF_DEVICE void compare_kernels(const epoch_params &p, poller &own, const poll_look &look,
                                  uint32_t now)
{
    uint32_t n = look.tail - look.n_ended;
    if (!p.n_few)
        return;
    /* Hysteresis: a number between the two limits suits either kernel. */
    uint32_t n_few = p.by_blocks ? p.n_few : p.n_few / 2;
    own.n_there = n;
    own.n_few = n_few;
    if (n > n_few)
        own.many_ns = now;
    bool is_many = now - own.many_ns < FEW_FOR_NS;
    own.stopped |= n > 0 && !p.per_batch && p.by_blocks == is_many;
}

/* collective.  Before a state by which the kernel leaves: names the next kernel. */
WHARF_DEVICE void tell_kind(const epoch_params &p, const poller &own, uint32_t now)
{
    uint32_t kind = now - own.many_ns < FEW_FOR_NS ? WHARF_WORK_FOR_MANY : WHARF_WORK_FOR_FEW;
    if (lane_id() == 0)
        store_shared_with_host(&p.queue.kernel->kind, kind);
}

/* ---- taking ---------------------------------------------------------------------------------- */

WHARF_DEVICE uint32_t at_most(uint32_t n, uint32_t most)
{
    return n < most ? n : most;
}

/* collective.  Takes up to GROUPS_AT_ONCE groups of the items before `tail`. */
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
        item_facts facts = facts_of(quads[g]);
        n_slices[g] = place_group(p, own, own.head + before, at_most(n - before, ITEMS_AT_ONCE),
                                  quads[g], facts, now);
        (void)n_for_us(p, own, facts, at_most(n - before, ITEMS_AT_ONCE), now);
    }
    order_noops(own);
    WHARF_UNROLL
    for (unsigned g = 0; g < GROUPS_AT_ONCE; g++)
        if (ITEMS_AT_ONCE * g < n)
            publish_tasks(p, own, own.head + ITEMS_AT_ONCE * g, n_slices[g]);
    own.head += n;
    tell_warps(p, own, STAYING);
    if (lane == 0)
        store_shared_with_host(&p.queue.kernel->head, own.head);
}

/* collective.  How many items of a look, before its tail, are complete.  The tags decide, since the
 * items' loads may have been answered before that of the tail. */
WHARF_DEVICE uint32_t n_whole(const poller &own, const poll_look &look)
{
    uint32_t lane = lane_id();
    bool missing = lane / 4 >= own.width || look.quad.w != own.head + lane / 4 + 1;
    return at_most((ffs(ballot(missing)) - 1) / 4, look.tail - own.head);
}

/* collective.  Adds n to the number of completions, and returns the old number.  While nothing else
 * runs, the look's number is still valid, so the addition need not be waited for. */
WHARF_DEVICE uint32_t add_done(const epoch_params &p, poller &own, const poll_look &look,
                               uint32_t n)
{
    if (n == 0 || look.n_ended == own.head) {
        if (n && lane_id() == 0)
            (void)atomic_add(&p.control->n_done, n);
        own.noops_unordered |= n != 0;
        return look.n_done;
    }
    return from_lane<0>(lane_id() == 0 ? atomic_add(&p.control->n_done, n) : 0);
}

/* collective.  Completes the items of a look for whose four lanes `mine` is true, by the quads of
 * struct wharf_work_completion.  There is no output, so no fence is needed. */
WHARF_DEVICE void complete_noops(const epoch_params &p, poller &own, const poll_look &look,
                                 bool mine, const item_facts &facts)
{
    uint32_t lane = lane_id();
    uint32_t lanes = ballot(mine);
    uint32_t n = add_done(p, own, look, popc(lanes) / 4) + popc(lanes & lanemask_lt()) / 4;
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
 * collective.  Takes n items of a look: completes those without work, and publishes the tasks of
 * the others.  No fence to the system is needed before the loads of their inputs: these start after
 * the look's words have arrived, and bypass the caches.
 */
WHARF_DEVICE void take_look(const epoch_params &p, poller &own, const poll_look &look, uint32_t n,
                            uint32_t now)
{
    item_facts facts = facts_of(look.quad);
    n = n_for_us(p, own, facts, n, now);
    bool here = lane_id() / 4 < n;
    bool noop = here && !p.faults && !is_work(facts.opcode) && facts.opcode != WHARF_WORK_PASS;
    complete_noops(p, own, look, noop, facts);
    if (any_lane(here && !noop)) {
        uint32_t n_slices = place_group(p, own, own.head, n, look.quad, facts, now);
        order_noops(own);
        publish_tasks(p, own, own.head, noop ? 0 : n_slices);
        tell_warps(p, own, STAYING);
    }
    own.head += n;
    if (lane_id() == 0)
        store_shared_with_host(&p.queue.kernel->head, own.head);
}

/*
 * collective.  Nothing runs and nothing was seen: stores LEAVING, and looks once more.  Returns
 * whether the kernel leaves.
 */
WHARF_DEVICE bool leave_if_still_idle(const epoch_params &p, const poller &own)
{
    tell_state(p, WHARF_WORK_LEAVING);
    /* Orders the store of LEAVING before the loads of the tails.  The core orders its stores of the
     * tails before its load of the state; so at least one side sees the other's store. */
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

/* collective.  Takes the cancels and items of a look.  Returns whether there were any. */
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
        /* The next look covers the rest, and items that are not complete yet. */
        if (n < own.width || look.tail - own.head < ITEMS_IN_LOOK)
            return true;
        some = true;
    }
    if (look.tail != own.head && !own.stopped && !p.by_blocks) {
        fence_system(); /* orders the load of the tail before those of the items */
        for (unsigned i = 0; i < TAKES_AT_ONCE && look.tail != own.head; i++)
            take_items(p, own, look.tail, now);
        some = true;
    }
    return some;
}

/*
 * collective.  Nothing runs.  Returns whether the kernel leaves; then the state says so.
 */
WHARF_DEVICE bool decide(const epoch_params &p, const poller &own, uint32_t now)
{
    bool is_idle = now - own.active_ns >= p.idle_ns;
    if (is_idle || own.stopped)
        tell_kind(p, own, now);
    if (is_idle && leave_if_still_idle(p, own))
        return true;
    if (!own.stopped)
        return false;
    tell_state(p, WHARF_WORK_OUT_MORE);
    return true;
}

/* collective.  Whether the kernel's stay, or its batch, has ended. */
WHARF_DEVICE bool stay_is_over(const epoch_params &p, const poller &own, uint32_t now)
{
    if (p.per_batch)
        return (int32_t)(own.head - own.batch_end) >= 0;
    return p.stay_ns && now - own.start_ns >= p.stay_ns;
}

/* collective.  The loop of looking, taking and deciding; returns how the kernel leaves.  A turn
 * takes as long as loading the host's words: about a microsecond. */
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
        uint32_t n_new = look.tail - own.head;
        compare_kernels(p, own, look, now);
        if (take_some(p, own, look, now) || look.n_ended != own.head)
            own.active_ns = now;
        else if (decide(p, own, now))
            return LEAVING_WHEN_DONE;
        own.width = n_new > ITEMS_IN_IDLE_LOOK ? ITEMS_IN_LOOK : ITEMS_IN_IDLE_LOOK;
        own.stopped |= stay_is_over(p, own, now);
        if (own.stopped && !stopped)
            tell_warps(p, own, LEAVING_WHEN_DONE);
        if (lane_id() == 0)
            pause_poll();
        /* Without this the loop would end with one lane's branch, at which the compiler assumes
         * that lanes part: KERNELS.md, rule 9. */
        syncwarp();
    }
}

/* collective.  Cancels all items that may run, so that no decode delays a kernel that quits. */
WHARF_DEVICE void cancel_all(const epoch_params &p)
{
    for (uint32_t base = 0; base < p.queue.n_entries; base += 32) {
        epoch_slot *slot = &p.slots[base + lane_id()];
        store_shared_by_device(&slot->cancelled,
                               cancel_word(load(&slot->index), load(&slot->item.attempt)));
    }
}

/* collective.  The polling warp's life. */
WHARF_DEVICE void poll(const epoch_params &p)
{
    uint32_t now = poll_time();
    poller own = {};
    own.head = p.control->head;
    own.cancel_head = p.control->cancel_head;
    /* All items taken before have ended, or the last kernel would not have left. */
    own.n_passed = own.head - p.control->n_done;
    own.n_tasks = p.control->n_tasks;
    own.start_ns = own.active_ns = own.beat_ns = now;
    own.width = ITEMS_IN_LOOK;
    own.many_ns = p.control->many_ns;
    leaving_how how = poll_until_done(p, own);
    tell_warps(p, own, how);
    if (how == QUITTING) {
        cancel_all(p);
        tell_state(p, WHARF_WORK_OUT_MORE);
    }
    syncwarp(); /* all have read them */
    if (lane_id() == 0) {
        store(&p.control->head, own.head);
        store(&p.control->cancel_head, own.cancel_head);
        store(&p.control->many_ns, own.many_ns);
    }
}

} // namespace wharf

#endif
