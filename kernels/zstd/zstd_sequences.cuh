/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_sequences.cuh: decodes a block's sequences, up to 32 in a batch.
 *
 * Idea: each sequence's three FSE states depend on those of the sequence before, so the warp
 * follows the states one sequence after the other.  For each sequence it notes only the table cells
 * and where the sequence's bits begin.  From these notes lane i then finds the values of sequence
 * i, so all values are found at once.  A scan resolves repeated offsets.  Then the batch is written
 * (zstd_write.cuh).
 *
 * Invariant: a batch contains only sequences that are valid.  It ends before a sequence that is
 * not, or that is too long for a batch.  From there all lanes take some sequences alike, on the
 * exact path, which alone reports errors.
 */
#ifndef WHARF_KERNELS_ZSTD_ZSTD_SEQUENCES_CUH
#define WHARF_KERNELS_ZSTD_ZSTD_SEQUENCES_CUH

#include "kernels/zstd/zstd_table.cuh"
#include "kernels/zstd/zstd_write.cuh"

namespace wharf
{
namespace zstd
{

/* Sequences that the exact path takes before a batch is tried again. */
constexpr uint32_t N_CAREFUL = 32;
/* Batches between two looks at whether the job is to be stopped. */
constexpr uint32_t BATCHES_BETWEEN_LOOKS = 16;
/* What a batch takes from the step budget.  A block's last batch may have no bits to pay for it,
 * but more than 5 bytes of the block precede it. */
constexpr uint32_t BATCH_STEPS = 8;

/* A block's sequences under way.  The same in all lanes. */
struct sequences {
    uint32_t n;         /* how many are left */
    uint32_t at;        /* the bits of the next one are below */
    uint32_t begin_bit; /* and not below this one */
    uint32_t index[3];  /* the states, by kind */
    /* Literals: the next one is literals[n_out + room]; there are those before literals[end]. */
    const uint8_t *literals;
    uint32_t in_input,
        in_at; /* whether that is in the input, and then where literals[0] would be */
    uint32_t end;
    uint32_t room; /* what the block may still have of matches, with room for all literals */
    uint32_t room_reason;
};

/* The states, and where the next sequence's bits are. */
struct chain {
    uint32_t at;
    uint32_t index[3];
};

/* The most bits, of values and next states together, of a sequence that follow_states() can pass.
 */
constexpr uint32_t MAX_FOLLOWED_NBITS = 64;

/*
 * One lane.  Follows the states of n sequences.  If is_noted, it stores notes of each, which other
 * lanes may read after they synchronise.  After a sequence of more than MAX_FOLLOWED_NBITS the
 * states are undefined.
 *
 * The chain from state to state is kept short: the cells are loaded together with the bits that may
 * belong to them, and these are then shifted by what the cells say.
 */
template <unsigned N>
WHARF_DEVICE chain follow_states(const uint32_t *cells, const bits_of<N> &window,
                                 batch_notes &notes, chain c, uint32_t n, bool is_noted)
{
    WHARF_NO_UNROLL
    for (uint32_t i = 0; i < n; i++) {
        uint32_t cell[3];
        WHARF_UNROLL
        for (unsigned k = 0; k < 3; k++)
            cell[k] = load(cells + k * CELLS_STRIDE + c.index[k]);
        /* 64 bits below. */
        const uint32_t *w = &window.words[(c.at >> 5 & (N - 1)) + WINDOW_FIRST - 2];
        uint32_t middle = load(w + 1);
        uint32_t low = funnel_right(load(w), middle, c.at);
        uint32_t high = funnel_right(middle, load(w + 2), c.at);
        if (is_noted)
            store(&notes.records[i], u32x4{cell[0], cell[1], cell[2], c.at});
        uint32_t sum = cell[0] + cell[1] + cell[2];
        uint32_t n_extra = cell_n_extra(sum); /* 63 at most */
        c.at -= n_extra + cell_n_state(sum);
        uint32_t bits = (uint32_t)(((uint64_t)high << 32 | low) << n_extra >> 32);
        /* Offsets come behind lengths of matches.  Of sums of cells the low five bits are sums
         * too. */
        uint32_t second = funnel_left(0, bits, cell[0]);
        uint32_t third = funnel_left(0, bits, cell[0] + cell[1]);
        c.index[0] = (cell[0] >> CELL_NEXT_SHIFT) + funnel_left(bits, 0, cell[0]);
        c.index[1] = (cell[1] >> CELL_NEXT_SHIFT) + funnel_left(second, 0, cell[1]);
        c.index[2] = (cell[2] >> CELL_NEXT_SHIFT) + funnel_left(third, 0, cell[2]);
    }
    if (is_noted)
        store(&notes.records[n], u32x4{c.index[0], c.index[1], c.index[2], c.at});
    return c;
}

/* ---- offsets ---------------------------------------------------------------------------------
 *
 * The last three offsets after a sequence, a byte each, are each one of those before, 0 to 2, or
 * FRESH and the lane whose sequence has brought it.
 */
constexpr uint32_t FRESH = 0x80;
constexpr uint32_t NO_CHANGE = 0x020100;

/* One lane.  What is left after `before` and then `after`. */
WHARF_DEVICE uint32_t join_changes(uint32_t before, uint32_t after)
{
    uint32_t fresh = (after >> 7 & 0x010101) * 0xff;
    uint32_t choice = (after & ~fresh) | (0x060504 & fresh);
    choice = (choice & 7) | (choice >> 4 & 0x70) | (choice >> 8 & 0x700);
    return byte_perm(before, after, choice) & 0xffffff;
}

/* collective.  What is left after the sequences of all lanes up to this one. */
WHARF_DEVICE uint32_t scan_changes(uint32_t change)
{
    WHARF_UNROLL
    for (unsigned delta = 1; delta < WARP_LANES; delta *= 2) {
        uint32_t before = shfl_up(change, delta);
        change = join_changes(lane_id() >= delta ? before : NO_CHANGE, change);
    }
    return change;
}

/* collective.  The offset that byte `which` names, of the three before the batch and of the fresh
 * ones of the lanes. */
WHARF_DEVICE uint32_t find_offset(const state &st, uint32_t which, uint32_t fresh)
{
    uint32_t found = shfl(fresh, which & 31);
    uint32_t old = which == 0 ? st.offsets[0] : which == 1 ? st.offsets[1] : st.offsets[2];
    return which & FRESH ? found : old;
}

/* The offsets that the lanes' offset values stand for. */
struct offsets_found {
    bool is_simple;   /* there are only fresh ones, and the last one over again */
    uint32_t brought; /* the lanes that bring a fresh one: if it is */
    uint32_t changes; /* up to each lane's sequence: if it is not */
    uint32_t fresh;   /* what it brings, if it does */
    uint32_t distance;
};

/* collective.  For lanes below n; value is not 0. */
WHARF_DEVICE offsets_found find_offsets(const state &st, uint32_t value, bool has_literals,
                                        uint32_t n)
{
    uint32_t lane = lane_id();
    uint32_t which = value - has_literals; /* of values up to 3 */
    offsets_found f = {};
    f.fresh = value - 3;
    f.brought = ballot((lane < n) & (value > 3));
    f.is_simple = !any_lane((lane < n) & (value <= 3) & (which != 0));
    if (f.is_simple) {
        uint32_t upto = f.brought & (lanemask_lt() | 1u << lane);
        uint32_t found = shfl(f.fresh, high_bit(upto | 1));
        f.distance = upto ? found : st.offsets[0];
        return f;
    }
    bool is_less = value <= 3 && which == 3;
    uint32_t change = value > 3 || is_less ? 0x010000 | FRESH | lane
                      : which == 0         ? NO_CHANGE
                      : which == 1         ? 0x020001
                                           : 0x010002;
    f.changes = scan_changes(lane < n ? change : NO_CHANGE);
    /* One less than the last offset: those that are so in turn. */
    for (uint32_t left = ballot(is_less & (lane < n)); left; left &= left - 1) {
        unsigned who = first_lane(left);
        uint32_t before = who ? uniform(shfl(f.changes, who - 1)) & 0xff : 0;
        uint32_t offset = find_offset(st, before, f.fresh);
        f.fresh = lane == who ? offset - 1 : f.fresh;
    }
    f.distance = find_offset(st, f.changes & 0xff, f.fresh);
    return f;
}

/* collective.  The last offsets after lane number `last`. */
WHARF_DEVICE void keep_offsets(state &st, const offsets_found &f, uint32_t last)
{
    if (!f.is_simple) {
        uint32_t changes = shfl(f.changes, last);
        uint32_t first = find_offset(st, changes & 0xff, f.fresh);
        uint32_t second = find_offset(st, changes >> 8 & 0xff, f.fresh);
        uint32_t third = find_offset(st, changes >> 16 & 0xff, f.fresh);
        st.offsets[0] = first;
        st.offsets[1] = second;
        st.offsets[2] = third;
        return;
    }
    /* The old ones move on behind those that were brought. */
    uint32_t brought = f.brought & ((2u << last) - 1), n = popc(brought);
    uint32_t fresh[3];
    WHARF_UNROLL
    for (unsigned k = 0; k < 3; k++) {
        uint32_t lane = high_bit(brought | 1);
        fresh[k] = shfl(f.fresh, lane);
        brought &= ~(1u << lane);
    }
    st.offsets[2] = n > 2    ? fresh[2]
                    : n == 2 ? st.offsets[0]
                    : n == 1 ? st.offsets[1]
                             : st.offsets[2];
    st.offsets[1] = n > 1 ? fresh[1] : n == 1 ? st.offsets[0] : st.offsets[1];
    st.offsets[0] = n > 0 ? fresh[0] : st.offsets[0];
}

/* How far back a match at `at` of the output may begin. */
WHARF_DEVICE uint32_t reach_at(const state &st, uint32_t at)
{
    uint32_t n = at - st.frame_out;
    return n < st.window_nbytes ? n : st.window_nbytes;
}

/* ---- a batch --------------------------------------------------------------------------------- */

/* Values of a lane's sequence. */
struct values {
    uint32_t offset, match_length, n_literals;
    int32_t end; /* bits below are its next states', counted in the window */
};

/* One lane. */
template <unsigned N>
WHARF_DEVICE values read_values(const shared &s, const bits_of<N> &w, const u32x4 &record)
{
    values v;
    uint32_t p = record.w;
    uint32_t n = cell_n_extra(record.z);
    v.offset = (1u << n) + window_bits_below(w, p, n);
    p -= n;
    n = cell_n_extra(record.y);
    uint32_t base = load(&s.bases[WHARF_ZSTD_N_LITERAL_LENGTHS + cell_symbol(record.y)]);
    v.match_length = (base & 0xffffff) + window_bits_below(w, p, n);
    p -= n;
    n = cell_n_extra(record.x);
    base = load(&s.bases[cell_symbol(record.x)]);
    v.n_literals = (base & 0xffffff) + window_bits_below(w, p, n);
    v.end = (int32_t)(p - n);
    return v;
}

/* Of a lane's sequence and those of the lanes before. */
struct lengths_so_far {
    uint32_t literals, matches;
};

/* collective.  By one scan, if all are short. */
WHARF_DEVICE lengths_so_far add_lengths(uint32_t n_literals, uint32_t match_length)
{
    constexpr uint32_t SHORT = (1 << 16) / WARP_LANES - 1;
    if (any_lane((n_literals > SHORT) | (match_length > SHORT)))
        return {inclusive_add(n_literals), inclusive_add(match_length)};
    uint32_t sums = inclusive_add(match_length << 16 | n_literals);
    return {sums & 0xffff, sums >> 16};
}

/* The bits that a batch may have, at most, and those that may be loaded with them. */
constexpr uint32_t MAX_BATCH_NBITS = 32 * (31 + 16 + 16 + 9 + 9 + 8) + 64;

/* The first quad of a window of N words in which all bits are that a batch at bit `at` may have. */
template <unsigned N>
WHARF_DEVICE uint32_t window_quad(uint32_t at)
{
    constexpr uint32_t NBITS = 32 * N - 128;
    static_assert(NBITS >= MAX_BATCH_NBITS);
    return at > NBITS ? (at - NBITS + 127) >> 7 : 0;
}

/* collective.  The states from q's on, of n sequences that are noted, if they are to.  Synchronises
 * before and after. */
WHARF_DEVICE chain follow_batch(const state &st, const sequences &q, uint32_t n, bool is_noted)
{
    shared &s = st.s();
    uint32_t base = 128 * window_quad<WINDOW_NWORDS>(q.at);
    load_window(st.source, s.window, base >> 7);
    chain c = {q.at - base, {q.index[0], q.index[1], q.index[2]}};
    c = follow_states(s.cells, s.window, s.notes, c, n, is_noted & (lane_id() == 0));
    syncwarp();
    c.at += base;
    return c;
}

/* What is noted of a batch, and in which window, which begins at bit `base`. */
template <unsigned N>
struct noted_batch {
    const bits_of<N> &window;
    const batch_notes &notes;
    uint32_t base;
};

/* How a warp comes to its batches' notes: it makes them itself. */
struct own_notes {
    /* collective.  Those of the next n sequences of q.  Synchronises. */
    WHARF_DEVICE_MEMBER noted_batch<WINDOW_NWORDS> next(const state &st, const sequences &q,
                                                        uint32_t n)
    {
        follow_batch(st, q, n, true);
        return {st.s().window, st.s().notes, 128 * window_quad<WINDOW_NWORDS>(q.at)};
    }
    /* collective.  They are read. */
    WHARF_DEVICE_MEMBER void release(const sequences &) {}
    /* collective.  Those of no later sequences are wanted. */
    WHARF_DEVICE_MEMBER void drop() {}
};

/* collective.  Takes up to 32 sequences, fewer if one is not for a batch.  Returns how many. */
template <typename Notes>
WHARF_DEVICE uint32_t take_batch(state &st, sequences &q, Notes &notes)
{
    shared &s = st.s();
    uint32_t lane = lane_id();
    uint32_t n = q.n < WARP_LANES ? q.n : WARP_LANES;
    auto b = notes.next(st, q, n);
    uint32_t base = b.base;
    u32x4 record = load(&b.notes.records[lane < n ? lane : 0]);
    uint32_t at_after = load(&b.notes.records[lane < n ? lane + 1 : 0].w);
    values v = read_values(s, b.window, record);
    u32x4 after = load(&b.notes.records[n]);
    notes.release(q);
    int32_t begin_bit = (int32_t)(q.begin_bit - base);
    /* Behind the last of the block no states follow. */
    bool is_last = q.n == n && lane == n - 1;
    bool is_good = (lane < n) & ((is_last ? v.end : (int32_t)at_after) >= begin_bit) &
                   (record.w - at_after <= MAX_FOLLOWED_NBITS);
    uint32_t n_literals = lane < n ? v.n_literals : 0;
    uint32_t match_length = lane < n ? v.match_length : 0;
    sequence mine;
    lengths_so_far sums = add_lengths(n_literals, match_length);
    uint32_t literals_end = sums.literals, matches_end = sums.matches;
    uint32_t end = literals_end + matches_end;
    offsets_found offsets = find_offsets(st, v.offset, n_literals > 0, n);
    mine.begin = end - n_literals - match_length;
    mine.distance = offsets.distance;
    mine.room = q.room - (matches_end - match_length);
    is_good &= (literals_end <= q.end - (st.n_out + q.room)) & (matches_end <= q.room) &
               (end <= MAX_BATCH_NBYTES) &
               (mine.distance - 1 < reach_at(st, st.n_out + mine.begin + n_literals));
    uint32_t wrong = ~ballot(is_good);
    uint32_t n_good = wrong ? first_lane(wrong) : WARP_LANES;
    if (n_good == 0)
        return 0;
    mine.n_literals = lane < n_good ? n_literals : 0;
    mine.length = lane < n_good ? n_literals + match_length : 0;
    /* Both are less than 2^15. */
    uint32_t both = reduce_or(lane == n_good - 1 ? end << 16 | matches_end : 0);
    uint32_t total = both >> 16, n_matched = both & 0xffff;
    keep_offsets(st, offsets, n_good - 1);
    chain c = {base + after.w, {after.x, after.y, after.z}};
    if (n_good < n)
        c = follow_batch(st, q, n_good, false);
    /* Behind the last of the block no states follow. */
    uint32_t next_at = n_good == q.n ? base + (uint32_t)v.end : c.at;
    q.at = reduce_or(lane == n_good - 1 ? next_at : 0);
    WHARF_UNROLL
    for (unsigned k = 0; k < 3; k++)
        q.index[k] = c.index[k];
    write_batch({st.out, q.literals, st.n_out}, mine, total);
    st.n_out += total;
    q.room -= n_matched;
    q.n -= n_good;
    return n_good;
}

/* ---- the exact path ------------------------------------------------------------------------ */

/* collective.  Writes n literals, which exist, to the output. */
WHARF_DEVICE void put_literals(state &st, const sequences &q, uint32_t n)
{
    uint32_t from = uniform(st.n_out + q.room);
    n = uniform(n);
    if (q.in_input) {
        output_stream out = {st.out, st.out_avail, st.n_out};
        out.copy_input(st.source, q.in_at + from - st.source.begin, n);
        syncwarp();
    } else {
        move_down(st.out, st.n_out, from, n);
    }
    st.n_out += n;
}

/* One lane.  The offset that a value stands for, or 0 if it is invalid.  Updates the last offsets.
 */
WHARF_DEVICE uint32_t take_offset(state &st, uint32_t value, bool has_literals)
{
    uint32_t which = value - has_literals;
    uint32_t offset = value > 3    ? value - 3
                      : which == 0 ? st.offsets[0]
                      : which == 1 ? st.offsets[1]
                      : which == 2 ? st.offsets[2]
                                   : st.offsets[0] - 1;
    if (value > 3 || which > 1)
        st.offsets[2] = st.offsets[1];
    if (value > 3 || which > 0)
        st.offsets[1] = st.offsets[0];
    st.offsets[0] = offset;
    return offset;
}

/* collective.  Takes the next sequence.  Returns a reason. */
WHARF_DEVICE uint32_t take_one(state &st, sequences &q)
{
    shared &s = st.s();
    uint32_t base = 128 * window_quad<WINDOW_NWORDS>(q.at);
    const bit_window &w = s.window;
    load_window(st.source, s.window, base >> 7);
    uint32_t left = q.at - q.begin_bit;
    uint32_t cells[3];
    WHARF_UNROLL
    for (unsigned k = 0; k < 3; k++)
        cells[k] = load(&s.cells[k * CELLS_STRIDE + uniform(q.index[k])]);
    u32x4 record = {cells[0], cells[1], cells[2], q.at - base};
    values v = read_values(s, w, record);
    uint32_t n_extra = cell_n_extra(cells[0] + cells[1] + cells[2]);
    if (n_extra > left)
        return WHARF_REASON_ZSTD_SEQUENCES;
    if (v.n_literals > q.end - (st.n_out + q.room))
        return WHARF_REASON_ZSTD_SEQUENCE_LITERALS;
    if (v.match_length > q.room)
        return q.room_reason;
    put_literals(st, q, v.n_literals);
    uint32_t distance = uniform(take_offset(st, v.offset, v.n_literals > 0));
    if (distance - 1 >= reach_at(st, st.n_out))
        return WHARF_REASON_ZSTD_OFFSET;
    output_stream out = {st.out, st.out_avail, st.n_out};
    out.copy_match(distance, v.match_length);
    syncwarp();
    st.n_out += v.match_length;
    q.room -= v.match_length;
    q.n--;
    q.at -= n_extra;
    if (q.n == 0)
        return WHARF_REASON_NONE;
    uint32_t n_state = cell_n_state(cells[0] + cells[1] + cells[2]);
    if (n_state > left - n_extra)
        return WHARF_REASON_ZSTD_SEQUENCES;
    uint32_t p = record.w - n_extra;
    WHARF_UNROLL
    for (unsigned k = 0; k < 3; k++) {
        uint32_t n = cell_n_state(cells[k]);
        q.index[k] = (cells[k] >> CELL_NEXT_SHIFT) + uniform(window_bits_below(w, p, n));
        p -= n;
    }
    q.at -= n_state;
    return WHARF_REASON_NONE;
}

/* collective.  Takes up to N_CAREFUL sequences.  Returns a reason. */
WHARF_DEVICE uint32_t take_exactly(state &st, sequences &q)
{
    uint32_t reason = WHARF_REASON_NONE;
    for (uint32_t i = 0; i < N_CAREFUL && q.n > 0 && reason == WHARF_REASON_NONE; i++)
        reason = uniform(take_one(st, q));
    return reason;
}

/* collective.  All of a block: a reason.  The first states are read. */
template <typename Notes>
WHARF_DEVICE uint32_t take_sequences(state &st, sequences &q, Notes &notes)
{
    uint32_t reason = WHARF_REASON_NONE;
    for (uint32_t turn = 0; q.n > 0 && reason == WHARF_REASON_NONE; turn++) {
        if (!st.steps.take(BATCH_STEPS)) {
            reason = WHARF_REASON_STEP_BUDGET;
            break;
        }
        if (turn % BATCHES_BETWEEN_LOOKS == 0 && is_stopped(st.s().stop)) {
            reason = STOPPED;
            break;
        }
        uint32_t wanted = q.n < WARP_LANES ? q.n : WARP_LANES;
        if (take_batch(st, q, notes) == wanted)
            continue;
        notes.drop();
        reason = take_exactly(st, q);
    }
    notes.drop();
    if (reason != WHARF_REASON_NONE)
        return reason;
    return q.at == q.begin_bit ? WHARF_REASON_NONE : WHARF_REASON_ZSTD_SEQUENCES;
}

} // namespace zstd
} // namespace wharf

#endif
