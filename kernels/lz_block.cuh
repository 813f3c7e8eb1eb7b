/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz_block.cuh: decodes one stream of lz4 or snappy with all warps of a block.
 *
 * The first warp runs the decoder.  It commands the others to decode, part by part of the input,
 * as many sequences as the block can take together (lz_block_find.cuh, lz_block_write.cuh).  At a
 * sequence that the block cannot take, the first warp continues alone, as in lz_decode.cuh.  Only
 * the first warp reports errors.
 */
#ifndef WHARF_KERNELS_LZ_BLOCK_CUH
#define WHARF_KERNELS_LZ_BLOCK_CUH

#include "kernels/lz_block_find.cuh"
#include "kernels/lz_block_write.cuh"

namespace wharf
{
namespace lz
{

/* The same in all lanes of all warps. */
struct together_result {
    uint32_t at; /* as block_command's */
    uint32_t position;
    uint32_t last_match; /* where the last match begins in the output, if n_sequences */
    uint32_t n_sequences;
    uint32_t steps_left;
};

/* For all warps.  Loads a part's input, from the quad that contains `at`.  Does not synchronise. */
template <typename P>
WHARF_DEVICE window_view<P> fill_window(block_shared<P> &s, const input_source &source,
                                        unsigned number, uint32_t at)
{
    for (uint32_t i = number; i < block_shared<P>::WINDOW_NWORDS / 4; i += P::LANES)
        store(reinterpret_cast<u32x4 *>(s.window) + i, source.load_quad((at >> 4) + i));
    window_view<P> in;
    in.all.init(s);
    in.skew_nbits = 8 * (at & 15);
    return in;
}

/* A lane's sequences of a batch. */
template <typename P>
struct lane_looks {
    found f[P::LANE_SEQUENCES];
    lane_sequences<P> at;
    uint32_t n; /* the batch has no more, as far as this lane knows */
};

/* One lane.  Parses its sequences of the batch, which begins with number `first` of the part's
 * n_starts.  Places are counted from the lane's own first byte. */
template <typename P, typename Format>
WHARF_DEVICE lane_looks<P> look_at(const block_shared<P> &s, const window_view<P> &in,
                                   uint32_t in_left, unsigned number, uint32_t first,
                                   uint32_t n_starts)
{
    lane_looks<P> l;
    l.n = n_starts - first;
    l.n = l.n < P::BATCH_SEQUENCES ? l.n : P::BATCH_SEQUENCES;
    l.at.begin[0] = 0;
    WHARF_UNROLL
    for (unsigned k = 0; k < P::LANE_SEQUENCES; k++) {
        uint32_t in_batch = number * P::LANE_SEQUENCES + k;
        uint32_t i = first + in_batch;
        bool is_there = i < n_starts;
        found f = Format::look(in, is_there ? load(&s.places[i]) : 0, in_left, in.reach());
        bool leads = i + 1 >= n_starts || f.end == load(&s.places[i + 1]);
        uint32_t most = in_batch + f.good;
        l.n = is_there && !(f.good && leads) && most < l.n ? most : l.n;
        l.at.begin[k + 1] =
            l.at.begin[k] + (is_there && f.good ? f.n_literals + f.match_length : 0);
        l.f[k] = f;
    }
    return l;
}

/* For all warps.  Finds where each lane's sequences begin in the batch's output, and how many
 * sequences are valid. */
template <typename P>
WHARF_DEVICE void place_looks(block_shared<P> &s, unsigned warp, lane_looks<P> &l,
                              uint32_t position, uint32_t room)
{
    uint32_t own = l.at.begin[P::LANE_SEQUENCES];
    uint32_t upto = inclusive_add(own);
    if (lane_id() == 31)
        store(&s.sums[warp], upto);
    syncblock();
    uint32_t sum = load(&s.sums[lane_id() % P::WARPS]);
    sum = lane_id() < P::WARPS ? sum : 0;
    uint32_t begin = reduce_add(lane_id() < warp ? sum : 0) + upto - own;
    l.at.begin[0] = begin;
    WHARF_UNROLL
    for (unsigned k = 0; k < P::LANE_SEQUENCES; k++) {
        uint32_t end = l.at.begin[k + 1] + begin;
        const found &f = l.f[k];
        bool reaches =
            f.match_length == 0 || f.distance - 1 < position + l.at.begin[k] + f.n_literals;
        bool fits = (end <= room) & (end < BATCH_NBYTES);
        uint32_t in_batch = (32 * warp + lane_id()) * P::LANE_SEQUENCES + k;
        l.n = !(reaches & fits) && in_batch < l.n ? in_batch : l.n;
        l.at.begin[k + 1] = end;
    }
    uint32_t least = reduce_min(l.n);
    if (lane_id() == 0)
        store(&s.least[warp], least);
    syncblock();
    l.n = reduce_min(load(&s.least[lane_id() % P::WARPS]));
}

/* One lane.  Stores for the other lanes what they need of its sequences, and empties those that
 * are not of the batch.  l.n is not 0. */
template <typename P>
WHARF_DEVICE void give_looks(block_shared<P> &s, unsigned number, lane_looks<P> &l,
                             uint32_t position)
{
    WHARF_UNROLL
    for (unsigned k = 0; k < P::LANE_SEQUENCES; k++) {
        uint32_t in_batch = number * P::LANE_SEQUENCES + k;
        uint32_t begin = l.at.begin[k], match = begin + l.f[k].n_literals;
        if (in_batch >= l.n) {
            l.at.begin[k + 1] = begin;
            continue;
        }
        store(&s.sequences[in_batch],
              (uint64_t)(l.f[k].literals - begin) << 32 | match << 16 | (l.f[k].distance & 0xffff));
        if (in_batch == l.n - 1) {
            store(&s.last_end, l.at.begin[k + 1]);
            store(&s.last_place, l.f[k].end);
            store(&s.last_match, position + match);
        }
    }
}

/*
 * For all warps.  Decodes the sequences of a part of the input, up to one that is not good, that
 * reaches before the output, or that does not fit.  Advances r.  Returns the number of sequences.
 */
template <typename P, typename Format>
WHARF_DEVICE uint32_t take_part(block_shared<P> &s, unsigned warp, const input_source &source,
                                uint8_t *out, uint32_t out_avail, together_result &r)
{
    unsigned number = 32 * warp + lane_id();
    uint32_t in_left = source.end - r.at, done = 0;
    window_view<P> in = fill_window(s, source, number, r.at);
    syncblock();
    uint32_t n_starts = list_starts(s, warp, find_starts<P, Format>(s, in, warp, in_left));
    syncblock();
    block_output o = {source.aligned + r.at, out, r.position};
    while (done < n_starts) {
        lane_looks<P> l = look_at<P, Format>(s, in, in_left, number, done, n_starts);
        place_looks(s, warp, l, o.position, out_avail - o.position);
        if (l.n == 0)
            break;
        give_looks(s, number, l, o.position);
        o.position += write_block_batch(s, warp, o, l.at);
        done += l.n;
    }
    if (done) {
        r.at += uniform(load(&s.last_place));
        r.last_match = uniform(load(&s.last_match));
        r.position = o.position;
    }
    return done;
}

/* For all warps.  Runs the first warp's command. */
template <typename P, typename Format>
WHARF_DEVICE_NOINLINE together_result decode_together(shared_ref<block_shared<P>> ref,
                                                      unsigned warp)
{
    block_shared<P> &s = ref.get();
    warp = uniform(warp);
    input_source source = {uniform_global(s.command.source.aligned),
                           uniform(s.command.source.begin), uniform(s.command.source.end)};
    uint8_t *out = uniform_global(s.command.out);
    uint32_t out_avail = uniform(s.command.out_avail);
    step_counter steps = {uniform(s.command.steps_left)};
    together_result r = {uniform(s.command.at), uniform(s.command.position), 0, 0, 0};
    clear_begins(s, 32 * warp + lane_id());
    for (;;) {
        bool stop = warp == 0 && is_stopped(s.one.stop);
        /* The readers of the last part are done. */
        if (any_lane(syncblock_or(stop)) || r.at >= source.end || r.position == out_avail ||
            !steps.take(PART_STEPS))
            break;
        uint32_t n = take_part<P, Format>(s, warp, source, out, out_avail, r);
        r.n_sequences += n;
        if (n == 0)
            break;
    }
    r.steps_left = steps.left;
    return r;
}

/* After a block took fewer sequences than FEW_SEQUENCES, the first warp decodes so many turns
 * alone: the sequences that follow are probably unfit for the block too.  Otherwise it takes only
 * the one at which the block stopped. */
constexpr uint32_t FEW_SEQUENCES = 256;
constexpr uint32_t ALONE_TURNS = 64;

/* collective, for the first warp.  Has the block decode as much of the stream as it can.  Returns
 * the number of sequences. */
template <typename P, typename Format>
WHARF_DEVICE uint32_t take_by_block(shared_ref<block_shared<P>> ref, stream &st, Format &format)
{
    give_command(ref, {st.in.source, st.out.out, st.out.avail, st.in.position / 8, st.out.position,
                       st.steps.left, 0});
    together_result r = decode_together<P, Format>(ref, 0);
    st.in.seek(8 * (uniform(r.at) - st.in.source.begin));
    st.out.position = uniform(r.position);
    st.steps.left = uniform(r.steps_left);
    uint32_t n = uniform(r.n_sequences);
    if (n)
        format.took_block(uniform(r.last_match));
    return n;
}

/* collective, for the first warp.  Like decode_turns(), but to the end of the stream. */
template <typename P, typename Format>
WHARF_DEVICE uint32_t decode_by_block(shared_ref<block_shared<P>> ref, stream &st, Format &format,
                                      const uint8_t *in, uint32_t &start)
{
    shared &s = ref.get().one;
    uint32_t reason = WHARF_REASON_NONE;
    while (reason == WHARF_REASON_NONE && !format.is_done(st)) {
        /* Long matches are better copied by one warp. */
        bool are_long = st.out.room() / Format::BLOCK_MOST_RATIO > bytes_left(st.in);
        uint32_t n = are_long ? 0 : take_by_block(ref, st, format);
        uint32_t most = n < FEW_SEQUENCES ? ALONE_TURNS : 1;
        reason = uniform(decode_turns(s, st, format, in, start, most));
    }
    return reason;
}

/* collective, for the first warp. */
template <typename P, typename Format>
WHARF_DEVICE verdict decode_block(block_shared<P> &s, const chunk_job &job)
{
    shared_ref<block_shared<P>> ref;
    ref.init(s);
    return decode_by<Format>(s.one, job,
                             [&](stream &st, Format &format, const uint8_t *in, uint32_t &start) {
                                 return decode_by_block(ref, st, format, in, start);
                             });
}

/* For all warps but the first: runs the first warp's commands until it ends them. */
template <typename P, typename Format>
WHARF_DEVICE void help(block_shared<P> &s, unsigned warp)
{
    follow_commands(
        s, [&](shared_ref<block_shared<P>> ref) { decode_together<P, Format>(ref, warp); });
}

} // namespace lz

/* Blocks for a codec with an lz::Format. */
#define WHARF_LZ_BLOCKS(name, form)                                                                \
    using form##_shared = lz::block_shared<lz::block_tuning>;                                      \
    /* collective, for the first warp. */                                                          \
    WHARF_DEVICE verdict form##_decode(form##_shared &s, const chunk_job &job)                     \
    {                                                                                              \
        return lz::decode_block<lz::block_tuning, name::format>(s, job);                           \
    }                                                                                              \
    /* For all other warps of the block. */                                                        \
    WHARF_DEVICE void form##_help(form##_shared &s, unsigned warp)                                 \
    {                                                                                              \
        lz::help<lz::block_tuning, name::format>(s, warp);                                         \
    }                                                                                              \
    /* collective, for the first warp: the others may end. */                                      \
    WHARF_DEVICE void form##_end(form##_shared &s)                                                 \
    {                                                                                              \
        end_commands(s);                                                                           \
    }

/* The contents of NAME_block.cuh for a codec with an lz::Format. */
#define WHARF_LZ_BLOCK(ID, name, most_chunks)                                                      \
    constexpr unsigned ID##_BLOCK_WARPS = lz::block_tuning::WARPS;                                 \
    constexpr unsigned ID##_BLOCK_MOST_ITEMS = 1;                                                  \
    constexpr unsigned ID##_BLOCK_MOST_CHUNKS = most_chunks;                                       \
    constexpr uint32_t ID##_BLOCK_MOST_RATIO = name::format::BLOCK_MOST_RATIO;                     \
    constexpr uint32_t ID##_BLOCK_LEAST_NBYTES = 40 << 10;                                         \
    WHARF_LZ_BLOCKS(name, name##_block)                                                            \
    WHARF_LZ_BLOCKS(name, name##_pair)

} // namespace wharf

#endif
