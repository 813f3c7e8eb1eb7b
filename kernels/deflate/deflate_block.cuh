/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_block.cuh: decodes one Deflate stream with all warps of a block.
 *
 * The first warp runs the decoder for one warp.  It commands the others to decode the bodies of
 * coded blocks together (deflate_block_find.cuh, deflate_block_write.cuh).  If the block meets
 * anything unusual in a body, the first warp decodes that body again from its start.  Only the
 * first warp reports errors.
 */
#ifndef WHARF_KERNELS_DEFLATE_DEFLATE_BLOCK_CUH
#define WHARF_KERNELS_DEFLATE_DEFLATE_BLOCK_CUH

#include "kernels/deflate/deflate_block_find.cuh"
#include "kernels/deflate/deflate_block_write.cuh"

namespace wharf
{
namespace flate
{

/* The same in all lanes of all warps. */
struct body_result {
    bool done; /* else the first warp decodes the body from its start */
    uint32_t at;
    uint32_t position;
    uint32_t steps_left;
};

/* For all warps.  Loads the input from the quad that contains `at`.  Returns the window's first
 * position.  Does not synchronise. */
template <typename P>
WHARF_DEVICE uint32_t fill_window(block_shared<P> &s, const input_source &source, unsigned warp,
                                  uint32_t at, uint32_t nbits)
{
    uint32_t first = at >> 7;
    uint32_t n_quads = ((at & 127) + nbits + 128 + 127) >> 7;
    for (uint32_t i = 32 * warp + lane_id(); i < n_quads; i += P::LANES)
        store(reinterpret_cast<u32x4 *>(s.window) + i, source.load_quad(first + i));
    return at & ~127u;
}

template <typename P>
WHARF_DEVICE uint32_t choose_lane_range(uint32_t wanted, uint32_t left)
{
    uint32_t nbits = left / P::LANES + 1;
    nbits = nbits < wanted ? nbits : wanted;
    return nbits > P::MIN_RANGE_NBITS ? nbits : P::MIN_RANGE_NBITS;
}

/* The counterpart of next_range(). */
template <typename P>
WHARF_DEVICE uint32_t next_lane_range(uint32_t n_bits, uint32_t n_symbols)
{
    uint32_t nbits = n_bits * P::AIM_TOKENS / (n_symbols + 1);
    return nbits < P::MAX_RANGE_NBITS ? nbits : P::MAX_RANGE_NBITS;
}

/*
 * For all warps.  Runs the first warp's command: decodes a body to its end.
 */
template <typename P>
WHARF_DEVICE_NOINLINE body_result decode_together(shared_ref<block_shared<P>> ref, unsigned warp)
{
    block_shared<P> &s = ref.get();
    input_source source = {uniform_global(s.command.source.aligned),
                           uniform(s.command.source.begin), uniform(s.command.source.end)};
    uint8_t *out = uniform_global(s.command.out);
    uint32_t out_avail = uniform(s.command.out_avail);
    step_counter steps = {uniform(s.command.steps_left)};
    body_result r = {false, uniform(s.command.at), uniform(s.command.position), 0};
    uint32_t end = 8 * source.end;
    uint32_t range = P::FIRST_RANGE_NBITS;
    status ended = status::more;
    while (ended == status::more) {
        bool stop = warp == 0 && is_stopped(s.one.stop);
        /* The readers of the last part are done. */
        if (syncblock_or(stop) || r.at >= end || !steps.take(PART_STEPS))
            return r;
        uint32_t begun = r.at;
        uint32_t nbits = choose_lane_range<P>(range, end - r.at);
        uint32_t window = fill_window(s, source, warp, r.at, P::LANES * nbits);
        syncblock();
        lane_range lane;
        uint32_t begin;
        part_result part = find_symbols(s, warp, r.at - window, nbits, end - window, lane, begin);
        if (part.ended == status::stop || part.nbytes > out_avail - r.position)
            return r;
        if (!write_part(s, warp, out, r.position, part.nbytes, lane.n_tokens, begin))
            return r;
        r.at = window + part.at;
        r.position += part.nbytes;
        ended = part.ended;
        range = next_lane_range<P>(window + part.at - begun, part.n_tokens);
    }
    r.done = true;
    r.steps_left = steps.left;
    return r;
}

/* collective, for the first warp.  Replaces the overload for `state`. */
template <typename P, typename Sum>
WHARF_DEVICE uint32_t decode_body(block_state<P> &st, Sum &sum, step_counter &steps)
{
    /* Long matches are better copied by one warp. */
    bool are_long = st.out.room() / BLOCK_MOST_RATIO > (st.end() - st.at) / 8;
    body_result r = {};
    if (!are_long) {
        give_command(st.all,
                     {st.source, st.out.out, st.out.avail, st.at, st.out.position, steps.left, 0});
        r = decode_together(st.all, 0);
    }
    if (!uniform(r.done))
        return decode_body(static_cast<state<typename P::one> &>(st), sum, steps);
    st.at = uniform(r.at);
    st.out.position = uniform(r.position);
    steps.left = uniform(r.steps_left);
    sum.update(st.out.position);
    return WHARF_REASON_NONE;
}

/* collective, for the first warp. */
template <typename P>
WHARF_DEVICE void start(block_state<P> &st, block_shared<P> &s, const chunk_job &job,
                        uint32_t in_begin, uint32_t out_begin)
{
    start(static_cast<state<typename P::one> &>(st), s.one, job, in_begin, out_begin);
    st.all.init(s);
}

/* For all warps but the first: runs the first warp's commands until it ends them. */
template <typename P>
WHARF_DEVICE void help(block_shared<P> &s, unsigned warp)
{
    follow_commands(s, [&](shared_ref<block_shared<P>> ref) { decode_together(ref, warp); });
}

} // namespace flate

/* As zlib and gzip have it. */
template <typename St, typename Shared>
WHARF_DEVICE verdict deflate_decode_with(Shared &s, const chunk_job &job)
{
    return flate::decode<St>(s, job);
}

/* name##_decode_with() by blocks of a tuning P.  The first warp also reads headers and trailers and
 * computes the checksum. */
#define WHARF_BLOCKS_AROUND_DEFLATE(name, form, P)                                                 \
    using form##_shared = flate::block_shared<P>;                                                  \
    /* collective, for the first warp. */                                                          \
    WHARF_DEVICE verdict form##_decode(form##_shared &s, const chunk_job &job)                     \
    {                                                                                              \
        return name##_decode_with<flate::block_state<P>>(s, job);                                  \
    }                                                                                              \
    /* For all other warps of the block. */                                                        \
    WHARF_DEVICE void form##_help(form##_shared &s, unsigned warp)                                 \
    {                                                                                              \
        flate::help(s, warp);                                                                      \
    }                                                                                              \
    /* collective, for the first warp: the others may end. */                                      \
    WHARF_DEVICE void form##_end(form##_shared &s)                                                 \
    {                                                                                              \
        end_commands(s);                                                                           \
    }

/* The contents of NAME_block.cuh for Deflate and the codecs that wrap it.  With more items than
 * that, a warp for each is faster on columns of numbers; on text a block would still be faster. */
#define WHARF_BLOCK_AROUND_DEFLATE(ID, name)                                                       \
    constexpr unsigned ID##_BLOCK_WARPS = flate::block_tuning::WARPS;                              \
    constexpr unsigned ID##_BLOCK_MOST_ITEMS = 4;                                                  \
    constexpr unsigned ID##_BLOCK_MOST_CHUNKS = 6;                                                 \
    constexpr uint32_t ID##_BLOCK_MOST_RATIO = flate::BLOCK_MOST_RATIO;                            \
    constexpr uint32_t ID##_BLOCK_LEAST_NBYTES = 3 << 10;                                          \
    WHARF_BLOCKS_AROUND_DEFLATE(name, name##_block, flate::block_tuning)                           \
    WHARF_BLOCKS_AROUND_DEFLATE(name, name##_pair, flate::pair_tuning)

WHARF_BLOCK_AROUND_DEFLATE(DEFLATE, deflate)

} // namespace wharf

#endif
