/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_warp.cuh: what each warp of an epoch kernel does: the first polls, the others draw a
 * ticket, wait for its task, do it, and draw the next.
 */
#ifndef WHARF_KERNELS_EPOCH_WARP_CUH
#define WHARF_KERNELS_EPOCH_WARP_CUH

#include "kernels/batch_warp.cuh"
#include "kernels/epoch_copy.cuh"
#include "kernels/epoch_memo.cuh"
#include "kernels/epoch_poll.cuh"

namespace wharf
{

/*
 * How long a warp sleeps between two polls of its task, when `distance` tasks come before it.
 * Thousands of warps that polled constantly would slow down those with work.  The next 16 warps
 * poll constantly, the last of 4000 every 16 us.
 */
WHARF_DEVICE unsigned sleep_for(uint32_t distance)
{
    return distance < 16 ? 0 : distance < 4000 ? 4 * distance : 16000;
}

/*
 * collective.  Waits for the task of a ticket.  Returns its word, or 0 if it will not come.
 */
WHARF_DEVICE uint64_t await_task(const epoch_params &p, uint32_t ticket)
{
    for (;;) {
        uint64_t word = 0, told = 0;
        if (lane_id() == 0) {
            word = load_shared_by_device(task_at(p, ticket));
            told = load_shared_by_device(pair_at(&p.control->n_tasks));
        }
        word = from_lane<0>(word);
        told = from_lane<0>(told);
        uint32_t leaving = (uint32_t)(told >> 32);
        if (leaving == QUITTING)
            return 0;
        if ((word & TASK_VALID) && (uint32_t)(word >> 32) == ticket)
            return word;
        uint32_t distance = ticket - (uint32_t)told;
        bool to_come = (int32_t)distance < 0;
        if (leaving && !to_come)
            return 0;
        sleep_ns(to_come ? 0 : sleep_for(distance));
    }
}

/* A warp's loads of a slot. */
struct slot_look {
    u32x4 quad; /* lane k has quad k of it */
    uint64_t cancelled;
};

/* collective.  Loads a slot until it has the item that a task's word names. */
WHARF_DEVICE slot_look look_at_slot(const epoch_slot *slot, uint64_t word)
{
    const u32x4 *quads = reinterpret_cast<const u32x4 *>(slot);
    uint32_t lane = lane_id();
    for (;;) {
        slot_look look = {{0, 0, 0, 0}, 0};
        if (lane < SLOT_QUADS)
            look.quad = load_quad_shared_by_device(quads + lane);
        if (lane == SLOT_QUADS)
            look.cancelled = load_shared_by_device(&slot->cancelled);
        bool missing = lane < SLOT_QUADS && item_bits(look.quad.w - 1) != task_item_bits(word);
        if (!any_lane(missing)) {
            look.cancelled = from_lane<SLOT_QUADS>(look.cancelled);
            return look;
        }
    }
}

/* A warp's item, the same in all lanes. */
struct task_item {
    epoch_slot *slot;
    uint32_t index, attempt, taken_ns;
    uint32_t part; /* what the completion says of a part, or of kept chunks */
    uint32_t begun_ns, fetched_ns, decoded_ns, moved_ns;
};

/* collective. */
WHARF_DEVICE bool is_cancelled(const epoch_slot *slot)
{
    uint64_t word = lane_id() == 0 ? load_shared_by_device(&slot->cancelled) : 0;
    return from_lane<0>(word) == cancel_word(load(&slot->index), load(&slot->item.attempt));
}

/* collective. */
WHARF_DEVICE uint32_t now_ns()
{
    return from_lane<0>((uint32_t)time_ns());
}

/*
 * collective.  Completes an item, by the quads of struct wharf_work_completion.  Fences first, so
 * that all the warp's stores are visible to the host, unless is_fenced says that they are.
 */
WHARF_DEVICE void complete(const epoch_params &p, const task_item &task, const verdict &v,
                           bool is_fenced)
{
    uint32_t lane = lane_id();
    uint32_t n = 0;
    syncwarp(); /* every lane's stores, before the fences */
    if (lane == 0)
        n = atomic_add(&p.control->n_done, 1);
    if (!is_fenced)
        fence_system();
    n = from_lane<0>(n);
    wharf_work_completion *to = &p.queue.done[n & (p.queue.n_entries - 1)];
    u32x4 quad = {task.index, task.attempt, v.bit_offset, n + 1};
    if (lane == 1)
        quad = {v.in_nbytes, v.out_nbytes, v.result | v.reason << 16, n + 1};
    if (lane == 2)
        quad = {p.epoch, task.begun_ns - task.taken_ns, task.fetched_ns - task.begun_ns, n + 1};
    if (lane == 3)
        quad = {task.decoded_ns - task.fetched_ns, task.moved_ns - task.decoded_ns, task.part,
                n + 1};
    if (lane < 4)
        store_quad_shared_with_host(reinterpret_cast<u32x4 *>(to) + lane, quad);
    syncwarp();
}

/* collective.  Applies the item's flags to a good decode. */
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

/* Increments of a slot's n_ended: for an ended slice, and for one that was not copied. */
constexpr uint32_t ENDED_SLICE = 0x00000001;
constexpr uint32_t STOPPED_SLICE = 0x00010001;

/* A stored item, the same in all lanes. */
struct copy_item {
    uint64_t from, to;
    uint32_t nbytes, out_avail;
    uint32_t flags;
};

/* collective.  By the members' offsets in struct epoch_slot. */
WHARF_DEVICE copy_item copy_item_of(const u32x4 &quad, task_item *task)
{
    uint64_t src = pair_of(from_lane<0>(quad.x), from_lane<0>(quad.y));
    uint64_t dst = pair_of(from_lane<1>(quad.x), from_lane<1>(quad.y));
    uint32_t rest = from_lane<3>(quad.z);
    task->index = from_lane<4>(quad.x);
    task->attempt = from_lane<2>(quad.z);
    task->taken_ns = from_lane<4>(quad.y);
    return {src, dst, from_lane<0>(quad.z), from_lane<1>(quad.z), rest & 0xffff};
}

/* collective.  is_copy for the item of a loaded slot. */
WHARF_DEVICE bool is_copy_slot(const u32x4 &quad)
{
    uint32_t rest = from_lane<3>(quad.z);
    return is_copy(rest >> 16 & 0xff, from_lane<3>(quad.y) & 0xffff, rest & 0xffff,
                   from_lane<0>(quad.z), from_lane<1>(quad.z));
}

/* collective.  Counts a slice as ended.  Returns whether it was the item's last one, and then
 * whether any slice was not copied. */
WHARF_DEVICE bool end_slice(epoch_slot *slot, uint32_t n_slices, bool *stopped)
{
    uint32_t before = 0;
    if (n_slices == 1)
        return true;
    syncwarp();
    if (lane_id() == 0) {
        fence_system(); /* orders the slice before its count */
        before = atomic_add(&slot->n_ended, *stopped ? STOPPED_SLICE : ENDED_SLICE);
    }
    before = from_lane<0>(before);
    if ((before & 0xffff) != n_slices - 1)
        return false;
    /* Reset for the slot's next item, which comes after this one's completion. */
    if (lane_id() == 0)
        store_shared_by_device(&slot->n_ended, 0u);
    *stopped |= before >> 16 != 0;
    return true;
}

/* collective.  Copies a slice.  The warp that ends the last one completes the item. */
WHARF_DEVICE void run_slice(const epoch_params &p, epoch_slot *slot, const slot_look &look,
                            uint32_t slice)
{
    task_item task = {slot, 0, 0, 0, 0, now_ns(), 0, 0, 0};
    copy_item item = copy_item_of(look.quad, &task);
    uint32_t n_slices = n_slices_of(item.nbytes);
    /* Slices of equal size except the last one, in whole lines of 128 bytes. */
    uint32_t each = (uint32_t)round_up((item.nbytes + n_slices - 1) / n_slices, 128);
    uint32_t begin = each * slice < item.nbytes ? each * slice : item.nbytes;
    uint32_t left = item.nbytes - begin;
    bool stopped = look.cancelled == cancel_word(task.index, task.attempt);

    if (!stopped)
        copy_from_host(reinterpret_cast<uint8_t *>(item.to) + begin,
                       reinterpret_cast<const uint8_t *>(item.from) + begin,
                       left < each ? left : each);
    if (!end_slice(slot, n_slices, &stopped))
        return;
    task.fetched_ns = task.decoded_ns = task.begun_ns;
    task.moved_ns = now_ns();
    /* decode_item's verdict for stored chunks. */
    verdict v = good(item.nbytes, item.nbytes);
    if ((item.flags & WHARF_JOB_EXACT_OUTPUT) && item.nbytes != item.out_avail)
        v = bad(WHARF_OUTPUT_SHORT, WHARF_REASON_OUTPUT_MISSING, 8 * item.nbytes);
    /* Each warp, including this one, has fenced its slice before it counted it.  A second fence
     * would cost 1.7 us. */
    complete(p, task, stopped ? bad(WHARF_CANCELLED, WHARF_REASON_NONE, 0) : v, n_slices > 1);
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

/* Where an item is decoded: in the warp's memory, or in a large item's own place. */
struct item_room {
    warp_scratch scratch;
    uint32_t most_nbytes; /* of input, and of output */
};

/* collective. */
WHARF_DEVICE item_room room_of(const epoch_params &p, const warp_scratch &scratch,
                               const wharf_work_item &item)
{
    if (!any_lane(item.opcode == WHARF_WORK_DECODE_LARGE))
        return {scratch, p.chunk_nbytes};
    uint8_t *place = reinterpret_cast<uint8_t *>(item.staging);
    return {{scratch.decoder, place, place + copy_nbytes(item.src_nbytes)}, MAX_CHUNK_NBYTES};
}

/* The start of a copy with the alignment of `address`, in a buffer aligned to 256. */
WHARF_DEVICE uint8_t *aligned_as(uint8_t *buffer, uint64_t address)
{
    return buffer + (address & 127);
}

/* The image of the registered model that an item's parameter names, or NULL. */
WHARF_DEVICE const uint8_t *model_of(const epoch_params &p, uint32_t parameter)
{
    uint32_t place = parameter - WHARF_FIRST_MODEL;
    return place < WHARF_EPOCH_MAX_MODELS
               ? reinterpret_cast<const uint8_t *>(load_shared_by_device(&p.models[place]))
               : nullptr;
}

/* A team that decodes an item: one warp, alone.  One that does not memoize has none of the code for
 * chunks that are kept. */
template <typename Codec, bool DOES_MEMOIZE>
struct lone_warp {
    static constexpr uint32_t WARPS = 1;
    static constexpr bool TAKES_PARTS = true;
    static constexpr bool MEMOIZES = DOES_MEMOIZE;
    typename Codec::shared &s;

    WHARF_DEVICE_MEMBER void copy_in(uint8_t *to, const uint8_t *from, uint32_t nbytes) const
    {
        copy_from_host(to, from, nbytes);
        syncwarp();
    }
    WHARF_DEVICE_MEMBER verdict decode(uint32_t codec, const chunk_job &job) const
    {
        return Codec::decode(s, codec, job);
    }
    WHARF_DEVICE_MEMBER verdict decode_part(uint32_t codec, part_job &part) const
    {
        return Codec::decode_part(s, codec, part);
    }
    WHARF_DEVICE_MEMBER void copy_out(uint8_t *to, const uint8_t *from, uint32_t nbytes) const
    {
        copy_to_host(to, from, nbytes);
    }
};

/* The word by which decoders are stopped. */
WHARF_DEVICE stop_word stop_of(const epoch_slot *slot)
{
    return {&slot->cancelled, cancel_word(load(&slot->index), load(&slot->item.attempt))};
}

/* The number of teams that have n warps in total. */
template <typename Team>
WHARF_DEVICE uint32_t most_teams(uint32_t most_warps)
{
    return (most_warps + Team::WARPS - 1) / Team::WARPS;
}

/* An output's place on the device, and its destination in host memory. */
struct output_way {
    uint8_t *to;
    const uint8_t *from;
};

/* collective.  Stores a verdict's output to host memory, if that is its destination and the item
 * was not cancelled. */
template <typename Team>
WHARF_DEVICE verdict take_out(const epoch_params &p, const Team &team, const epoch_slot *slot,
                              const verdict &v, bool to_host, const output_way &way)
{
    uint32_t most = to_host ? uniform(most_teams<Team>(p.most_out)) : 0;
    enter_in_order(&p.control->out, most, stop_of(slot));
    bool stopped = is_cancelled(slot);
    if (to_host && !stopped)
        team.copy_out(way.to, way.from, v.out_nbytes);
    leave_in_order(&p.control->out, most);
    return stopped ? bad(WHARF_CANCELLED, WHARF_REASON_NONE, 0) : v;
}

/* collective.  Fetches the input, decodes it, and stores the output.  Team is lone_warp or
 * block_team. */
template <typename Team>
WHARF_DEVICE verdict decode_item(const epoch_params &p, const Team &team, const item_room &room,
                                 task_item &task)
{
    const wharf_work_item &item = task.slot->item;
    const warp_scratch &scratch = room.scratch;
    if (item.src_nbytes > room.most_nbytes || item.dst_nbytes > room.most_nbytes)
        return bad(WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_SIZE, 0);
    uint8_t *input = aligned_as(scratch.input, item.src);
    team.copy_in(input, reinterpret_cast<const uint8_t *>(item.src), item.src_nbytes);
    task.fetched_ns = now_ns();

    bool memoizes = may_be_kept<Team>(p, item);
    uint8_t *output = reinterpret_cast<uint8_t *>(item.dst);
    if (item.output == WHARF_WORK_TO_HOST || memoizes)
        output = aligned_as(scratch.output, item.dst);
    memo_look look = {};
    if (memoizes)
        look = look_for_chunk(p, task.slot, input);
    bool is_hit = any_lane(look.entry != nullptr);
    chunk_job job = {uniform_global(fresh_pointer(input)),
                     item.src_nbytes,
                     output,
                     item.dst_nbytes,
                     item.parameter,
                     model_of(p, item.parameter),
                     scratch.decoder,
                     step_budget(item.src_nbytes, item.dst_nbytes),
                     stop_of(task.slot)};
    verdict v = is_hit ? copy_kept(team, look, output) : team.decode(item.codec, job);
    syncwarp();
    if (may_be_kept<Team>(p, item)) {
        if (any_lane(v.result == WHARF_OK && load(&task.slot->memo) == WHARF_MEMO_LOOKED))
            keep_chunk(p, team, task.slot, input, output, v);
        task.part = load(&task.slot->memo);
    }
    v = settle_item(item, output, v);
    syncwarp();
    task.decoded_ns = now_ns();
    bool is_good = any_lane(v.result == WHARF_OK);
    bool to_host = is_good && any_lane(item.output == WHARF_WORK_TO_HOST);
    if (is_good && !to_host && may_be_kept<Team>(p, item))
        team.copy_in(reinterpret_cast<uint8_t *>(item.dst), output, v.out_nbytes);
    return take_out(p, team, task.slot, v, to_host,
                    {reinterpret_cast<uint8_t *>(item.dst), fresh_pointer(output)});
}

/* The result of a part of a chunk. */
struct part_end {
    verdict v;
    uint32_t decoded_ns, part; /* as in struct task_item */
};

/* collective.  The same for a part of a chunk, whose slot has good sizes. */
template <typename Team>
WHARF_DEVICE part_end decode_good_part(const epoch_params &p, const Team &team,
                                       const warp_scratch &scratch, epoch_slot *slot)
{
    const wharf_work_item &item = slot->item;
    bool to_host = any_lane(item.output == WHARF_WORK_TO_HOST);
    part_job part = {};
    part.number = (uint32_t)item.staging;
    part.n_parts = (uint32_t)(item.staging >> 32);
    part.input.init(reinterpret_cast<const uint8_t *>(item.src), scratch.input,
                    (uint32_t)copy_nbytes(p.chunk_nbytes));
    part.to = item.dst;
    part.output = to_host ? scratch.output : nullptr;
    part.room = p.chunk_nbytes;
    part.chunk = {nullptr,         item.src_nbytes,
                  nullptr,         item.dst_nbytes,
                  item.parameter,  model_of(p, item.parameter),
                  scratch.decoder, step_budget(item.src_nbytes, item.dst_nbytes),
                  stop_of(slot)};
    part_end end = {team.decode_part(uniform(item.codec), part), 0, 0};
    syncwarp();
    end.decoded_ns = now_ns();
    end.part = part.flaw;
    bool is_good = any_lane(end.v.result == WHARF_OK);
    if (is_good && any_lane(item.flags & WHARF_JOB_CHECKSUM)) {
        crc32_sum sum;
        sum.init(uniform_global(part.built));
        end.part = sum.finish(uniform(end.v.out_nbytes));
    }
    end.v = take_out(
        p, team, slot, end.v, to_host && is_good,
        {reinterpret_cast<uint8_t *>(item.dst) + end.v.bit_offset, fresh_pointer(part.built)});
    if (end.v.result == WHARF_CANCELLED)
        end.part = 0;
    return end;
}

/*
 * collective.  For any part: the decoder itself fetches the input that it needs.  Not inlined, so
 * that its registers do not reduce those of other code.  Arguments and result are values: an item
 * passed by address would be in each lane's local memory, where the compiler considers nothing
 * uniform.
 */
template <typename Team>
WHARF_DEVICE_NOINLINE part_end decode_part_item(const epoch_params &p, Team team,
                                                warp_scratch scratch, epoch_slot *slot)
{
    slot = uniform_global(slot);
    const wharf_work_item &item = slot->item;
    if (any_lane(item.src_nbytes > MAX_CHUNK_NBYTES || item.dst_nbytes > MAX_CHUNK_NBYTES))
        return {part_refused(), now_ns(), 0};
    return decode_good_part(p, team, scratch, slot);
}

/* collective.  For tests: causes a fault or a hang. */
WHARF_DEVICE_NOINLINE void misbehave(uint32_t opcode)
{
    /* No page is mapped there, on the GPU as on the CPU. */
    if (opcode == WHARF_WORK_FAULT && lane_id() == 0)
        store(fresh_pointer(reinterpret_cast<uint32_t *>(16)), 0u);
    while (opcode == WHARF_WORK_HANG)
        sleep_ns(100000);
}

template <typename Team>
WHARF_DEVICE void run_item(const epoch_params &p, const Team &team, const warp_scratch &scratch,
                           epoch_slot *slot)
{
    task_item task = {slot, 0, 0, 0, 0, now_ns(), 0, 0, 0};
    verdict v = good(0, 0);

    task.fetched_ns = task.decoded_ns = task.begun_ns;
    if (is_cancelled(slot)) {
        v = bad(WHARF_CANCELLED, WHARF_REASON_NONE, 0);
    } else if (slot->item.opcode == WHARF_WORK_DECODE ||
               slot->item.opcode == WHARF_WORK_DECODE_LARGE) {
        v = decode_item(p, team, room_of(p, scratch, slot->item), task);
    } else if (slot->item.opcode == WHARF_WORK_DECODE_PART) {
        part_end end = {part_refused(), task.begun_ns, 0};
        if constexpr (Team::TAKES_PARTS)
            end = decode_part_item(p, team, scratch, slot);
        v = end.v;
        task.decoded_ns = end.decoded_ns;
        task.part = end.part;
    } else if (p.faults) {
        misbehave(slot->item.opcode);
    }
    task.moved_ns = now_ns();
    task.index = load(&slot->index);
    task.attempt = load(&slot->item.attempt);
    task.taken_ns = load(&slot->taken_ns);
    complete(p, task, v, false);
}

/* collective.  A warp leaves; the last one resets the words for the next epoch. */
WHARF_DEVICE void leave(const epoch_params &p)
{
    syncwarp();
    if (lane_id() != 0)
        return;
    fence_device(); /* orders this warp's changes of the words below before it counts as gone */
    if (atomic_add(&p.control->n_left, 1) != p.n_warps - 1)
        return;
    fence_device();
    /* Tickets that were drawn, and whose tasks did not come, are void. */
    store(&p.control->n_tickets, load_shared_by_device(&p.control->n_tasks));
    store(&p.control->leaving, (uint32_t)STAYING);
    store(&p.control->n_left, 0u);
}

/* collective.  Runs task after task until no more will come.  Codec defines the size of the
 * scratch. */
template <typename Codec, typename Team>
WHARF_DEVICE void run_tasks(const epoch_params &p, const Team &team, uint32_t warp)
{
    for (;;) {
        uint32_t ticket = lane_id() == 0 ? atomic_add(&p.control->n_tickets, 1) : 0;
        uint64_t word = await_task(p, from_lane<0>(ticket));
        if (!word)
            break;
        epoch_slot *slot = &p.slots[task_item_bits(word) & (p.queue.n_entries - 1)];
        slot_look look = look_at_slot(slot, word);
        if (is_copy_slot(look.quad)) {
            run_slice(p, slot, look, task_slice(word));
            continue;
        }
        fence_device(); /* orders the look before loads that use caches */
        run_item(p, team, scratch_of<Codec>(p, warp), uniform_global(fresh_pointer(slot)));
    }
}

/* collective.  The life of warp number `warp` of p.n_warps, at least two, all of which must be
 * resident. */
template <typename Codec, bool MEMOIZES>
WHARF_DEVICE void run_epoch_warp(typename Codec::shared &s, const epoch_params &p, uint32_t warp)
{
    if (warp == 0)
        poll(p);
    else
        run_tasks<Codec>(p, lone_warp<Codec, MEMOIZES>{s}, warp);
    leave(p);
}

} // namespace wharf

#endif
