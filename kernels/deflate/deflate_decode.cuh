/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_decode.cuh: raw Deflate (RFC 1951) on a warp, and the stream that zlib and gzip wrap.
 * KERNELS.md tells how it works; encoders/deflate/deflate_format.h what is good and what is bad.
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

/* The bits of each lane's range for what is left of the input: all of it in 32 parts, but no
 * part too short to fall into step in, nor longer than the window allows. */
template <typename P>
WHARF_DEVICE uint32_t choose_range(uint32_t left)
{
    uint32_t nbits = ((left + 1023) / 1024 | 1) * 32;
    nbits = nbits < P::MIN_RANGE_NBITS ? P::MIN_RANGE_NBITS : nbits;
    return nbits < P::RANGE_NBITS ? nbits : P::RANGE_NBITS;
}

/* collective.  Writes tokens in whole batches, or all; moves the rest to the front. */
template <typename P>
WHARF_DEVICE bool write_tokens(state<P> &st, uint32_t &n, bool all)
{
    uint32_t *tokens = st.s().tokens;
    uint32_t done = 0;
    while (n - done >= 32 || (all && done < n)) {
        uint32_t batch = n - done < 32 ? n - done : 32;
        if (!write_batch<P>(st.out, tokens + done, batch))
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
 * collective.  Decodes a piece of a body that 32 ranges cover, from st.at on, which moves to
 * where the next symbol begins, or the next block.  status::stop: something is there that the
 * careful path has to judge.
 */
template <typename P>
WHARF_DEVICE status decode_region(state<P> &st)
{
    shared<P> &s = st.s();
    uint32_t begin = st.at, begin_out = st.out.position;
    move_window(st, begin);
    uint32_t at = begin - st.window, end = st.end() - st.window; /* as places in the window */
    sub_list list = scout(s, at, choose_range<P>(end - at), end);
    uint32_t n_tokens = 0;
    status ended = status::more;
    bool more = list.n_all != 0;
    for (uint32_t group = 0; more; group++) {
        group_result r = decode_group(s, list, group, at, end, s.tokens + n_tokens);
        at = r.at;
        ended = r.ended;
        n_tokens += r.n_tokens;
        more = r.n_tokens && ended == status::more && 32 * (group + 1) < list.n_all;
        if (!write_tokens(st, n_tokens, !more)) {
            /* A distance too far, or the output full: once more, one by one, to say where. */
            st.at = begin;
            st.out.position = begin_out;
            return status::stop;
        }
    }
    st.at = at + st.window;
    return ended;
}

/* collective.  A block's body from st.at on.  Returns a reason; st.at is then at its unit. */
template <typename P, typename Sum>
WHARF_DEVICE uint32_t decode_body(state<P> &st, Sum &sum)
{
    status ended = P::SERIAL ? status::stop : status::more;
    while (ended == status::more) {
        ended = st.at < st.end() ? decode_region(st) : status::stop;
        if (ended == status::more)
            sum.update(st.out.position);
    }
    if (ended == status::block_end)
        return WHARF_REASON_NONE;
    careful_result r = decode_carefully(st);
    st.at = uniform(r.at);
    st.out.position = uniform(r.position);
    st.window = uniform(r.window);
    return uniform(r.reason);
}

/* collective.  The bytes of a stored block. */
template <typename P>
WHARF_DEVICE uint32_t copy_stored(state<P> &st, uint32_t nbytes)
{
    uint32_t in_left = (st.end() - st.at) / 8;
    uint32_t room = st.out.room();
    uint32_t n = nbytes < in_left ? nbytes : in_left;
    n = n < room ? n : room;
    st.out.copy_input(st.source, st.at / 8 - st.source.begin, n);
    st.at += 8 * n;
    if (n < nbytes)
        return n == in_left ? WHARF_REASON_INPUT_TRUNCATED : WHARF_REASON_OUTPUT_FULL;
    return WHARF_REASON_NONE;
}

/*
 * collective.  Decodes blocks from st.at to the end of the final one, behind which st.at then
 * stands at a byte's boundary.  Returns a reason; if it is not NONE, st.at is where the error
 * stands.  What was written is visible to all lanes afterwards.
 */
template <typename P, typename Sum>
WHARF_DEVICE uint32_t decode_stream(state<P> &st, Sum &sum)
{
    block b;
    do {
        b = read_header(st);
        st.window = uniform(b.window);
        uint32_t reason = uniform(b.reason);
        if (reason == WHARF_REASON_NONE) {
            st.at = uniform(b.body);
            reason = b.type == WHARF_DEFLATE_STORED ? copy_stored(st, b.stored_nbytes)
                                                    : decode_body(st, sum);
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
    return bad(reason == WHARF_REASON_OUTPUT_FULL ? WHARF_OUTPUT_TOO_SMALL : WHARF_BAD_DATA, reason,
               bit_offset);
}

/* collective.  Ready for a stream's first block header, which begins with the input's byte
 * in_begin; its output begins behind the first out_begin bytes. */
template <typename P>
WHARF_DEVICE void start(state<P> &st, shared<P> &s, const chunk_job &job, uint32_t in_begin,
                        uint32_t out_begin)
{
    st.ref.init(s);
    st.source.init(job.in, job.in_nbytes);
    st.at = 8 * (st.source.begin + in_begin);
    st.out.init(uniform_global(job.out + out_begin), job.out_avail - out_begin);
    move_window(st, st.at);
}

/* collective. */
template <typename P>
WHARF_DEVICE verdict decode(shared<P> &s, const chunk_job &job)
{
    state<P> st;
    no_sum sum;
    start(st, s, job, 0, 0);
    uint32_t reason = decode_stream(st, sum);
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
    return flate::decode(s, job);
}

} // namespace wharf

#endif
