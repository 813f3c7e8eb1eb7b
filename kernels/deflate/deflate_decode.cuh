/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_decode.cuh: decodes raw Deflate (RFC 1951) with one warp, also inside zlib and gzip.
 *
 * Idea: 32 lanes find symbol starts in a block's body at once (deflate_sync.cuh), decode the pieces
 * between them into tokens (deflate_tokens.cuh), and write the tokens together (deflate_write.cuh).
 * Starts are hints: a piece counts only if the piece before it ends at its start.  When anything
 * unusual appears, the exact path (deflate_exact.cuh) decodes symbol by symbol from the last true
 * position.  Only the exact path and the header report errors.
 *
 * DEFLATE.md explains the design; encoders/deflate/deflate_format.h defines valid streams.
 */
#ifndef WHARF_KERNELS_DEFLATE_DECODE_CUH
#define WHARF_KERNELS_DEFLATE_DECODE_CUH

#include "kernels/deflate/deflate_header.cuh"
#include "kernels/deflate/deflate_tokens.cuh"
#include "kernels/deflate/deflate_write.cuh"

namespace wharf
{
namespace flate
{

/* The bits of each lane's range: as many as wanted, but at most 1/32 of the remaining input, and at
 * least enough for lanes to synchronise. */
template <typename P>
WHARF_DEVICE uint32_t choose_range(uint32_t wanted, uint32_t left)
{
    uint32_t nbits = left / 32 + 1;
    nbits = nbits < wanted ? nbits : wanted;
    return nbits > P::MIN_RANGE_NBITS ? nbits : P::MIN_RANGE_NBITS;
}

/* The range whose notes would fill three quarters of their room, at the present number of bits a
 * symbol.  The last quarter serves lanes with shorter symbols, and the walk into the next range. */
template <typename P>
WHARF_DEVICE uint32_t next_range(uint32_t n_bits, uint32_t n_symbols)
{
    constexpr uint32_t N = P::MAX_SUBS * P::SUB_NSYMBOLS * 3 / 4;
    uint32_t nbits = n_bits * N / (n_symbols + 1);
    return nbits < P::MAX_RANGE_NBITS ? nbits : P::MAX_RANGE_NBITS;
}

/* collective.  Writes tokens in whole batches, or all of them; moves the rest to the front. */
template <typename P>
WHARF_DEVICE bool write_tokens(state<P> &st, uint32_t &n, bool all)
{
    uint32_t *tokens = st.s().tokens;
    uint32_t done = 0;
    while (n - done >= 32 || (all && done < n)) {
        uint32_t batch = n - done < 32 ? n - done : 32;
        if (!write_batch<P>(st.ref, st.out, tokens + done, batch, typename P::unit()))
            return false;
        done += batch;
    }
    n -= done;
    if (done && n) {
        uint32_t token = lane_id() < n ? load(&tokens[done + lane_id()]) : 0;
        syncwarp();
        if (lane_id() < n)
            store(&tokens[lane_id()], token);
    }
    return true;
}

/*
 * collective.  Decodes a region of a body: 32 ranges from st.at on.  Moves st.at to the start of
 * the next symbol or block.  status::stop: the exact path must decode what stands there.  `range`
 * is the wanted length of a range; it is updated for the next region.  If the step budget runs out
 * it returns early, and the caller's next check of the budget fails.
 */
template <typename P>
WHARF_DEVICE status decode_region(state<P> &st, uint32_t &range, step_counter &steps)
{
    uint32_t begin = st.at, begin_out = st.out.position;
    st.window = NO_WINDOW; /* the columns take its place */
    sub_list list = find_sync_points(st, choose_range<P>(range, st.end() - begin));
    uint32_t n_tokens = 0, n_all = 0;
    uint32_t piece = 0;
    status ended = status::more;
    bool more = list.n_all != 0;
    while (more) {
        group_result r = decode_group(st, list, piece, st.s().tokens + n_tokens);
        st.at = r.at;
        ended = r.ended;
        piece += r.n_pieces;
        n_tokens += r.n_tokens;
        n_all += r.n_tokens;
        more = r.n_tokens && ended == status::more && piece < list.n_all && steps.take(GROUP_STEPS);
        if (!write_tokens(st, n_tokens, !more)) {
            /* A distance is too far or the output is full: the exact path finds out where. */
            st.at = begin;
            st.out.position = begin_out;
            return status::stop;
        }
    }
    range = next_range<P>(st.at - begin, n_all);
    return ended;
}

/* collective.  Decodes a block's body from st.at on.  Returns a reason; on an error, st.at is at
 * the unit that caused it. */
template <typename P, typename Sum>
WHARF_DEVICE uint32_t decode_body(state<P> &st, Sum &sum, step_counter &steps)
{
    status ended = status::more;
    uint32_t range = P::FIRST_RANGE_NBITS;
    while (ended == status::more) {
        if (!steps.take(REGION_STEPS + GROUP_STEPS))
            return WHARF_REASON_STEP_BUDGET;
        if (st.is_stopped())
            return STOPPED;
        ended = st.at < st.end() ? decode_region(st, range, steps) : status::stop;
        if (ended == status::more)
            sum.update(st.out.position);
    }
    if (ended == status::block_end)
        return WHARF_REASON_NONE;
    return decode_exactly(st, steps);
}

/* collective.  Copies the bytes of a stored block. */
template <typename St>
WHARF_DEVICE uint32_t copy_stored(St &st, uint32_t nbytes)
{
    uint32_t in_left = (st.end() - st.at) / 8;
    uint32_t room = st.out.room();
    uint32_t n = nbytes < in_left ? nbytes : in_left;
    n = n < room ? n : room;
    st.out.copy_input(st.input(), st.at / 8 - st.input().begin, n);
    st.at += 8 * n;
    if (n < nbytes)
        return n == in_left ? WHARF_REASON_INPUT_TRUNCATED : WHARF_REASON_OUTPUT_FULL;
    return WHARF_REASON_NONE;
}

/*
 * collective.  Decodes blocks from st.at to the end of the final one, and moves st.at to the byte
 * boundary behind it.  Returns a reason; if it is not NONE, st.at is the position of the error. All
 * output is then visible to all lanes.  St is state or serial_state.
 */
template <typename St, typename Sum>
WHARF_DEVICE uint32_t decode_stream(St &st, Sum &sum, step_counter &steps)
{
    block b;
    do {
        if (!steps.take(BLOCK_STEPS))
            return WHARF_REASON_STEP_BUDGET;
        b = read_header(st);
        uint32_t reason = b.reason;
        if (st.is_stopped())
            return STOPPED;
        if (reason == WHARF_REASON_NONE) {
            st.at = b.body;
            reason = b.type == WHARF_DEFLATE_STORED ? copy_stored(st, b.stored_nbytes)
                                                    : decode_body(st, sum, steps);
        }
        if (reason != WHARF_REASON_NONE)
            return reason;
        sum.update(st.out.position);
    } while (!b.final);
    st.at = (st.at + 7) & ~7u;
    syncwarp();
    return WHARF_REASON_NONE;
}

WHARF_DEVICE verdict bad_stream(uint32_t reason, uint32_t bit_offset)
{
    if (reason == STOPPED)
        return stopped();
    uint32_t result = reason == WHARF_REASON_OUTPUT_FULL   ? WHARF_OUTPUT_TOO_SMALL
                      : reason == WHARF_REASON_STEP_BUDGET ? WHARF_INTERNAL
                                                           : WHARF_BAD_DATA;
    return bad(result, reason, bit_offset);
}

/* One lane.  The warp synchronises when the first header moves the window. */
template <typename P>
WHARF_DEVICE void begin_shared(shared<P> &s, const chunk_job &job)
{
    store(&s.litlen.how, 0u); /* not FIXED_CODES */
    store(&s.cycle.position, NO_WINDOW);
    store(&s.stop.at, job.stop.at);
    store(&s.stop.value, job.stop.value);
}

/* collective.  Returns a state at a stream's first block header, at byte in_begin of the input,
 * with output from byte out_begin on. */
template <typename P>
WHARF_DEVICE void start(state<P> &st, shared<P> &s, const chunk_job &job, uint32_t in_begin,
                        uint32_t out_begin)
{
    st.ref.init(s);
    if (lane_id() == 0)
        begin_shared(s, job);
    st.source.init(job.in, uniform(job.in_nbytes));
    st.source.begin = uniform(st.source.begin);
    st.source.end = uniform(st.source.end);
    st.at = 8 * (st.source.begin + in_begin);
    st.out.init(uniform_global(job.out + out_begin), uniform(job.out_avail) - out_begin);
    st.window = NO_WINDOW;
}

/* collective. */
template <typename St, typename Shared>
WHARF_DEVICE verdict decode(Shared &s, const chunk_job &job)
{
    St st;
    no_sum sum;
    step_counter steps;
    steps.init(job);
    start(st, s, job, 0, 0);
    uint32_t reason = decode_stream(st, sum, steps);
    if (reason != WHARF_REASON_NONE)
        return bad_stream(reason, st.bit_offset());
    return good(st.bit_offset() / 8, st.out.position);
}

} // namespace flate

using deflate_shared = flate::shared<flate::tuning>;
constexpr size_t DEFLATE_SCRATCH_NBYTES = 0;
constexpr unsigned DEFLATE_WARPS_PER_SM = 32;
static_assert(sizeof(deflate_shared) <= 7040);

/* collective. */
WHARF_DEVICE verdict deflate_decode(deflate_shared &s, const chunk_job &job)
{
    return flate::decode<flate::state<flate::tuning>>(s, job);
}

} // namespace wharf

#endif
