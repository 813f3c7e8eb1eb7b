/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_scout.cuh: finds places in a block's body where symbols begin, so that 32 lanes can
 * decode from there.
 *
 * Lane k starts blind at the k-th cut and walks over symbols, noting where every SUB_NSYMBOLS-th
 * begins.  A wrong walk falls into step with the true one within some hundred bits, as Huffman
 * streams do.  At its range's end each lane goes on into the next range until it comes to a place
 * that this range's lane has noted: from there on that lane's notes continue its own.  The chain
 * from lane 0, which starts at a true symbol, is then a list of true starts.
 *
 * NOTHING HERE DECIDES ANYTHING.  The list is a hint: deflate_tokens.cuh decodes each piece from
 * its start and believes the next start only if it arrives there.  So walks need not recognise
 * the end of the block or of the input, nor bad data; they only have to end and to stay inside
 * the window.
 */
#ifndef WHARF_KERNELS_DEFLATE_SCOUT_CUH
#define WHARF_KERNELS_DEFLATE_SCOUT_CUH

#include "kernels/deflate/deflate_state.cuh"

namespace wharf
{
namespace flate
{

/* The window's words from bit p on.  (Opaque, the index becomes an address in one instruction.) */
template <typename P>
WHARF_DEVICE const uint32_t *window_at(const shared<P> &s, uint32_t p)
{
    return &s.window.words[opaque(p >> 5)];
}

/* One lane.  32 bits from position p on, counted from the window's first bit. */
template <typename P>
WHARF_DEVICE uint32_t window_32(const shared<P> &s, uint32_t p)
{
    const uint32_t *w = window_at(s, p);
    return funnel_right(load(w), load(w + 1), p);
}

/* Where a walk stands that has met bits which are no symbol, or has no room for more notes. */
constexpr uint32_t NOWHERE = 1u << 30;

/* For a symbol that skip_symbol() does not know at once. */
template <typename P>
WHARF_DEVICE uint32_t skip_rare(const shared<P> &s, uint32_t p, uint32_t word)
{
    uint32_t entry = find_litlen(s.litlen, word);
    uint32_t to = p + entry_nbits(entry);
    if (litlen_is_match(entry)) {
        /* A length takes up to 20 bits, so a long distance code may reach out of `word`. */
        uint32_t d = find_distance(s.distance, window_32(s, to));
        return d & DISTANCE_SPECIAL ? NOWHERE : to + entry_nbits(d);
    }
    return (entry & ~31u) == LITLEN_INVALID ? NOWHERE : to;
}

/* One lane.  The place behind the symbol at p.  A literal looks for a distance too: lanes mostly
 * differ, and then a branch costs more. */
template <typename P>
WHARF_DEVICE uint32_t skip_symbol(const shared<P> &s, uint32_t p)
{
    uint32_t word = window_32(s, p);
    uint32_t entry = find_root(s.litlen, word);
    uint32_t d = find_root(s.distance, consume(word, 0, entry));
    d = litlen_is_match(entry) ? d : 0;
    uint32_t to = p + entry_nbits(entry) + entry_nbits(d);
    if (litlen_is_special(entry) || d & DISTANCE_SPECIAL)
        to = skip_rare(s, p, word);
    return to;
}

/* What a lane has found. */
struct walk {
    uint32_t at;     /* where it stands, counted from the window's first bit, or NOWHERE */
    uint32_t n_subs; /* sub-ranges it has completed: starts 0 to n_subs are noted */
    uint32_t rest;   /* symbols since the last noted start, less than SUB_NSYMBOLS */
};

/* One lane.  At a sub-range's end: notes the place. */
template <typename P>
WHARF_DEVICE void note(shared<P> &s, walk &w)
{
    w.rest = 0;
    w.n_subs++;
    if (w.n_subs < P::MAX_SUBS)
        store(&s.starts[w.n_subs][lane_id()], (uint16_t)w.at);
    else
        w.at = NOWHERE;
}

/* One lane.  From a cut to the range's end. */
template <typename P>
WHARF_DEVICE walk walk_range(shared<P> &s, uint32_t begin, uint32_t end)
{
    walk w = {begin, 0, 0};
    store(&s.starts[0][lane_id()], (uint16_t)begin);
    while (w.at < end) {
        do {
            w.at = skip_symbol(s, w.at);
            w.rest++;
        } while (w.rest < P::SUB_NSYMBOLS && w.at < end);
        if (w.rest == P::SUB_NSYMBOLS)
            note(s, w);
    }
    return w;
}

/* One lane.  On into the next range until a place that its lane noted, of which there are
 * n_noted.  The number of that place, or n_noted. */
template <typename P>
WHARF_DEVICE uint32_t walk_to_meeting(shared<P> &s, walk &w, uint32_t n_noted)
{
    unsigned next = (lane_id() + 1) & 31;
    for (uint32_t i = 0; i < n_noted; i++) {
        uint32_t place = load(&s.starts[i][next]);
        while (w.at < place) {
            w.at = skip_symbol(s, w.at);
            if (++w.rest == P::SUB_NSYMBOLS)
                note(s, w);
        }
        if (w.at == place)
            return i;
        if (w.at == NOWHERE)
            break;
    }
    return n_noted;
}

/* The list of sub-ranges: lane k holds those that begin at its notes `first` to
 * first + n - 1, which are numbers `base` to base + n - 1 of all. */
struct sub_list {
    uint32_t base;
    uint32_t first;
    uint32_t n;
    uint32_t last_nsymbols; /* symbols of this lane's last sub-range */
    uint32_t n_all;         /* the same in all lanes */
};

/*
 * collective.  Finds the list for 32 ranges of range_nbits from place `at` on (counted from the
 * window's first bit, where a symbol of the block begins) but not behind `limit`.
 */
template <typename P>
WHARF_DEVICE sub_list scout(shared<P> &s, uint32_t at, uint32_t range_nbits, uint32_t limit)
{
    unsigned lane = lane_id();
    uint32_t begin = at + lane * range_nbits;
    uint32_t end = begin + range_nbits;
    syncwarp(); /* the last list's readers are done */
    walk w = walk_range(s, begin, end < limit ? end : limit);
    syncwarp(); /* the notes, before the neighbours look at them */
    /* A lane that has no right neighbour meets nobody. */
    uint32_t n_noted =
        shfl_down(begin < limit ? (w.n_subs < P::MAX_SUBS ? w.n_subs + 1 : w.n_subs) : 0, 1);
    if (lane == 31)
        n_noted = 0;
    uint32_t i = walk_to_meeting(s, w, n_noted);
    bool met = i < n_noted;
    syncwarp(); /* the further notes */

    uint32_t chain_end = first_lane(~ballot(met) | 1u << 31);
    sub_list list;
    list.first = shfl_up(i, 1);
    if (lane == 0)
        list.first = 0;
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
