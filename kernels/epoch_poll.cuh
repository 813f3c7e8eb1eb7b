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

/* Items that a warp loads at once, a quad a lane. */
constexpr uint32_t ITEMS_AT_ONCE = 8;
/* Such loads between two looks at the other words. */
constexpr unsigned TAKES_AT_ONCE = 16;
/* The host hears so often that somebody polls. */
constexpr uint32_t BEAT_NS = 100000;

/* What one look shows; the same in all lanes. */
struct poll_look {
    uint32_t tail, cancel_tail;
    uint32_t quit, park;
    uint32_t n_ended; /* items that are completed or to be moved */
};

struct poller {
    uint32_t head, cancel_head; /* taken */
    uint32_t n_tasks;           /* published */
    uint32_t n_beats;
    uint32_t start_ns, active_ns, beat_ns;
    bool stopped; /* takes no more */
};

/* collective.  Three words, on their way at the same time. */
WHARF_DEVICE poll_look poll_words(const epoch_params &p)
{
    uint32_t lane = lane_id();
    uint32_t *from = lane == 0   ? &p.queue.front->tail
                     : lane == 1 ? &p.queue.worker->quit
                                 : &p.control->n_done;
    uint64_t pair = lane < 3 ? load_shared_with_host(pair_at(from)) : 0;
    uint64_t tails = shfl(pair, 0), orders = shfl(pair, 1), ended = shfl(pair, 2);
    return {(uint32_t)tails, (uint32_t)(tails >> 32), (uint32_t)orders, (uint32_t)(orders >> 32),
            (uint32_t)ended + (uint32_t)(ended >> 32)};
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
 * collective.  Publishes the tasks of the items that the warp has just loaded: lane 4i holds the
 * number of item i's slices, other lanes 0.  The items are in their slots, and fenced.
 */
WHARF_DEVICE void publish_tasks(const epoch_params &p, poller &own, uint32_t n_slices)
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
            uint32_t slot = (own.head + item) & (p.queue.n_entries - 1);
            uint32_t number = own.n_tasks + task;
            store_shared_by_device(task_at(p, number), task_word(number, slot, task - first));
        }
    }
    own.n_tasks += total;
}

/* collective.  Takes up to ITEMS_AT_ONCE items of those before `tail`. */
WHARF_DEVICE void take_items(const epoch_params &p, poller &own, uint32_t tail, uint32_t now)
{
    uint32_t n = tail - own.head;
    n = n < ITEMS_AT_ONCE ? n : ITEMS_AT_ONCE;
    uint32_t lane = lane_id();
    uint32_t index = own.head + lane / 4;
    uint32_t place = index & (p.queue.n_entries - 1);
    bool some = lane / 4 < n;
    u32x4 quad = {0, 0, 0, 0};
    if (some) {
        quad = load_shared_with_host(reinterpret_cast<const u32x4 *>(&p.queue.items[place]) +
                                     lane % 4);
        store(reinterpret_cast<u32x4 *>(&p.slots[place].item) + lane % 4, quad);
    }
    /* Members of struct wharf_work_item by their offsets: 24, 28, 40, 44. */
    uint32_t src_nbytes = shfl(quad.z, (lane & ~3u) + 1);
    uint32_t dst_nbytes = shfl(quad.w, (lane & ~3u) + 1);
    uint32_t codec = shfl(quad.z, (lane & ~3u) + 2) & 0xffff;
    uint32_t rest = shfl(quad.w, (lane & ~3u) + 2);
    uint32_t n_slices = 0;
    if (some && lane % 4 == 0) {
        epoch_slot *slot = &p.slots[place];
        bool copy = is_copy(rest >> 16 & 0xff, codec, rest & 0xffff, src_nbytes, dst_nbytes);
        n_slices = copy ? n_slices_of(src_nbytes) : 1;
        store(&slot->index, index);
        store(&slot->taken_ns, now);
        store(&slot->n_slices, n_slices);
        store(&slot->n_slices_left, n_slices);
        store(&slot->slices_stopped, 0u);
    }
    syncwarp();
    fence_device(); /* the slots, before the tasks that name them */
    publish_tasks(p, own, n_slices);
    own.head += n;
    tell_warps(p, own, STAYING);
    if (lane == 0)
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
    fence_system();
    syncwarp();
    poll_look look = poll_words(p);
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
WHARF_DEVICE bool stay_is_over(const epoch_params &p, const poller &own, uint32_t tail,
                               uint32_t now)
{
    if (p.per_batch)
        return own.head == tail;
    return p.stay_ns && now - own.start_ns >= p.stay_ns;
}

/* collective.  Turns of looking, taking and deciding; how the kernel leaves.  A turn takes as long
 * as the look at the host's words: about a microsecond. */
WHARF_DEVICE leaving_how poll_until_done(const epoch_params &p, poller &own)
{
    for (;;) {
        poll_look look = poll_words(p);
        uint32_t now = poll_time();
        beat(p, own, now);
        if (look.quit)
            return QUITTING;
        bool stopped = own.stopped;
        own.stopped |= look.park != 0;
        if (take_some(p, own, look, now) || look.n_ended != own.head)
            own.active_ns = now;
        else if (decide(p, own, now))
            return LEAVING_WHEN_DONE;
        own.stopped |= stay_is_over(p, own, look.tail, now);
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
    poller own = {
        p.control->head, p.control->cancel_head, p.control->n_tasks, 0, now, now, now, false};
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
