/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz_decode.cuh: a decoder of a format of literals and matches in whole bytes, of which lz4 and
 * snappy tell only what their sequences look like.
 *
 * Most sequences are found and written up to 32 at a time (lz_find.cuh, lz_write.cuh).  One that is
 * not fit for a batch, or not in order, is taken alone, by all lanes alike: the careful path, which
 * alone judges.
 *
 * A Format has
 *
 *   uint32_t begin(stream &)
 *       collective.  Takes what stands before the first sequence.  Returns a reason.
 *   bool is_done(const stream &)
 *       Whether there are no more sequences.
 *   uint32_t take_one(stream &)
 *       collective.  Takes the sequence at st.in.  Returns a reason.
 *   void took_batch(uint32_t at)
 *       A batch has been written, whose last match is at `at` in the output.
 *   static found look(const input &in, uint32_t i, uint32_t in_left)
 *       One lane.  The sequence that would begin i bytes behind the position.  What the ring does
 *       not hold is not for a batch.
 *   static constexpr uint32_t AHEAD_NBYTES
 *       What look() sees from the position on, at most.
 */
#ifndef WHARF_KERNELS_LZ_DECODE_CUH
#define WHARF_KERNELS_LZ_DECODE_CUH

#include "kernels/lz_find.cuh"
#include "kernels/lz_write.cuh"

namespace wharf
{
namespace lz
{

/* What became of a batch. */
struct batch_result {
    uint32_t in_nbytes;  /* that it took; 0: nothing is done */
    uint32_t last_match; /* where its last match begins in the output */
    bool stopped;        /* what comes next is not for a batch */
};

/* collective.  Writes the sequences of lanes 0, 1, ... up to the first that is not good, or reaches
 * too far, or does not fit.  The caller moves its position on. */
WHARF_DEVICE batch_result take_batch(const input &in, const uint8_t *job_in, output_stream &out,
                                     const found &f, bool is_there)
{
    sequence s;
    uint32_t length = f.good ? f.n_literals + f.match_length : 0;
    uint32_t end = inclusive_add(length);
    uint32_t begin = end - length;
    bool reaches = f.match_length == 0 || f.distance - 1 < out.position + begin + f.n_literals;
    uint32_t wrong = ~ballot(f.good & reaches & (end <= out.room()));
    uint32_t n = wrong ? first_lane(wrong) : 32;
    batch_result r = {0, 0, uniform(shfl((uint32_t)is_there, n)) != 0 && n < 32};
    if (n == 0)
        return r;
    bool mine = lane_id() < n;
    s.begin = begin;
    s.n_literals = mine ? f.n_literals : 0;
    s.length = mine ? length : 0;
    s.literals = in.bit_position() / 8 + f.literals;
    s.distance = f.distance & 0xffff;
    uint32_t total = uniform(shfl(end, n - 1));
    r.in_nbytes = uniform(shfl(f.end, n - 1));
    r.last_match = uniform(shfl(out.position + begin + f.n_literals, n - 1));
    syncwarp(); /* what was written before, before it is read */
    write_batch({out.out, job_in, out.position}, s, total);
    out.position += total;
    return r;
}

/* collective.  As many sequences as make a batch.  False: the next is not for one. */
template <typename Format>
WHARF_DEVICE bool take_next(shared &s, stream &st, Format &format, const uint8_t *in)
{
    uint32_t in_left = bytes_left(st.in);
    st.in.ensure(8 * Format::AHEAD_NBYTES);
    find_links(s, [&](uint32_t i) {
        found f = Format::look(st.in, i, in_left);
        return f.good ? f.end - i : 0;
    });
    uint32_t mine = find_mine(s);
    found f = Format::look(st.in, mine, in_left);
    bool is_there = mine < WINDOW_NBYTES;
    f.good &= is_there;
    batch_result r = take_batch(st.in, in, st.out, f, is_there);
    if (r.in_nbytes) {
        st.in.skip(8 * r.in_nbytes);
        format.took_batch(r.last_match);
    }
    return !r.stopped;
}

/* collective.  Sequences up to the end.  Returns a reason; if it is not NONE, `start` is the bit
 * offset of the sequence at which it stands. */
template <typename Format>
WHARF_DEVICE uint32_t decode_sequences(shared &s, stream &st, Format &format, const uint8_t *in,
                                       uint32_t &start)
{
    uint32_t reason = WHARF_REASON_NONE;
    for (uint32_t turn = 0; reason == WHARF_REASON_NONE && !format.is_done(st); turn++) {
        start = st.in.bit_position();
        if (!st.steps.take(TURN_STEPS))
            return WHARF_REASON_STEP_BUDGET;
        if (turn % TURNS_BETWEEN_LOOKS == 0 && is_stopped(s.stop))
            return STOPPED;
        if (!take_next(s, st, format, in) && !format.is_done(st)) {
            start = st.in.bit_position();
            reason = format.take_one(st);
        }
    }
    return reason;
}

/* collective. */
template <typename Format>
WHARF_DEVICE verdict decode(shared &s, const chunk_job &job)
{
    stream st;
    Format format;
    const uint8_t *in = uniform_global(job.in);
    if (lane_id() == 0) {
        store(&s.stop.at, job.stop.at);
        store(&s.stop.value, job.stop.value);
    }
    syncwarp();
    st.stop = &s.stop;
    st.in.init(s.ring, job.in, job.in_nbytes);
    st.out.init(job.out, job.out_avail);
    st.steps.init(job);
    uint32_t start = 0;
    uint32_t reason = format.begin(st);
    if (reason == WHARF_REASON_NONE)
        reason = decode_sequences(s, st, format, in, start);
    if (reason != WHARF_REASON_NONE)
        return failed(reason, start);
    return good(st.in.bit_position() / 8, st.out.position);
}

} // namespace lz
} // namespace wharf

#endif
