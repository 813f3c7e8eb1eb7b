/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_strands.cuh: pieces of a rans stream, kernels/rans_pieces.h, by all warps of a GPU, as fast
 * as it goes.
 *
 * A *strand* is one decoder on its way through a piece; a warp has several of them by turns, all of
 * which go on together by batches, as the chains of rans_chains.cuh do: what is said there of
 * windows and of who goes on behind his end holds here.  It too only says whether all was good:
 * rans_pieces.cuh judges what it refuses, in a kernel of its own.
 *
 * How soon it begins counts as much as how fast it then goes.  So
 * - nothing is in local memory: the lanes of a full multiprocessor have 900 KiB of it for 1 KiB
 *   each, which is more than the caches hold.  What a warp has once, and a window's starts and
 *   states, lie in shared memory where the loop of batches needs the registers;
 * - loads of all that a warp begins with are on their way before tables are made, behind two
 * others: where its splits' fields are, and the fields;
 * - code is short, since all warps wait for each line of it that comes from afar.  Nothing that
 * seldom happens is here, and no branch that is not the same for all lanes (KERNELS.md, rule 9).
 */
#ifndef WHARF_KERNELS_RANS_RANS_STRANDS_CUH
#define WHARF_KERNELS_RANS_RANS_STRANDS_CUH

#include "kernels/rans/rans_chains.cuh"
#include "kernels/rans/rans_pieces.cuh"
#include "kernels/rans/rans_tables.cuh"

namespace wharf
{
namespace rans
{

/* A split's window; start and state are this lane's, all else is the same in all lanes. */
struct window {
    uint32_t number;
    uint32_t first_group, last_group;
    int32_t first_word;
    uint32_t start, state;
};

/* Behind all groups, and below all words; such that differences have the right sign. */
constexpr int32_t BEHIND_GROUPS = 1 << 30, BELOW_WORDS = -(1 << 30);

/* A window's starts and states. */
struct window_lanes {
    uint32_t start[WARP_LANES], state[WARP_LANES];
};

/* Where a strand begins, where its next window is, and the last one that it verifies. */
enum { AT_BEGIN, AT_NEXT, AT_LAST, N_PLACES };

/* Shared memory of a warp. */
template <unsigned STRANDS>
struct strand_memory {
    chain_buffers<STRANDS> buffers;
    window_lanes windows[STRANDS];
    wharf_rans_place places[STRANDS][N_PLACES];
};

/* Of a block. */
template <typename Tables, unsigned WARPS, unsigned STRANDS>
struct strands_memory {
    Tables tables;
    block_ranges ranges;
    strand_memory<STRANDS> warps[WARPS];
};

/* Strands on their way; `state` is this lane's, all else is the same in all lanes. */
template <unsigned STRANDS>
struct strands {
    uint32_t state[STRANDS];
    word_feed feed[STRANDS];
    uint32_t group[STRANDS]; /* that comes next */
    uint32_t end[STRANDS];   /* the group at which the strand ends */
    uint32_t last[STRANDS];  /* the split whose window is its last one to verify */
    window
        next[STRANDS]; /* that comes next, or is being passed; its start and state are not here */
};

/* What all strands of a warp share. */
struct strand_setting {
    stream in;
    model m;
    word_source words;
    uint8_t *out;
    uint32_t n_whole; /* groups of 32 symbols */
};

/* ---- splits -------------------------------------------------------------------------------- */

/* What a lane has loaded of a split: the words in which its start lies, and its state's bytes; as
 * they are, since whoever puts them together waits for them. */
struct window_words {
    uint32_t low, high, state, state_high;
};

/* collective.  Of split `number`; for the stream's beginning, which has none, others. */
WHARF_DEVICE window_words load_window(const stream &in, uint32_t number, const wharf_rans_place &p)
{
    uint32_t at = p.starts_at + 4 + lane_id() * p.start_nbits;
    uint32_t first = in.source.begin + in.body_at + 2 * (at / 16);
    uint32_t state =
        in.split_states_at + (number - 1) * WHARF_RANS_SPLIT_STATES_NBYTES + 2 * lane_id();
    /* Other input comes before starts, and the states behind them. */
    return {inner_word(in, first / 4), inner_word(in, first / 4 + 1), byte_at(in, state),
            byte_at(in, state + 1)};
}

/* collective.  The window that these words are of; for the stream's beginning one without groups.
 */
WHARF_DEVICE window window_of(const stream &in, uint32_t number, const wharf_rans_place &p,
                              const window_words &words)
{
    uint32_t at = p.starts_at + 4 + lane_id() * p.start_nbits;
    uint32_t first = in.source.begin + in.body_at + 2 * (at / 16);
    uint32_t v = funnel_right(words.low, words.high, 8 * (first % 4));
    uint32_t field = low_bits((v << 16 | v >> 16) >> (32 - at % 16 - p.start_nbits), p.start_nbits);
    return {number,       p.first_group,        p.last_group,
            p.first_word, p.base_group + field, words.state | words.state_high << 8};
}

/* What no group and no word is in. */
WHARF_DEVICE window no_window(const stream &in)
{
    return {in.n_splits, BEHIND_GROUPS, BEHIND_GROUPS, BELOW_WORDS, BEHIND_GROUPS, 0};
}

/* collective.  Strand k's next window. */
template <unsigned STRANDS>
WHARF_DEVICE void put_window(strand_memory<STRANDS> &memory, strands<STRANDS> &c, unsigned k,
                             const window &w)
{
    c.next[k] = w;
    store(&memory.windows[k].start[lane_id()], w.start);
    store(&memory.windows[k].state[lane_id()], w.state);
}

/* collective.  Goes on to the window that strand k verifies next, if one is left. */
template <unsigned STRANDS>
WHARF_DEVICE void next_window(const stream &in, const wharf_rans_stream_job &job,
                              strand_memory<STRANDS> &memory, strands<STRANDS> &c, unsigned k)
{
    window w = no_window(in);
    uint32_t number = c.next[k].number + 1;
    if (number <= c.last[k]) {
        wharf_rans_place p = job.places[number];
        w = window_of(in, number, p, load_window(in, number, p));
    }
    put_window(memory, c, k, w);
}

/* ---- beginning ----------------------------------------------------------------------------- */

/* The splits that strands begin with, and what is on its way of them. */
template <unsigned STRANDS>
struct strand_starts {
    uint32_t from[STRANDS];
    window_words words[STRANDS];
    first_blocks blocks[STRANDS];
    window join[STRANDS];
};

/* collective.  The places of strands for pieces `first` and on, or often the last one. */
template <unsigned STRANDS>
WHARF_DEVICE void find_places(const wharf_rans_stream_job &job, strand_memory<STRANDS> &memory,
                              uint32_t first, strands<STRANDS> &c, strand_starts<STRANDS> &starts)
{
    constexpr unsigned NWORDS = sizeof(wharf_rans_place) / sizeof(uint32_t);
    uint32_t words[STRANDS];
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++) {
        uint32_t piece = first + k < job.n_pieces ? first + k : job.n_pieces - 1;
        uint32_t from = first_split_of(job, piece), behind = first_split_of(job, piece + 1);
        uint32_t last = behind < job.layout.n_splits ? behind : behind - 1;
        uint32_t next = from < last ? from + 1 : from;
        starts.from[k] = from;
        c.last[k] = last;
        c.end[k] = behind;
        uint32_t which = lane_id() / NWORDS;
        which = which == AT_BEGIN ? from : which == AT_NEXT ? next : last;
        words[k] =
            load_nc(reinterpret_cast<const uint32_t *>(job.places + which) + lane_id() % NWORDS);
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++)
        if (lane_id() < N_PLACES * NWORDS)
            store(reinterpret_cast<uint32_t *>(memory.places[k]) + lane_id(), words[k]);
    syncwarp();
}

/* collective.  Has all on its way that these strands begin with. */
template <unsigned STRANDS>
WHARF_DEVICE void fetch_starts(const strand_setting &s, const strand_memory<STRANDS> &memory,
                               strand_starts<STRANDS> &starts)
{
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++) {
        starts.blocks[k].load(s.in, s.words, memory.places[k][AT_BEGIN].first_word);
        if (STRANDS == 1)
            starts.blocks[k].load_below(s.words);
    }
    /* Behind what may call a function, which takes registers. */
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++)
        starts.words[k] = load_window(s.in, starts.from[k], memory.places[k][AT_BEGIN]);
}

/* collective.  What they begin with, when it has come.  False if they do not lie within whole
 * groups, or a state is none. */
template <unsigned STRANDS>
WHARF_DEVICE bool begin_strands(const strand_setting &s, strand_memory<STRANDS> &memory,
                                strands<STRANDS> &c, strand_starts<STRANDS> &starts)
{
    const stream &in = s.in;
    bool good = true;
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++)
        if (STRANDS > 1)
            starts.blocks[k].load_below(s.words);
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++) {
        const wharf_rans_place &p = memory.places[k][AT_BEGIN];
        uint32_t behind_last = memory.places[k][AT_LAST].last_group + 1;
        good &= behind_last <= s.n_whole;
        c.end[k] = c.end[k] == in.n_splits ? s.n_whole : behind_last;
        starts.join[k] = window_of(in, starts.from[k], p, starts.words[k]);
        c.group[k] = starts.join[k].last_group + 1;
        c.feed[k].init(s.words, memory.buffers.words[k], p.first_word, starts.blocks[k]);
        c.state[k] = WHARF_RANS_LOW;
        if (starts.from[k] == 0) {
            uint32_t state = in.body_at + 4 * lane_id();
            c.state[k] = le16_at(in, state) << 16 | le16_at(in, state + 2);
            good &= c.state[k] >= WHARF_RANS_LOW;
        }
    }
    return good;
}

/* collective.  Group j of the windows that strands begin with: a lane has its state from its start
 * on, and its first symbol is in the group behind. */
template <lookup KIND, unsigned STRANDS>
WHARF_DEVICE bool join_strand_group(const strand_setting &s, strands<STRANDS> &c,
                                    const strand_starts<STRANDS> &starts, uint32_t j)
{
    found f[STRANDS];
    uint32_t behind[STRANDS], takers[STRANDS];
    bool good = true;
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++)
        f[k] = find_byte<KIND>(s.m, slot_of(s.m, c.state[k]));
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++) {
        const window &w = starts.join[k];
        uint32_t group = w.first_group + j;
        bool joins = group < c.group[k];
        good &= !joins || group <= w.start || f[k].nobodys >> 31 == 0;
        behind[k] = group > w.start ? state_behind(s.m, f[k], c.state[k]) : WHARF_RANS_LOW;
        behind[k] = group == w.start ? w.state : behind[k];
        behind[k] = joins ? behind[k] : c.state[k];
        takers[k] = ballot(behind[k] < WHARF_RANS_LOW);
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++) {
        uint32_t word = c.feed[k].behind.load_before(popc(takers[k] & lanemask_lt()));
        c.state[k] = behind[k] < WHARF_RANS_LOW ? behind[k] << 16 | word : behind[k];
        c.feed[k].behind.move(-(int)popc(takers[k]));
    }
    return good;
}

/* collective.  Sees to it that a batch's words of all strands are at hand. */
template <unsigned STRANDS>
WHARF_DEVICE void ensure_words(const strand_setting &s, strand_memory<STRANDS> &memory,
                               strands<STRANDS> &c)
{
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++)
        c.feed[k].ensure(s.words, memory.buffers.words[k]);
}

/* collective.  All strands through the windows that they begin with; whether all was good in this
 * lane.  Meanwhile the next windows are on their way. */
template <lookup KIND, unsigned STRANDS>
WHARF_DEVICE bool join_strands(const strand_setting &s, strand_memory<STRANDS> &memory,
                               strands<STRANDS> &c, const strand_starts<STRANDS> &starts)
{
    uint32_t n = 0, next[STRANDS];
    window_words words[STRANDS];
    bool good = true;
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++) {
        uint32_t more = c.group[k] - starts.join[k].first_group, from = starts.from[k];
        n = more > n ? more : n;
        next[k] = from < c.last[k] ? from + 1 : from;
        words[k] = load_window(s.in, next[k], memory.places[k][AT_NEXT]);
    }
    n = uniform(n);
    WHARF_NO_UNROLL
    for (uint32_t j = 0; j < n; j++) {
        if (j % BATCH_NGROUPS == 0)
            ensure_words(s, memory, c);
        good &= join_strand_group<KIND>(s, c, starts, j);
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++) {
        window w = window_of(s.in, next[k], memory.places[k][AT_NEXT], words[k]);
        put_window(memory, c, k, next[k] > starts.from[k] ? w : no_window(s.in));
    }
    return good;
}

/* ---- on the way ---------------------------------------------------------------------------- */

/* collective.  n batches of all strands where no window is near; whether all slots were somebody's,
 * in this lane. */
template <lookup KIND, unsigned STRANDS>
WHARF_DEVICE bool go_freely(const strand_setting &s, strand_memory<STRANDS> &memory,
                            strands<STRANDS> &there, uint32_t n)
{
    free_chains<STRANDS> c;
    uint8_t *to[STRANDS];
    uint32_t nobodys = 0;
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++) {
        c.state[k] = there.state[k];
        c.feed[k] = there.feed[k];
        to[k] = s.out + (WARP_LANES * there.group[k] + lane_id());
        there.group[k] += n * BATCH_NGROUPS;
    }
    WHARF_NO_UNROLL
    for (; n > 0; n--) {
        WHARF_UNROLL
        for (unsigned k = 0; k < STRANDS; k++)
            c.feed[k].ensure(s.words, memory.buffers.words[k]);
        WHARF_UNROLL
        for (uint32_t j = 0; j < BATCH_NGROUPS; j++)
            nobodys = free_group<KIND>(s.m, c, to, j, nobodys);
        WHARF_UNROLL
        for (unsigned k = 0; k < STRANDS; k++)
            to[k] += WARP_LANES * BATCH_NGROUPS;
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++) {
        there.state[k] = c.state[k];
        there.feed[k] = c.feed[k];
    }
    return nobodys >> 31 == 0;
}

/* What was bad in this lane, gathered by few instructions. */
struct findings {
    uint32_t signs;       /* the highest bit is set if something was */
    uint32_t differences; /* or any bit */

    WHARF_DEVICE_MEMBER bool good() const { return (signs >> 31 | differences) == 0; }
};

/*
 * collective.  A group of those strands that are not at their ends, with a look at their windows. A
 * lane takes a word from number cut(s) on downwards just when its start has come, the first time
 * with the split's state, and that word is still there when the window begins.  What careful_group
 * looks at follows: the word cut(s) itself is taken by the first of those that start first.
 * `next_word` has the numbers of the words that come next.
 */
template <lookup KIND, unsigned STRANDS>
WHARF_DEVICE void look_group(const strand_setting &s, strands<STRANDS> &c,
                             int32_t next_word[STRANDS], findings &bad)
{
    found f[STRANDS];
    uint32_t behind[STRANDS], takers[STRANDS];
    bool goes[STRANDS];
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++)
        f[k] = find_byte<KIND>(s.m, slot_of(s.m, c.state[k]));
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++) {
        goes[k] = c.group[k] < c.end[k];
        behind[k] = goes[k] ? state_behind(s.m, f[k], c.state[k]) : c.state[k];
        takers[k] = ballot(behind[k] < WHARF_RANS_LOW);
    }
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++) {
        const window &w = c.next[k];
        uint32_t group = c.group[k], before = popc(takers[k] & lanemask_lt());
        bool takes = behind[k] < WHARF_RANS_LOW;
        uint32_t word = c.feed[k].behind.load_before(before);
        c.feed[k].behind.move(-(int)popc(takers[k]));
        c.state[k] = takes ? behind[k] << 16 | word : behind[k];
        bad.signs |= goes[k] ? f[k].nobodys : 0;
        if (group >= w.first_group) {
            /* Both negative, or none: the word's number is the cut or less, the start has come. */
            uint32_t by_cut = (uint32_t)(next_word[k] - w.first_word - 1) - before;
            uint32_t by_start = w.start - (group + 1);
            bad.signs |= takes ? by_cut ^ by_start : 0;
            bad.signs |= group == w.first_group ? (uint32_t)(next_word[k] - w.first_word) : 0;
            bad.differences |= w.start == group ? behind[k] ^ w.state : 0;
        }
        next_word[k] -= (int32_t)popc(takers[k]);
        if (goes[k])
            store_byte(s.out + (WARP_LANES * group + lane_id()), f[k].symbol);
    }
}

/* collective.  n groups of the strands that are not at their ends; whether all was good, in this
 * lane. */
template <lookup KIND, unsigned STRANDS>
WHARF_DEVICE bool go_looking(const strand_setting &s, const wharf_rans_stream_job &job,
                             strand_memory<STRANDS> &memory, strands<STRANDS> &c, uint32_t n)
{
    findings bad = {0, 0};
    int32_t next_word[STRANDS];
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++) {
        next_word[k] = c.feed[k].next_word(s.words, memory.buffers.words[k]);
        c.next[k].start = load(&memory.windows[k].start[lane_id()]);
        c.next[k].state = load(&memory.windows[k].state[lane_id()]);
    }
    WHARF_NO_UNROLL
    for (uint32_t j = 0; j < n; j++) {
        if (j % BATCH_NGROUPS == 0)
            ensure_words(s, memory, c);
        look_group<KIND>(s, c, next_word, bad);
        WHARF_UNROLL
        for (unsigned k = 0; k < STRANDS; k++) {
            if (c.group[k] == c.next[k].last_group && c.group[k] < c.end[k])
                next_window(s.in, job, memory, c, k);
            c.group[k] += c.group[k] < c.end[k];
        }
    }
    return bad.good();
}

/* How strands go on: batches freely, or if there are none groups with a look at windows; none of
 * both at the end. */
struct strand_plan {
    uint32_t n_free, n_looking;
};

template <unsigned STRANDS>
WHARF_DEVICE strand_plan plan_strands(const strand_setting &s, const strands<STRANDS> &c)
{
    uint32_t n_left = 0, n_near = 0, n_free = 0xffffffffu;
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++) {
        const window &w = c.next[k];
        uint32_t near = w.first_group < s.n_whole ? w.first_group : s.n_whole;
        uint32_t behind = w.last_group < c.end[k] ? w.last_group + 1 : c.end[k];
        uint32_t free = near > c.group[k] ? near - c.group[k] : 0;
        uint32_t left = c.end[k] > c.group[k] ? c.end[k] - c.group[k] : 0;
        uint32_t until = behind > c.group[k] ? behind - c.group[k] : 0;
        n_free = free < n_free ? free : n_free;
        n_left = left > n_left ? left : n_left;
        n_near = free < BATCH_NGROUPS && until > n_near ? until : n_near;
    }
    n_free = n_free < n_left ? n_free : n_left;
    n_left = n_near > 0 ? n_near : n_left;
    return {n_free / BATCH_NGROUPS, n_left};
}

/* collective.  Behind the last whole group: what is left of the stream, by the last strand; whether
 * it ends as it should. */
template <lookup KIND, unsigned STRANDS>
WHARF_DEVICE bool end_stream(const strand_setting &s, strand_memory<STRANDS> &memory,
                             strands<STRANDS> &c)
{
    constexpr unsigned k = STRANDS - 1;
    uint32_t number = WARP_LANES * s.n_whole + lane_id();
    bool is_there = number < s.in.n_symbols;
    c.feed[k].ensure(s.words, memory.buffers.words[k]);
    found f = find_byte<KIND>(s.m, slot_of(s.m, c.state[k]));
    bool good = !is_there || f.nobodys >> 31 == 0;
    uint32_t behind = is_there ? state_behind(s.m, f, c.state[k]) : c.state[k];
    uint32_t takers = ballot(behind < WHARF_RANS_LOW);
    uint32_t word = c.feed[k].behind.load_before(popc(takers & lanemask_lt()));
    c.feed[k].behind.move(-(int)popc(takers));
    behind = behind < WHARF_RANS_LOW ? behind << 16 | word : behind;
    if (is_there)
        store_byte(s.out + number, f.symbol);
    good &= behind == WHARF_RANS_LOW;
    good &= c.feed[k].next_word(s.words, memory.buffers.words[k]) == -1;
    return !any_lane(!good);
}

/* collective.  The last strand becomes the first one once more. */
template <unsigned STRANDS>
WHARF_DEVICE void repeat_first(strand_memory<STRANDS> &memory, strands<STRANDS> &c)
{
    constexpr unsigned k = STRANDS - 1;
    const u32x4 *from = memory.buffers.words[0].quads;
    u32x4 *to = memory.buffers.words[k].quads;
    window w = c.next[0];
    uint32_t nbytes = c.feed[0].behind.nbytes_from(reinterpret_cast<const uint16_t *>(from));
    syncwarp(); /* every lane's loads of words that go, before the stores here */
    store(&to[lane_id()], load(&from[lane_id()]));
    store(&to[WARP_LANES + lane_id()], load(&from[WARP_LANES + lane_id()]));
    syncwarp(); /* the stores, before any lane's loads */
    w.start = load(&memory.windows[0].start[lane_id()]);
    w.state = load(&memory.windows[0].state[lane_id()]);
    put_window(memory, c, k, w);
    c.feed[k].behind.init(reinterpret_cast<const uint16_t *>(to));
    c.feed[k].behind.move((int)nbytes / 2);
    c.feed[k].block = c.feed[0].block;
    c.feed[k].pending = c.feed[0].pending;
    c.state[k] = c.state[0];
    c.group[k] = c.group[0];
    c.end[k] = c.end[0];
    c.last[k] = c.last[0];
}

/*
 * collective.  All strands to their ends; whether all was good.  Each turn takes every strand that
 * is not at its end further, to one that lies within the stream.  The stream's last one cannot go
 * on behind its end, and is often at it soon: so from then on it does again what the first one
 * does, which else would have to look at each group.
 */
template <lookup KIND, unsigned STRANDS>
WHARF_DEVICE bool go_to_ends(const strand_setting &s, const wharf_rans_stream_job &job,
                             strand_memory<STRANDS> &memory, strands<STRANDS> &c, bool ends_stream)
{
    constexpr unsigned LAST = STRANDS - 1;
    for (;;) {
        if (uniform(ends_stream && c.group[LAST] >= c.end[LAST]) != 0) {
            if (!end_stream<KIND>(s, memory, c))
                return false;
            if (STRANDS > 1)
                repeat_first(memory, c);
            ends_stream = false;
        }
        strand_plan plan = plan_strands(s, c);
        uint32_t n_free = uniform(plan.n_free), n_looking = uniform(plan.n_looking);
        bool good;
        if (n_free > 0)
            good = go_freely<KIND>(s, memory, c, n_free);
        else if (n_looking > 0)
            good = go_looking<KIND>(s, job, memory, c, n_looking);
        else
            return true;
        if (any_lane(!good))
            return false;
    }
}

/* collective.  Strands that have begun, to their ends; whether all was good. */
template <lookup KIND, unsigned STRANDS>
WHARF_DEVICE bool run_strands(const strand_setting &s, const wharf_rans_stream_job &job,
                              strand_memory<STRANDS> &memory, uint32_t first, strands<STRANDS> &c,
                              const strand_starts<STRANDS> &starts)
{
    if (any_lane(!join_strands<KIND>(s, memory, c, starts)) ||
        !go_to_ends<KIND>(s, job, memory, c, first + STRANDS >= job.n_pieces))
        return false;
    bool good = true;
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++)
        good &= c.feed[k].next_word(s.words, memory.buffers.words[k]) >= -1;
    syncwarp(); /* the buffers may be filled anew */
    return !any_lane(!good);
}

/* ---- a block ------------------------------------------------------------------------------- */

/* All warps of a block, each with all lanes: number `block` of n_blocks.  n_decoders of them
 * decode; the others only make tables. */
template <lookup KIND, typename Tables, unsigned WARPS, unsigned STRANDS>
WHARF_DEVICE void decode_strands(strands_memory<Tables, WARPS, STRANDS> &shared, unsigned warp,
                                 unsigned n_decoders, uint32_t block, uint32_t n_blocks,
                                 const wharf_rans_stream_job &job)
{
    strand_setting s = {stream_of(job), {}, {}, job.out, job.layout.n_symbols / WARP_LANES};
    strand_memory<STRANDS> &memory = shared.warps[warp];
    strands<STRANDS> c;
    strand_starts<STRANDS> starts;
    bool has_tables = false;
    s.words.init(s.in);
    WHARF_NO_UNROLL
    for (uint32_t first = STRANDS * (warp * n_blocks + block);;
         first += STRANDS * n_decoders * n_blocks) {
        bool decodes = warp < n_decoders && first < job.n_pieces;
        /* The last warp has nothing on its way as long as it needs registers for this; often it has
         * nothing to decode either. */
        bool reads = warp == WARPS - 1 && !has_tables;
        model_words words = {};
        if (reads)
            words.load(s.in);
        if (decodes)
            find_places(job, memory, first, c, starts);
        if (reads)
            read_ranges(s.in, words, shared.ranges);
        if (decodes)
            fetch_starts(s, memory, starts);
        if (!has_tables) {
            fill_tables<KIND, WARPS * WARP_LANES>(shared.tables, shared.ranges, s.in.n_bits,
                                                  warp * WARP_LANES + lane_id());
            s.m = with_tables<KIND>(shared.tables, shared.ranges, s.in.n_bits);
            has_tables = true;
        }
        if (!decodes)
            return;
        bool good = begin_strands(s, memory, c, starts) && s.m.total > 0;
        if (!any_lane(!good))
            good = run_strands<KIND>(s, job, memory, first, c, starts);
        uint32_t reason = any_lane(!good) ? WHARF_RANS_REFUSED : (uint32_t)WHARF_REASON_NONE;
        if (lane_id() < STRANDS && first + lane_id() < job.n_pieces)
            job.outcomes[first + lane_id()] = {reason, 8 * s.in.body_at};
        syncwarp(); /* the places may be others now */
    }
}

} // namespace rans
} // namespace wharf

#endif
