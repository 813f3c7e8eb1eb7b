/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_sync.cuh: finds places in a block's body where symbols begin, so that 32 lanes can
 * decode from there.
 *
 * Lane k starts blindly at the k-th cut and walks over symbols, noting the start of every
 * SUB_NSYMBOLS-th.  Huffman codes synchronise themselves: a wrong walk joins the true one within
 * some hundred bits.  At the end of its range, each lane walks on into the next range until it
 * meets a start that the next lane noted; from there that lane's notes continue its own.  The chain
 * from lane 0, which starts at a true symbol, is then a list of true starts.
 *
 * NOTHING HERE DECIDES ANYTHING.  The list is a hint: deflate_tokens.cuh decodes each piece from
 * its start, and accepts the next start only if it arrives there.  Walks therefore need not
 * recognise the end of the block, the end of the input, or bad data.  They must only terminate, and
 * stay inside shared memory and the input.
 */
#ifndef WHARF_KERNELS_DEFLATE_SYNC_CUH
#define WHARF_KERNELS_DEFLATE_SYNC_CUH

#include "kernels/deflate/deflate_state.cuh"

namespace wharf
{
namespace flate
{

/* The position of a walk that met bits which are no symbol, or that has no room for more notes.  It
 * is behind all others. */
constexpr uint32_t NOWHERE = 3u << 30;

/* A piece of 64 bits that lies partly outside the input. */
WHARF_DEVICE_NOINLINE uint64_t load_edge(input_source source, uint32_t i)
{
    return (uint64_t)source.load_word(2 * i + 1) << 32 | source.load_word(2 * i);
}

/* One lane.  Bits 64 * i to 64 * i + 63, skewed, of the input; zeros outside. */
WHARF_DEVICE uint64_t load_piece(const input_source &source, uint32_t i)
{
    if (8 * i >= source.begin && 8 * i + 8 <= source.end)
        return load_nc(reinterpret_cast<const uint64_t *>(source.aligned) + i);
    return load_edge(source, i);
}

/* One lane's walk.  Positions are skewed. */
template <typename P>
struct walk {
    shared<P> &s;
    const input_source &source;
    uint32_t begin;
    uint32_t at;     /* where it stands, or NOWHERE */
    uint32_t n_subs; /* sub-ranges it has completed: starts 0 to n_subs are noted */
    uint32_t rest;   /* symbols since the last noted start, less than SUB_NSYMBOLS */
    /* The column holds pieces piece - 4 to piece - 1; the next is on its way. */
    uint32_t piece;
    uint64_t pending;

    WHARF_DEVICE_MEMBER void init(uint32_t from)
    {
        begin = at = from;
        n_subs = rest = 0;
        piece = from >> 6;
        uint64_t first = load_piece(source, piece), second = load_piece(source, piece + 1);
        uint64_t third = load_piece(source, piece + 2), fourth = load_piece(source, piece + 3);
        pending = load_piece(source, piece + 4);
        put(first);
        put(second);
        put(third);
        put(fourth);
        store(&s.starts[0][lane_id()], (uint16_t)0);
    }

    /* Walks on until it reaches or passes `target`. */
    WHARF_DEVICE_MEMBER void go(uint32_t target)
    {
        while (at < target) {
            /* Bits that a symbol's look-ups read: up to 20 of a length, and 64 from there. */
            uint32_t stop = 64 * piece - 84;
            stop = target < stop ? target : stop;
            uint32_t n = P::SUB_NSYMBOLS - rest;
            n = n < P::WALK_NSYMBOLS ? n : P::WALK_NSYMBOLS;
            rest += n;
            WHARF_NO_UNROLL
            do {
                at = behind_symbol();
                n--;
            } while (n && at < stop);
            rest -= n;
            if (rest == P::SUB_NSYMBOLS)
                note();
            if (at >= 64 * (piece - 3)) {
                put(pending);
                pending = load_piece(source, piece);
            }
        }
    }

  private:
    /* Stores piece number `piece` in the column. */
    WHARF_DEVICE_MEMBER void put(uint64_t v)
    {
        uint32_t *w = &s.columns.words[2 * (piece & 3)][lane_id()];
        store(w, (uint32_t)v);
        store(w + 32, (uint32_t)(v >> 32));
        if (!(piece & 3))
            store(w + 256, (uint32_t)v);
        piece++;
    }

    WHARF_DEVICE_MEMBER uint32_t peek_32(uint32_t p) const
    {
        const uint32_t *w = &s.columns.words[0][lane_id()] + (p & 0xe0);
        return funnel_right(load(w), load(w + 32), p);
    }

    /* The place behind the symbol at `at`.  Looks up a distance even after a literal: lanes mostly
     * differ, and then a branch costs more. */
    WHARF_DEVICE_MEMBER uint32_t behind_symbol() const
    {
        uint32_t word = peek_32(at);
        uint32_t entry = find_root(s.litlen, word);
        uint32_t d = find_root(s.distance, consume(word, 0, entry));
        d = litlen_is_match(entry) ? d : 0;
        uint32_t to = at + entry_nbits(entry) + entry_nbits(d);
        if (litlen_is_special(entry) || d & DISTANCE_SPECIAL)
            to = behind_rare(word);
        return to;
    }

    WHARF_DEVICE_MEMBER uint32_t behind_rare(uint32_t word) const
    {
        uint32_t entry = find_litlen(s.litlen, word);
        uint32_t to = at + entry_nbits(entry);
        if (litlen_is_match(entry)) {
            /* A length takes up to 20 bits, so a long distance code may reach out of `word`. */
            uint32_t d = find_distance(s.distance, peek_32(to));
            return d & DISTANCE_SPECIAL ? NOWHERE : to + entry_nbits(d);
        }
        return (entry & ~31u) == LITLEN_INVALID ? NOWHERE : to;
    }

    /* Notes a start, at the end of a sub-range. */
    WHARF_DEVICE_MEMBER void note()
    {
        rest = 0;
        n_subs++;
        if (n_subs < P::MAX_SUBS)
            store(&s.starts[n_subs][lane_id()], (uint16_t)(at - begin));
        else
            at = NOWHERE;
    }
};

/* The list of sub-ranges.  Lane k, which started at begin + k * range_nbits, holds those that begin
 * at its notes `first` to first + n - 1.  In the list they are numbers `base` to base + n - 1. */
struct sub_list {
    uint32_t begin;
    uint32_t range_nbits;
    uint32_t n_all;
    /* These differ between lanes. */
    uint32_t base;
    uint32_t first;
    uint32_t n;
    uint32_t last_nsymbols; /* symbols of its last sub-range */
};

/* collective.  Finds the list for 32 ranges from st.at on.  A symbol of the block must begin at
 * st.at, before the input's end. */
template <typename P>
WHARF_DEVICE sub_list find_sync_points(const state<P> &st, uint32_t range_nbits)
{
    unsigned lane = lane_id();
    uint32_t begin = st.at + lane * range_nbits;
    uint32_t end = begin + range_nbits;
    end = end < st.end() ? end : st.end();
    syncwarp(); /* the readers of the window and of the last list are done */
    walk<P> w = {st.s(), st.source, 0, 0, 0, 0, 0, 0};
    w.init(begin);
    /*
     * First walk to the range's end, then into the next range until a start that its lane noted,
     * number i of n_noted.  One loop serves both: with two copies of the walk the code does not fit
     * the instruction cache.
     */
    unsigned next = (lane + 1) & 31;
    uint32_t i = 0, n_noted = 1;
    WHARF_NO_UNROLL
    for (unsigned turn = 0; turn < 2; turn++) {
        bool met = false;
        while (i < n_noted && !met) {
            uint32_t target = turn == 0 ? end : begin + range_nbits + load(&w.s.starts[i][next]);
            w.go(target);
            met = turn == 1 && w.at == target;
            i += met ? 0 : w.at == NOWHERE ? n_noted : 1;
        }
        syncwarp(); /* the notes, before the neighbours look at them */
        if (turn == 0) {
            /* No lane meets one that started behind the input's end, and lane 31 has no right
             * neighbour. */
            uint32_t n_notes = w.n_subs < P::MAX_SUBS ? w.n_subs + 1 : w.n_subs;
            n_noted = shfl_down(begin < end ? n_notes : 0, 1);
            n_noted = lane < 31 ? n_noted : 0;
            i = 0;
        }
    }

    uint32_t chain_end = first_lane(~ballot(i < n_noted) | 1u << 31);
    sub_list list = {st.at, range_nbits, 0, 0, shfl_up(i, 1), 0, 0};
    list.first = lane ? list.first : 0;
    uint32_t n_subs = w.n_subs + (w.rest != 0);
    list.n = lane <= chain_end && n_subs > list.first ? n_subs - list.first : 0;
    list.last_nsymbols = w.rest ? w.rest : P::SUB_NSYMBOLS;
    uint32_t sum = inclusive_add(list.n);
    list.base = sum - list.n;
    list.n_all = uniform(shfl(sum, 31));
    return list;
}

} // namespace flate
} // namespace wharf

#endif
