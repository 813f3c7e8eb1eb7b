/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_warp.cuh: what each warp of an epoch kernel does: the first polls, the others draw a
 * ticket, wait for its task, do it, and draw the next.
 */
#ifndef WHARF_KERNELS_EPOCH_WARP_CUH
#define WHARF_KERNELS_EPOCH_WARP_CUH

#include "kernels/batch_warp.cuh"
#include "kernels/epoch_copy.cuh"
#include "kernels/epoch_poll.cuh"

namespace wharf
{

/*
 * How long a warp sleeps between two looks for its task: its turn comes after `distance` others',
 * and thousands of warps that look all the time would be in the way of those with work.  The
 * next 16 look all the time; the last of 4000 every 16 us.
 */
WHARF_DEVICE unsigned sleep_for(uint32_t distance)
{
    return distance < 16 ? 0 : distance < 4000 ? 4 * distance : 16000;
}

/*
 * collective.  Waits for the task of a ticket.  Returns its word, or 0 if it is not to come.
 */
WHARF_DEVICE uint64_t await_task(const epoch_params &p, uint32_t ticket)
{
    for (;;) {
        uint64_t word = 0, told = 0;
        if (lane_id() == 0) {
            word = load_shared_by_device(task_at(p, ticket));
            told = load_shared_by_device(pair_at(&p.control->n_tasks));
        }
        word = shfl(word, 0);
        told = shfl(told, 0);
        uint32_t leaving = (uint32_t)(told >> 32);
        if (leaving == QUITTING)
            return 0;
        if ((word & TASK_VALID) && (uint32_t)(word >> 32) == ticket) {
            fence_device(); /* the load of the word, before those of the slot */
            syncwarp();
            return word;
        }
        uint32_t distance = ticket - (uint32_t)told;
        bool to_come = (int32_t)distance < 0;
        if (leaving && !to_come)
            return 0;
        unsigned ns = to_come ? 0 : sleep_for(distance);
        if (lane_id() == 0)
            sleep_ns(ns);
    }
}

/* An item in a warp's hands, the same in all lanes. */
struct task_item {
    epoch_slot *slot;
    uint32_t begun_ns, fetched_ns, decoded_ns, moved_ns;
};

/* collective. */
WHARF_DEVICE bool is_cancelled(const epoch_slot *slot)
{
    uint64_t word = lane_id() == 0 ? load_shared_by_device(&slot->cancelled) : 0;
    return shfl(word, 0) == cancel_word(load(&slot->index), load(&slot->item.attempt));
}

/* collective. */
WHARF_DEVICE uint32_t now_ns()
{
    return shfl((uint32_t)time_ns(), 0);
}

/*
 * collective.  Completes an item, in the ring of those done or of those to be moved, by the quads
 * of struct wharf_work_completion.  All that the warp stored, and what it knows that others stored,
 * is in the host's memory before.
 */
WHARF_DEVICE void complete(const epoch_params &p, const task_item &task, const verdict &v)
{
    const epoch_slot *slot = task.slot;
    uint32_t lane = lane_id();
    bool to_move = v.result == WHARF_OK && slot->item.output == WHARF_WORK_TO_STAGING &&
                   slot->item.opcode == WHARF_WORK_DECODE;
    uint32_t index = load(&slot->index), attempt = load(&slot->item.attempt);
    uint32_t taken_ns = load(&slot->taken_ns);
    uint32_t n = 0;
    syncwarp(); /* every lane's stores, before the fences */
    if (lane == 0)
        n = atomic_add(to_move ? &p.control->n_to_move : &p.control->n_done, 1);
    fence_system();
    n = shfl(n, 0);
    wharf_work_completion *to =
        &(to_move ? p.queue.to_move : p.queue.done)[n & (p.queue.n_entries - 1)];
    u32x4 quad = {index, attempt, v.bit_offset, n + 1};
    if (lane == 1)
        quad = {v.in_nbytes, v.out_nbytes, v.result | v.reason << 16, n + 1};
    if (lane == 2)
        quad = {p.epoch, task.begun_ns - taken_ns, task.fetched_ns - task.begun_ns, n + 1};
    if (lane == 3)
        quad = {task.decoded_ns - task.fetched_ns, task.moved_ns - task.decoded_ns, 0, n + 1};
    if (lane < 4)
        store_quad_shared_with_host(reinterpret_cast<u32x4 *>(to) + lane, quad);
    syncwarp();
}

/* collective.  What the item's flags make of a good decode. */
WHARF_DEVICE verdict settle_item(const wharf_work_item &item, const uint8_t *output,
                                 const verdict &v)
{
    wharf_device_chunk chunk = {};
    chunk.out = const_cast<uint8_t *>(output);
    chunk.in_nbytes = item.src_nbytes;
    chunk.out_avail = item.dst_nbytes;
    chunk.flags = item.flags;
    chunk.checksum = item.checksum;
    return settle(chunk, v);
}

/* ---- stored items: slices -------------------------------------------------------------------- */

/* What to add to a slot's n_slices_left: one less to come; and besides, one more not copied. */
constexpr uint32_t ENDED_SLICE = 0xffffffff;
constexpr uint32_t STOPPED_SLICE = 0x0000ffff;

/* collective.  Copies a slice.  The warp that ends the last one completes the item. */
WHARF_DEVICE void run_slice(const epoch_params &p, epoch_slot *slot, uint32_t slice)
{
    const wharf_work_item &item = slot->item;
    /* Slices of equal size but the last, in whole lines of 128 bytes. */
    uint32_t each =
        (uint32_t)round_up((item.src_nbytes + slot->n_slices - 1) / slot->n_slices, 128);
    uint32_t begin = each * slice < item.src_nbytes ? each * slice : item.src_nbytes;
    uint32_t left = item.src_nbytes - begin;
    /* All of these are on their way together. */
    uint64_t cancelled = lane_id() == 0 ? load_shared_by_device(&slot->cancelled) : 0;
    uint32_t index = load(&slot->index), attempt = load(&item.attempt);
    task_item task = {slot, now_ns(), 0, 0, 0};
    bool stopped = shfl(cancelled, 0) == cancel_word(index, attempt);

    if (!stopped) {
        uint64_t to = item.output == WHARF_WORK_TO_STAGING ? item.staging : item.dst;
        copy_from_host(reinterpret_cast<uint8_t *>(to) + begin,
                       reinterpret_cast<const uint8_t *>(item.src) + begin,
                       left < each ? left : each);
    }
    syncwarp();
    uint32_t before = 0;
    if (lane_id() == 0) {
        fence_system(); /* the slice, before it is counted as done */
        before = atomic_add(&slot->n_slices_left, stopped ? STOPPED_SLICE : ENDED_SLICE);
    }
    before = shfl(before, 0);
    if ((before & 0xffff) != 1)
        return;
    stopped |= before >> 16 != 0;
    task.fetched_ns = task.decoded_ns = task.begun_ns;
    task.moved_ns = now_ns();
    /* decode_item's verdict for stored chunks. */
    complete(p, task,
             stopped ? bad(WHARF_CANCELLED, WHARF_REASON_NONE, 0)
                     : settle_item(item, nullptr, good(item.src_nbytes, item.src_nbytes)));
}

/* ---- everything else ------------------------------------------------------------------------- */

/* One warp's memory: the decoder's scratch, then a copy of the input, then the output. */
struct warp_scratch {
    uint8_t *decoder, *input, *output;
};

template <typename Codec>
WHARF_DEVICE warp_scratch scratch_of(const epoch_params &p, uint32_t warp)
{
    uint8_t *decoder = p.scratch + warp * p.scratch_nbytes;
    uint8_t *input = decoder + kernel_shape<Codec>::SCRATCH_NBYTES;
    return {decoder, input, input + copy_nbytes(p.chunk_nbytes)};
}

/* Where in a buffer aligned to 256 a copy begins that is aligned as `address` is. */
WHARF_DEVICE uint8_t *aligned_as(uint8_t *buffer, uint64_t address)
{
    return buffer + (address & 127);
}

/* The image of the registered model that an item's parameter stands for, or NULL. */
WHARF_DEVICE const uint8_t *model_of(const epoch_params &p, uint32_t parameter)
{
    uint32_t place = parameter - WHARF_FIRST_MODEL;
    return place < WHARF_EPOCH_MAX_MODELS
               ? reinterpret_cast<const uint8_t *>(load_shared_by_device(&p.models[place]))
               : nullptr;
}

/* collective.  Brings the input here, decodes it, and takes the output where it belongs. */
template <typename Codec>
WHARF_DEVICE verdict decode_item(const epoch_params &p, typename Codec::shared &s,
                                 const warp_scratch &scratch, task_item &task)
{
    const wharf_work_item &item = task.slot->item;
    if (item.src_nbytes > p.chunk_nbytes || item.dst_nbytes > p.chunk_nbytes)
        return bad(WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_RANGE, 0);
    uint8_t *input = aligned_as(scratch.input, item.src);
    copy_from_host(input, reinterpret_cast<const uint8_t *>(item.src), item.src_nbytes);
    syncwarp();
    task.fetched_ns = now_ns();

    uint8_t *output =
        reinterpret_cast<uint8_t *>(item.output == WHARF_WORK_TO_STAGING ? item.staging : item.dst);
    if (item.output == WHARF_WORK_TO_HOST)
        output = aligned_as(scratch.output, item.dst);
    chunk_job job = {
        fresh_pointer(input),
        item.src_nbytes,
        output,
        item.dst_nbytes,
        item.parameter,
        model_of(p, item.parameter),
        scratch.decoder,
        step_budget(item.src_nbytes, item.dst_nbytes),
        {&task.slot->cancelled, cancel_word(load(&task.slot->index), load(&item.attempt))}};
    verdict v = settle_item(item, output, Codec::decode(s, item.codec, job));
    syncwarp();
    task.decoded_ns = now_ns();
    if (is_cancelled(task.slot))
        return bad(WHARF_CANCELLED, WHARF_REASON_NONE, 0);
    if (v.result == WHARF_OK && item.output == WHARF_WORK_TO_HOST)
        copy_to_host(reinterpret_cast<uint8_t *>(item.dst), fresh_pointer(output), v.out_nbytes);
    return v;
}

/* collective.  For tests: what must not happen, happens. */
WHARF_DEVICE_NOINLINE void misbehave(uint32_t opcode)
{
    /* No page is mapped there, on the GPU as on the CPU. */
    if (opcode == WHARF_WORK_FAULT && lane_id() == 0)
        store(fresh_pointer(reinterpret_cast<uint32_t *>(16)), 0u);
    while (opcode == WHARF_WORK_HANG)
        sleep_ns(100000);
}

template <typename Codec>
WHARF_DEVICE void run_item(const epoch_params &p, typename Codec::shared &s,
                           const warp_scratch &scratch, epoch_slot *slot)
{
    task_item task = {slot, now_ns(), 0, 0, 0};
    verdict v = good(0, 0);

    task.fetched_ns = task.decoded_ns = task.begun_ns;
    if (is_cancelled(slot))
        v = bad(WHARF_CANCELLED, WHARF_REASON_NONE, 0);
    else if (slot->item.opcode == WHARF_WORK_DECODE)
        v = decode_item<Codec>(p, s, scratch, task);
    else if (p.faults)
        misbehave(slot->item.opcode);
    task.moved_ns = now_ns();
    complete(p, task, v);
}

/* collective.  A warp leaves; the last one makes things ready for the next epoch. */
WHARF_DEVICE void leave(const epoch_params &p)
{
    syncwarp();
    if (lane_id() != 0)
        return;
    fence_device(); /* what this warp did to the words below, before it counts as gone */
    if (atomic_add(&p.control->n_left, 1) != p.n_warps - 1)
        return;
    fence_device();
    /* Of tickets that were drawn, those whose tasks did not come are void. */
    store(&p.control->n_tickets, load_shared_by_device(&p.control->n_tasks));
    store(&p.control->leaving, (uint32_t)STAYING);
    store(&p.control->n_left, 0u);
}

/* collective.  Warp number `warp` of p.n_warps, at least two, all of which must run. */
template <typename Codec>
WHARF_DEVICE void run_epoch_warp(typename Codec::shared &s, const epoch_params &p, uint32_t warp)
{
    if (warp == 0) {
        poll(p);
        leave(p);
        return;
    }
    for (;;) {
        uint32_t ticket = lane_id() == 0 ? atomic_add(&p.control->n_tickets, 1) : 0;
        uint64_t word = await_task(p, shfl(ticket, 0));
        if (!word)
            break;
        epoch_slot *slot = fresh_pointer(&p.slots[task_slot(word)]);
        if (is_copy(slot->item.opcode, slot->item.codec, slot->item.flags, slot->item.src_nbytes,
                    slot->item.dst_nbytes))
            run_slice(p, slot, task_slice(word));
        else
            run_item<Codec>(p, s, scratch_of<Codec>(p, warp), slot);
    }
    leave(p);
}

} // namespace wharf

#endif
