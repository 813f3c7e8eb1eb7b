/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_decode.cuh: decodes zstd (encoders/zstd/zstd_format.h, RFC 8878) with one warp: frames and
 * their blocks.  ZSTD.md explains the design.
 *
 * Idea: all lanes read the headers alike, because they are short and each says where the next one
 * is.  The bodies of blocks are decoded by all lanes in parallel (zstd_block_body.cuh).
 *
 * Invariant: the rules are those of zstd_walk.c and zstd_frame.c, in the same order, so a damaged
 * stream fails with the same reason at the same bit.  Loads may pass the input's end within its
 * last aligned word (input_source); each length is compared with bytes_left before it is used.
 */
#ifndef WHARF_KERNELS_ZSTD_ZSTD_DECODE_CUH
#define WHARF_KERNELS_ZSTD_ZSTD_DECODE_CUH

#include "kernels/zstd/zstd_block_body.cuh"
#include "kernels/zstd/zstd_hash.cuh"

namespace wharf
{
namespace zstd
{

/* For a block, which has three bytes at least, and for a frame, which has more. */
constexpr uint32_t BLOCK_STEPS = 16;

WHARF_DEVICE uint32_t bytes_left(const state &st)
{
    return st.source.end - st.at;
}

/* The reason for a frame whose first four bytes are `magic`, of which n are there; NONE: it is
 * one. */
WHARF_DEVICE uint32_t check_magic(uint32_t magic, uint32_t n)
{
    if (n < WHARF_ZSTD_MAGIC_NBYTES) {
        uint32_t mask = (1u << 8 * n) - 1;
        bool begins = magic == (WHARF_ZSTD_MAGIC & mask) ||
                      (magic & WHARF_ZSTD_SKIPPABLE_MASK) ==
                          (WHARF_ZSTD_SKIPPABLE_MAGIC & WHARF_ZSTD_SKIPPABLE_MASK & mask);
        return begins ? WHARF_REASON_INPUT_TRUNCATED : WHARF_REASON_ZSTD_MAGIC;
    }
    if ((magic & WHARF_ZSTD_SKIPPABLE_MASK) == WHARF_ZSTD_SKIPPABLE_MAGIC ||
        magic == WHARF_ZSTD_MAGIC)
        return WHARF_REASON_NONE;
    bool is_old = magic == WHARF_ZSTD_OLDEST_MAGIC ||
                  (magic >= WHARF_ZSTD_OLD_MAGIC_FIRST && magic < WHARF_ZSTD_MAGIC);
    return is_old ? WHARF_REASON_ZSTD_VERSION : WHARF_REASON_ZSTD_MAGIC;
}

/* collective.  Skips a skippable frame. */
WHARF_DEVICE uint32_t skip_frame(state &st)
{
    uint32_t left = bytes_left(st);
    if (left < WHARF_ZSTD_SKIPPABLE_HEADER_NBYTES)
        return WHARF_REASON_INPUT_TRUNCATED;
    uint32_t nbytes = load_bytes(st.source, st.at + WHARF_ZSTD_MAGIC_NBYTES);
    /* Not a sum, which might wrap. */
    if (nbytes > left - WHARF_ZSTD_SKIPPABLE_HEADER_NBYTES)
        return WHARF_REASON_INPUT_TRUNCATED;
    st.at += WHARF_ZSTD_SKIPPABLE_HEADER_NBYTES + nbytes;
    return WHARF_REASON_NONE;
}

/* collective.  n bytes, 0 to 8, of input. */
WHARF_DEVICE uint64_t load_number(const input_source &source, uint32_t at, uint32_t n)
{
    uint64_t v = (uint64_t)load_bytes(source, at + 4) << 32 | load_bytes(source, at);
    return n < 8 ? v & (((uint64_t)1 << 8 * n) - 1) : v;
}

/* The size of a window, 2^log and some eighths of that; more than allowed if it is too large. */
WHARF_DEVICE uint64_t window_of(uint32_t byte)
{
    uint64_t base = (uint64_t)1 << (10 + (byte >> 3));
    return base + (base >> 3) * (byte & 7);
}

/* collective.  The header of a frame at st.at, which goes on behind it: a reason. */
WHARF_DEVICE uint32_t begin_frame(state &st)
{
    uint32_t left = bytes_left(st);
    if (left == WHARF_ZSTD_MAGIC_NBYTES)
        return WHARF_REASON_INPUT_TRUNCATED;
    uint32_t descriptor = load_bytes(st.source, st.at + 4) & 0xff;
    uint32_t is_single = descriptor >> 5 & 1, form = descriptor >> 6;
    uint32_t n_dictionary = (1u << (descriptor & 3)) >> 1;
    uint32_t n_content = form ? 1u << form : is_single;
    uint32_t header_nbytes = 5 + !is_single + n_dictionary + n_content;
    if (header_nbytes > left)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (descriptor & 0x08)
        return WHARF_REASON_ZSTD_RESERVED;
    uint32_t at = st.at + 5;
    uint64_t window = window_of(load_bytes(st.source, at) & 0xff);
    at += !is_single;
    /* Where a field has no bytes this loads what stands there, and keeps none of it. */
    uint64_t dictionary = load_number(st.source, at, n_dictionary);
    uint64_t content = load_number(st.source, at + n_dictionary, n_content);
    content += n_content == 2 ? 256 : 0;
    window = is_single ? content : window;
    if (any_lane(dictionary != 0))
        return WHARF_REASON_ZSTD_DICTIONARY;
    if (any_lane(window > (uint64_t)1 << WHARF_ZSTD_WINDOW_MAX_LOG))
        return WHARF_REASON_ZSTD_WINDOW;
    st.window_nbytes = uniform((uint32_t)window);
    constexpr uint32_t MOST = WHARF_ZSTD_BLOCK_MAX_NBYTES;
    st.block_max = st.window_nbytes < MOST ? st.window_nbytes : MOST;
    st.has_content = n_content > 0;
    st.has_checksum = descriptor >> 2 & 1;
    /* A chunk has less than 4 GiB of output: a frame that claims more fails at its end, as one
     * whose size is another. */
    bool is_known = n_content > 0 && content < 0xffffffffu;
    st.content_nbytes = uniform(is_known ? (uint32_t)content : 0xffffffffu);
    st.frame_out = st.n_out;
    st.has_tables = 0;
    st.offsets[0] = 1;
    st.offsets[1] = 4;
    st.offsets[2] = 8;
    syncwarp(); /* the frame before is done with what is kept */
    if (lane_id() == 0)
        store(&st.keep->tree_log, 0u);
    begin_hash(st);
    st.at += header_nbytes;
    return WHARF_REASON_NONE;
}

/* collective.  Raw and RLE blocks of nbytes of output, in which `at` is the header's byte. */
WHARF_DEVICE failure fill_block(state &st, uint32_t type, uint32_t nbytes, uint32_t at)
{
    room r = room_of_block(st);
    if (nbytes > r.nbytes)
        return fail_room(st, r.reason, at);
    output_stream out = {st.out, st.out_avail, st.n_out};
    if (type == 0)
        out.copy_input(st.source, st.at - st.source.begin, nbytes);
    else
        out.write_run<uint8_t>((uint8_t)load_bytes(st.source, st.at), 0, nbytes);
    syncwarp(); /* matches and the checksum read it */
    st.n_out += nbytes;
    st.at += type == 0 ? nbytes : 1;
    return {WHARF_REASON_NONE, 0};
}

/* collective.  A block at st.at, which goes on behind it; sets is_last. */
template <typename Notes>
WHARF_DEVICE failure next_block(state &st, bool &is_last, Notes &notes)
{
    uint32_t at = st.at, left = bytes_left(st);
    if (left < WHARF_ZSTD_BLOCK_HEADER_NBYTES)
        return {WHARF_REASON_INPUT_TRUNCATED, at};
    uint32_t header = load_bytes(st.source, at) & 0xffffff;
    uint32_t type = header >> 1 & 3, size = header >> 3;
    is_last = header & 1;
    if (type == 3 || size > st.block_max || (type == 1 && st.block_max == 0))
        return {WHARF_REASON_ZSTD_BLOCK, at};
    uint32_t nbytes = type == 1 ? 1 : size;
    if (nbytes > left - WHARF_ZSTD_BLOCK_HEADER_NBYTES)
        return {WHARF_REASON_INPUT_TRUNCATED, at};
    st.at += WHARF_ZSTD_BLOCK_HEADER_NBYTES;
    failure f;
    if (type == 2 && size > 0)
        f = take_block(st, st.at + size, notes);
    else
        f = fill_block(st, type == 1, size, at);
    if (f.reason == WHARF_REASON_NONE && st.has_checksum)
        add_hash(st);
    return f;
}

/* collective.  A frame's end: its size and its checksum. */
WHARF_DEVICE failure end_frame(state &st)
{
    if (st.has_content && st.n_out - st.frame_out != st.content_nbytes)
        return {WHARF_REASON_ZSTD_CONTENT_SIZE, st.frame_at};
    if (!st.has_checksum)
        return {WHARF_REASON_NONE, 0};
    if (bytes_left(st) < WHARF_ZSTD_CHECKSUM_NBYTES)
        return {WHARF_REASON_INPUT_TRUNCATED, st.at};
    if (any_lane(finish_hash(st) != load_bytes(st.source, st.at)))
        return {WHARF_REASON_ZSTD_CHECKSUM, st.at};
    st.at += WHARF_ZSTD_CHECKSUM_NBYTES;
    return {WHARF_REASON_NONE, 0};
}

/* collective.  A frame at st.at. */
template <typename Notes>
WHARF_DEVICE failure next_frame(state &st, Notes &notes)
{
    uint32_t left = bytes_left(st);
    uint32_t magic = load_bytes(st.source, st.at);
    st.frame_at = st.at;
    uint32_t reason = check_magic(magic, left < 4 ? left : 4);
    bool is_skippable = magic != WHARF_ZSTD_MAGIC;
    if (reason == WHARF_REASON_NONE)
        reason = uniform(is_skippable ? skip_frame(st) : begin_frame(st));
    if (reason != WHARF_REASON_NONE || is_skippable)
        return {reason, st.frame_at};
    /* Blocks may be empty, so their number is not bounded by output.  Each takes steps of a budget
     * that grows with the input, and looks whether it is to stop. */
    bool is_last = false;
    while (!is_last) {
        if (!st.steps.take(BLOCK_STEPS))
            return {WHARF_REASON_STEP_BUDGET, st.at};
        if (is_stopped(st.s().stop))
            return {STOPPED, st.at};
        failure f = next_block(st, is_last, notes);
        f.reason = uniform(f.reason);
        if (f.reason != WHARF_REASON_NONE)
            return f;
    }
    return end_frame(st);
}

WHARF_DEVICE uint32_t result_of(uint32_t reason)
{
    switch (reason) {
    case WHARF_REASON_OUTPUT_FULL:
        return WHARF_OUTPUT_TOO_SMALL;
    case WHARF_REASON_ZSTD_CHECKSUM:
        return WHARF_BAD_CHECKSUM;
    case WHARF_REASON_ZSTD_VERSION:
    case WHARF_REASON_ZSTD_RESERVED:
    case WHARF_REASON_ZSTD_WINDOW:
    case WHARF_REASON_ZSTD_DICTIONARY:
        return WHARF_UNSUPPORTED;
    case WHARF_REASON_STEP_BUDGET:
        return WHARF_INTERNAL;
    default:
        return WHARF_BAD_DATA;
    }
}

/* collective. */
WHARF_DEVICE void begin(state &st, shared &s, const chunk_job &job)
{
    st.ref.init(s);
    st.source.init(uniform_global(job.in), uniform(job.in_nbytes));
    st.source.begin = uniform(st.source.begin);
    st.source.end = uniform(st.source.end);
    st.out = uniform_global(job.out);
    st.out_avail = uniform(job.out_avail);
    st.keep = reinterpret_cast<kept *>(uniform_global(job.scratch));
    st.at = st.source.begin;
    st.n_out = 0;
    st.steps.init(job);
    for (unsigned i = lane_id(); i < sizeof(s.bases) / sizeof(s.bases[0]); i += WARP_LANES)
        store(&s.bases[i], load(&LENGTH_BASES[i]));
    init_window(s.window);
    if (lane_id() == 0) {
        store(&s.stop.at, job.stop.at);
        store(&s.stop.value, job.stop.value);
    }
    syncwarp();
}

/* collective.  All frames of a chunk. */
template <typename Notes>
WHARF_DEVICE verdict decode(shared &s, const chunk_job &job, Notes &notes)
{
    state st;
    begin(st, s, job);
    failure f;
    do
        f = next_frame(st, notes);
    while (f.reason == WHARF_REASON_NONE && st.at < st.source.end);
    if (f.reason == STOPPED)
        return stopped();
    if (f.reason != WHARF_REASON_NONE)
        return bad(result_of(f.reason), f.reason, 8 * (f.at - st.source.begin));
    return good(st.at - st.source.begin, st.n_out);
}

} // namespace zstd

using zstd_shared = zstd::shared;
constexpr size_t ZSTD_SCRATCH_NBYTES = sizeof(zstd::kept);
constexpr unsigned ZSTD_WARPS_PER_SM = 32;
static_assert(sizeof(zstd_shared) <= 7040);

/* collective. */
WHARF_DEVICE verdict zstd_decode(zstd_shared &s, const chunk_job &job)
{
    zstd::own_notes notes;
    return zstd::decode(s, job, notes);
}

} // namespace wharf

#endif
