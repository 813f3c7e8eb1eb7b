/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_encode.cuh: what each warp of an epoch that encodes does: the first polls, each of the
 * others encodes one item after the other.
 *
 * Clients can write a source meanwhile, and a destination.  So nothing is copied before: the
 * encoder uses each byte of the source once, loaded past the caches, and reads nothing back that it
 * stored.  Whatever a client writes, the stream is that of some source.
 */
#ifndef WHARF_KERNELS_EPOCH_ENCODE_CUH
#define WHARF_KERNELS_EPOCH_ENCODE_CUH

#include "kernels/epoch_warp.cuh"
#include "kernels/line/line_encode.cuh"

namespace wharf
{

/* A client's memory, on the host or the device; `out` has any alignment. */
struct line_client_memory {
    stop_word stop;
    bool has_words; /* `out` is aligned to 4 */

    WHARF_DEVICE_MEMBER u32x4 load_inner(const u32x4 *p) const { return load_shared_with_host(p); }

    /* Without a branch: loads whole quads that begin before the source's end, which are within its
     * pages, and leaves out what is behind the end.  What is before the source its user skips. */
    WHARF_DEVICE_MEMBER u32x4 load_quad(const input_source &source, uint32_t i) const
    {
        uint32_t last = (source.end - 1) / 16;
        u32x4 quad =
            load_inner(reinterpret_cast<const u32x4 *>(source.aligned) + (i < last ? i : last));
        uint32_t left = i <= last ? source.end - 16 * i : 0;
        return {keep_bytes(quad.x, left, 0), keep_bytes(quad.y, left, 4),
                keep_bytes(quad.z, left, 8), keep_bytes(quad.w, left, 12)};
    }

    WHARF_DEVICE_MEMBER void store_word(uint8_t *to, uint32_t word) const
    {
        if (has_words)
            store(reinterpret_cast<uint32_t *>(to), word);
        else
            store_bytes(to, word);
    }

    WHARF_DEVICE_MEMBER void store_quads(uint8_t *to, const u32x4 *from, uint32_t n) const
    {
        uint32_t over = uniform((uint32_t)(reinterpret_cast<uintptr_t>(to) & 15));
        uint32_t lane = lane_id(), head = (16 - over) & 15;
        u32x4 *quads = reinterpret_cast<u32x4 *>(to + head);
        uint32_t n_inner = over != 0 && n > 0 ? n - 1 : n;
        for (uint32_t i = lane; i < n_inner; i += WARP_LANES) {
            u32x4 quad = load(&from[i]);
            store(quads + i, over != 0 ? funnel_quad(quad, load(&from[i + 1]), head) : quad);
        }
        if (n == n_inner)
            return;
        /* The first `head` bytes and the last `over`. */
        const uint8_t *bytes = reinterpret_cast<const uint8_t *>(from);
        uint32_t o = lane < head ? lane : 16 * n - 16 + lane;
        if (lane < 16)
            store_byte(to + o, load(bytes + o));
    }

    WHARF_DEVICE_MEMBER bool is_stopped() const { return wharf::is_stopped(stop); }

  private:
    /* A quad's word at byte `at`, of which the bytes count that are among the quad's first n. */
    static WHARF_DEVICE_MEMBER uint32_t keep_bytes(uint32_t word, uint32_t n, uint32_t at)
    {
        return low_bits(word, n > at ? 8 * (n - at < 4 ? n - at : 4) : 0);
    }

    /* Not inlined: rare. */
    static WHARF_DEVICE_MEMBER_NOINLINE void store_bytes(uint8_t *to, uint32_t word)
    {
        for (unsigned k = 0; k < 4; k++)
            store_byte(to + k, word >> 8 * k);
    }
};

/* The encoders: X(codec, palette's type of values, member). */
#define WHARF_LINE_ENCODERS(X)                                                                     \
    X(WHARF_CODEC_BDI, 0, bdi)                                                                     \
    X(WHARF_CODEC_FPC, 0, fpc)                                                                     \
    X(WHARF_CODEC_CPACK, 0, cpack)                                                                 \
    X(WHARF_CODEC_BEST, 0, best)                                                                   \
    X(WHARF_CODEC_PALETTE, WHARF_LINE_BF16, bf16)                                                  \
    X(WHARF_CODEC_PALETTE, WHARF_LINE_F16, f16)                                                    \
    X(WHARF_CODEC_PALETTE, WHARF_LINE_E4M3, e4m3)                                                  \
    X(WHARF_CODEC_PALETTE, WHARF_LINE_E5M2, e5m2)

/* A warp's shared memory. */
union epoch_encode_shared {
#define X(CODEC, TYPE, member) line_encode_shared<CODEC, TYPE> member;
    WHARF_LINE_ENCODERS(X)
#undef X
};

/* collective.  The stream's size; 0: it does not fit, or it was cancelled. */
WHARF_DEVICE uint32_t encode_as(epoch_encode_shared &s, uint32_t codec, uint32_t type,
                                const line_encode_job &job, const line_client_memory &memory)
{
    switch (codec << 8 | type) {
#define X(CODEC, TYPE, member)                                                                     \
    case (uint32_t)CODEC << 8 | TYPE:                                                              \
        return line_encode<CODEC, TYPE>(s.member, job, memory);
        WHARF_LINE_ENCODERS(X)
#undef X
    default:
        return 0;
    }
}

/* One lane.  Whether an item names an encoder and a shape of lines. */
WHARF_DEVICE bool is_of_lines(uint32_t codec, uint32_t type, uint32_t shift, uint32_t layout)
{
    bool is_known = false;
#define X(CODEC, TYPE, member) is_known |= codec == CODEC && type == TYPE;
    WHARF_LINE_ENCODERS(X)
#undef X
    return is_known && shift >= WHARF_LINE_MIN_SHIFT && shift <= WHARF_LINE_MAX_SHIFT &&
           layout < WHARF_LINE_N_LAYOUTS;
}

/* collective. */
WHARF_DEVICE verdict encode_item(epoch_encode_shared &s, const epoch_slot *slot)
{
    const wharf_work_item &item = slot->item;
    uint32_t codec = uniform(load(&item.codec)), parameter = uniform(load(&item.parameter));
    uint32_t shift = parameter & 15, layout = parameter >> 4 & 15, type = parameter >> 8;
    uint32_t in_nbytes = uniform(load(&item.src_nbytes));
    uint32_t out_avail = uniform(load(&item.dst_nbytes));
    if (in_nbytes > MAX_CHUNK_NBYTES)
        return bad(WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_SIZE, 0);
    if (!is_of_lines(codec, type, shift, layout))
        return bad(WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_CODEC, 0);
    line_encode_job job = {
        uniform_global(reinterpret_cast<const uint8_t *>(load(&item.src))),
        in_nbytes,
        uniform_global(reinterpret_cast<uint8_t *>(load(&item.dst))),
        out_avail < 2 * MAX_CHUNK_NBYTES ? out_avail : 2 * MAX_CHUNK_NBYTES,
        shift,
        layout,
    };
    bool has_words = uniform((uint32_t)(item.dst & 3)) == 0;
    uint32_t nbytes = encode_as(s, codec, type, job, {stop_of(slot), has_words});
    if (is_cancelled(slot))
        return stopped();
    return nbytes ? good(in_nbytes, nbytes)
                  : bad(WHARF_OUTPUT_TOO_SMALL, WHARF_REASON_OUTPUT_FULL, 0);
}

/* collective. */
WHARF_DEVICE void run_encode_item(const epoch_params &p, epoch_encode_shared &s, epoch_slot *slot)
{
    task_item task = {slot, 0, 0, 0, 0, now_ns(), 0, 0, 0};
    verdict v = good(0, 0);
    if (is_cancelled(slot))
        v = stopped();
    else if (slot->item.opcode == WHARF_WORK_ENCODE)
        v = encode_item(s, slot);
    else if (p.faults)
        misbehave(slot->item.opcode);
    syncwarp(); /* all are done with shared memory */
    task.fetched_ns = task.begun_ns;
    task.decoded_ns = task.moved_ns = now_ns();
    task.index = load(&slot->index);
    task.attempt = load(&slot->item.attempt);
    task.taken_ns = load(&slot->taken_ns);
    complete(p, task, v, false);
}

/* collective.  Encodes item after item until no more will come. */
WHARF_DEVICE void run_encode_items(epoch_encode_shared &s, const epoch_params &p)
{
    for (;;) {
        uint32_t ticket = lane_id() == 0 ? atomic_add(&p.control->n_tickets, 1) : 0;
        uint64_t word = await_task(p, from_lane<0>(ticket));
        if (!word)
            break;
        epoch_slot *slot = &p.slots[task_item_bits(word) & (p.queue.n_entries - 1)];
        (void)look_at_slot(slot, word);
        fence_device(); /* orders the look before loads that use caches */
        run_encode_item(p, s, uniform_global(fresh_pointer(slot)));
    }
}

/* collective.  The life of warp number `warp` of p.n_warps, at least two. */
WHARF_DEVICE void run_encode_warp(epoch_encode_shared &s, const epoch_params &p, uint32_t warp)
{
    if (warp == 0)
        poll(p);
    else
        run_encode_items(s, p);
    leave(p);
}

} // namespace wharf

#endif
