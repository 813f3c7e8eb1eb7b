/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz_decode.cuh: the decoder that lz4 and snappy share, for sequences of literals and a match, all
 * aligned to bytes.  A codec describes only the layout of its sequences, in a Format.
 *
 * Idea: the warp finds up to 32 sequences at a time (lz_find.cuh) and writes them together
 * (lz_write.cuh).  A sequence that does not fit a batch, or that looks wrong, goes through the
 * exact path: all lanes take it alike, one sequence at a time.
 *
 * Invariant: a batch contains only sequences that follow one another from a known start.  Only the
 * exact path reports errors, so errors and their positions are those of the CPU decoder.
 *
 * A Format has these members.  "The position" is that of the input, st.in.
 *
 *   uint32_t begin(stream &)
 *       collective.  Reads the header before the first sequence.  Returns a reason.
 *   bool is_done(const stream &)
 *       Whether there are no more sequences.
 *   uint32_t take_one(stream &)
 *       collective.  Takes the sequence at st.in.  Returns a reason.
 *   void took_batch(uint32_t at, const found &f, bool mine)
 *       collective.  Called after a batch was written.  Its last match is at `at` in the output.
 *       If `mine`, f is this lane's sequence of the batch.
 *   uint32_t links(const input &in, uint32_t in_left) const
 *       collective.  For each of this lane's four bytes, 4 * lane to 4 * lane + 3 behind the
 *       position: where the next sequence would begin if one began at that byte.  Returns four
 *       places behind the position, one a byte, the first in the lowest byte.  WINDOW_NBYTES and
 *       above mean none.  Places may be wrong: a wrong one ends the batch.
 *   void took_block(uint32_t at)
 *       collective.  The counterpart of took_batch for the batches of a block: lz_block.cuh.
 *   static found look(const Input &in, uint32_t i, uint32_t in_left, uint32_t reach)
 *       One lane.  The sequence that would begin i bytes behind the position; it takes two bytes or
 *       more.  It is not good if it needs more than the `reach` bytes that the Input holds.
 *   static constexpr bool CYCLES
 *       Whether runs of matches at distance 8 are written together (lz_cycle.cuh).
 *   static constexpr bool JOINS
 *       Whether the format cuts a long match into several consecutive ones, to be joined again.
 *   static constexpr uint32_t LONG_OVERLAP
 *       From this length on, matches that overlap themselves are copied one by one.
 *   static constexpr uint32_t BLOCK_MOST_RATIO
 *       Above this ratio of output to input, one warp decodes instead of the whole block.
 *   static constexpr uint32_t AHEAD_NBYTES
 *       The most bytes that look() reads from the position on.
 */
#ifndef WHARF_KERNELS_LZ_DECODE_CUH
#define WHARF_KERNELS_LZ_DECODE_CUH

#include "kernels/lz_cycle.cuh"
#include "kernels/lz_find.cuh"

namespace wharf
{
namespace lz
{

/* What became of a batch. */
struct batch_result {
    uint32_t n;          /* its sequences; 0: nothing is done */
    uint32_t in_nbytes;  /* that it took */
    uint32_t last_match; /* where its last match begins in the output */
    bool stopped;        /* what comes next is not for a batch */
};

/*
 * collective.  Makes one sequence of a match and those behind it that go on with it, at the same
 * distance and without literals.  Lanes 0 to n - 1 have a sequence, which ends at `end` of the
 * batch; afterwards fewer have, the others' length is 0.
 */
WHARF_DEVICE void join_matches(shared &s, sequence &q, uint32_t end, uint32_t n)
{
    uint32_t distance = q.length > q.n_literals ? q.distance : 0;
    uint32_t before = shfl_up(distance, 1);
    bool joins = (lane_id() > 0) & (distance > 0) & (distance == before) & (q.n_literals == 0);
    uint32_t heads = ballot(!joins & (lane_id() < n));
    uint32_t n_heads = popc(heads);
    if (n_heads == n)
        return;
    if (heads >> lane_id() & 1)
        store(&s.heads[popc(heads & lanemask_lt())], (uint8_t)lane_id());
    syncwarp();
    bool is_there = lane_id() < n_heads;
    uint32_t head = is_there ? load(&s.heads[lane_id()]) : 0;
    uint32_t last = shfl_down(head, 1) - 1;
    end = shfl(end, lane_id() + 1 < n_heads ? last : n - 1);
    q.begin = shfl(q.begin, head);
    q.n_literals = shfl(q.n_literals, head);
    q.literals = shfl(q.literals, head);
    q.distance = shfl(q.distance, head);
    q.n_literals = is_there ? q.n_literals : 0;
    q.length = is_there ? end - q.begin : 0;
}

/* collective.  How many of the first n sequences write_cycle() is to write; 0: none. */
WHARF_DEVICE uint32_t count_cycles(const found &f, uint32_t n, uint32_t position)
{
    bool fits = (f.n_literals <= MOST_CYCLE_LITERALS) & ((f.match_length == 0) | (f.distance == 8));
    uint32_t front = ballot(fits & (lane_id() < n));
    uint32_t n_front = ~front ? first_lane(~front) : 32;
    uint32_t n_long = popc(ballot((f.match_length >= MIN_CYCLE_LENGTH) & (lane_id() < n_front)));
    return n_long >= MIN_CYCLE_MATCHES && position >= MIN_CYCLE_POSITION ? n_front : 0;
}

/* collective.  Writes the sequences of lanes 0, 1, ... up to the first that is not good, or reaches
 * too far, or does not fit.  The caller moves its position on. */
template <typename Format>
WHARF_DEVICE batch_result take_batch(shared &sh, const input &in, const uint8_t *job_in,
                                     output_stream &out, const found &f, bool is_there)
{
    sequence s;
    uint32_t length = f.good ? f.n_literals + f.match_length : 0;
    uint32_t end = inclusive_add(length);
    uint32_t begin = end - length;
    bool reaches = f.match_length == 0 || f.distance - 1 < out.position + begin + f.n_literals;
    uint32_t wrong = ~ballot(f.good & reaches & (end <= out.room()));
    uint32_t n = wrong ? first_lane(wrong) : 32;
    batch_result r = {0, 0, 0, uniform(shfl((uint32_t)is_there, n)) != 0 && n < 32};
    if (n == 0)
        return r;
    uint32_t n_cycles = Format::CYCLES ? uniform(count_cycles(f, n, out.position)) : 0;
    r.stopped &= n_cycles == 0 || n_cycles == n;
    n = n_cycles ? n_cycles : n;
    r.n = n;
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
    if (n_cycles) {
        write_cycle({out.out, job_in, out.position}, s, total);
    } else {
        if (Format::JOINS)
            join_matches(sh, s, end, n);
        write_batch<Format::LONG_OVERLAP>({out.out, job_in, out.position}, s, total);
    }
    out.position += total;
    return r;
}

/* collective.  As many sequences as make a batch.  False: the next is not for one. */
template <typename Format>
WHARF_DEVICE bool take_next(shared &s, stream &st, Format &format, const uint8_t *in)
{
    uint32_t in_left = bytes_left(st.in);
    st.in.ensure(8 * Format::AHEAD_NBYTES);
    fill_links(s, format.links(st.in, in_left));
    uint32_t mine = find_mine(s);
    found f = Format::look(st.in, mine, in_left, RING_NBYTES);
    bool is_there = (mine < WINDOW_NBYTES) & (shfl_up(f.end, 1) == mine || lane_id() == 0);
    f.good &= is_there;
    batch_result r = take_batch<Format>(s, st.in, in, st.out, f, is_there);
    if (r.n) {
        st.in.skip(8 * r.in_nbytes);
        format.took_batch(r.last_match, f, lane_id() < r.n);
    }
    return !r.stopped;
}

/* collective.  Sequences up to the end, or `most` batches and single ones.  Returns a reason; if it
 * is not NONE, `start` is the bit offset of the sequence at which it stands. */
template <typename Format>
WHARF_DEVICE uint32_t decode_turns(shared &s, stream &st, Format &format, const uint8_t *in,
                                   uint32_t &start, uint32_t most)
{
    uint32_t reason = WHARF_REASON_NONE;
    for (uint32_t turn = 0; reason == WHARF_REASON_NONE && turn != most && !format.is_done(st);
         turn++) {
        start = st.in.bit_position();
        if (!st.steps.take(TURN_STEPS))
            return WHARF_REASON_STEP_BUDGET;
        if (turn % TURNS_BETWEEN_LOOKS == 0 && is_stopped(s.stop))
            return STOPPED;
        if (!take_next(s, st, format, in) && !format.is_done(st)) {
            start = st.in.bit_position();
            reason = uniform(format.take_one(st));
        }
    }
    return reason;
}

/* collective.  A stream, whose sequences are decoded by take_all(stream &, Format &, in, start),
 * which is as decode_turns(). */
template <typename Format, typename TakeAll>
WHARF_DEVICE verdict decode_by(shared &s, const chunk_job &job, TakeAll take_all)
{
    stream st;
    Format format;
    const uint8_t *in = uniform_global(job.in);
    if (lane_id() == 0) {
        store(&s.stop.at, job.stop.at);
        store(&s.stop.value, job.stop.value);
        init_links(s);
    }
    syncwarp();
    st.stop = &s.stop;
    st.in.init(s.ring, in, uniform(job.in_nbytes));
    st.out.init(uniform_global(job.out), uniform(job.out_avail));
    st.steps.init(job);
    uint32_t start = 0;
    uint32_t reason = uniform(format.begin(st));
    if (reason == WHARF_REASON_NONE)
        reason = take_all(st, format, in, start);
    if (reason != WHARF_REASON_NONE)
        return failed(reason, start);
    return good(st.in.bit_position() / 8, st.out.position);
}

/* collective. */
template <typename Format>
WHARF_DEVICE verdict decode(shared &s, const chunk_job &job)
{
    return decode_by<Format>(s, job,
                             [&](stream &st, Format &format, const uint8_t *in, uint32_t &start) {
                                 return decode_turns(s, st, format, in, start, 0xffffffffu);
                             });
}

} // namespace lz
} // namespace wharf

#endif
