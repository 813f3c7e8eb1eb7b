/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_strand_starts.cuh: the data of strands (rans_strands.cuh), and how they begin.
 *
 * A strand begins with the window of its split and runs up to the first group after it.  The loads
 * of the window's fields and words are issued before the block builds its tables.
 */
#ifndef WHARF_KERNELS_RANS_RANS_STRAND_STARTS_CUH
#define WHARF_KERNELS_RANS_RANS_STRAND_STARTS_CUH

#include "kernels/rans/rans_pieces.cuh"
#include "kernels/rans/rans_symbols.cuh"
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

/* Of a block whose model has its tables in an image: what warps look up by in it. */
template <unsigned WARPS, unsigned STRANDS>
struct image_tables {
    index_buffers<STRANDS> indexes[WARPS];
};

/* Of a block. */
template <typename Tables, unsigned WARPS, unsigned STRANDS>
struct strands_memory {
    static constexpr unsigned N_WARPS = WARPS, N_STRANDS = STRANDS;
    Tables tables;
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
    window next[STRANDS];    /* being passed, or the next one; its start and state are elsewhere */
};

/* What all strands of a warp share. */
template <unsigned STRANDS>
struct strand_setting {
    stream in;
    model m;
    word_source words;
    uint8_t *out;
    uint32_t n_whole;                /* groups of 32 symbols */
    index_buffers<STRANDS> *indexes; /* where tables are in an image */
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

/* collective.  The window that these words are of; for the stream's beginning one without
 * groups. */
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
WHARF_DEVICE void next_strand_window(const stream &in, const wharf_rans_stream_job &job,
                                     strand_memory<STRANDS> &memory, strands<STRANDS> &c,
                                     unsigned k)
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
WHARF_DEVICE void fetch_starts(const strand_setting<STRANDS> &s,
                               const strand_memory<STRANDS> &memory, strand_starts<STRANDS> &starts)
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
WHARF_DEVICE bool begin_strands(const strand_setting<STRANDS> &s, strand_memory<STRANDS> &memory,
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

/* One lane.  What the slot of a state stands for that comes to this lane's symbol of a group, which
 * may be the one behind the stream's last: bytes of its body stand behind its indexes. */
template <lookup KIND, unsigned STRANDS>
WHARF_DEVICE found find_at(const strand_setting<STRANDS> &s, uint32_t group, uint32_t state)
{
    return find<KIND>(s.m, s.in, WARP_LANES * group + lane_id(), slot_of(s.m, state));
}

/* What their loops are given. */
template <unsigned STRANDS>
WHARF_DEVICE loop_setting<STRANDS> loop_of(const strand_setting<STRANDS> &s,
                                           strand_memory<STRANDS> &memory)
{
    return {s.in, s.m, s.words, memory.buffers, s.out};
}

/* collective.  All strands through the windows that they begin with; whether all was good in this
 * lane.  Meanwhile the next windows are on their way. */
template <lookup KIND, unsigned STRANDS>
WHARF_DEVICE bool join_strands(const strand_setting<STRANDS> &s, strand_memory<STRANDS> &memory,
                               strands<STRANDS> &c, const strand_starts<STRANDS> &starts)
{
    uint32_t n = 0, next[STRANDS];
    window_words words[STRANDS];
    joined_windows<STRANDS> joined;
    loop_chains<STRANDS> in_loop = take_chains<STRANDS>(c);
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++) {
        uint32_t more = c.group[k] - starts.join[k].first_group, from = starts.from[k];
        n = more > n ? more : n;
        next[k] = from < c.last[k] ? from + 1 : from;
        words[k] = load_window(s.in, next[k], memory.places[k][AT_NEXT]);
    }
    n = uniform(n);
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++) {
        const window &w = starts.join[k];
        joined.start[k] = starts.from[k] > 0 ? w.start - c.group[k] + n : NO_WINDOW;
        joined.state[k] = w.state;
    }
    uint32_t nobodys = go_joining<KIND>(loop_of(s, memory), in_loop, c.group, joined, n);
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++)
        in_loop.state[k] = starts.from[k] > 0 ? in_loop.state[k] : c.state[k];
    put_chains(c, in_loop, 0);
    WHARF_UNROLL
    for (unsigned k = 0; k < STRANDS; k++) {
        window w = window_of(s.in, next[k], memory.places[k][AT_NEXT], words[k]);
        put_window(memory, c, k, next[k] > starts.from[k] ? w : no_window(s.in));
    }
    return nobodys >> 31 == 0;
}

} // namespace rans
} // namespace wharf

#endif
