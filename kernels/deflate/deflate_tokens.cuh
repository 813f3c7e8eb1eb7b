/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_tokens.cuh: decodes pieces of a block's body, one to a lane, into tokens.
 *
 * Each lane decodes a given number of symbols from a hinted start.  The first start is known to be
 * true.
 *
 * Invariant: a further start counts only if the piece before it ends there.  The tokens are thus
 * exactly those of decoding one symbol after the other, whatever the hints.
 */
#ifndef WHARF_KERNELS_DEFLATE_TOKENS_CUH
#define WHARF_KERNELS_DEFLATE_TOKENS_CUH

#include "kernels/deflate/deflate_sync.cuh"

namespace wharf
{
namespace flate
{

/* One lane's piece. */
struct piece {
    uint32_t at;        /* skewed */
    uint32_t n_symbols; /* to decode; then: decoded */
    status ended;       /* more: all decoded; block_end; stop: the exact path must continue */
};

/* collective.  Piece number first_piece + lane of the list; without one, a piece of 0 symbols. */
template <typename P>
WHARF_DEVICE piece take_piece(const shared<P> &s, const sub_list &list, uint32_t first_piece)
{
    static_assert(P::MAX_SUBS < 32 && P::SUB_NSYMBOLS < 16);
    uint32_t number = first_piece + lane_id();
    uint32_t share = list.first | list.n << 5 | list.last_nsymbols << 10 | list.base << 16;
    /* The last lane whose base is at or before the number: an empty lane has the base of the next
     * lane that is not empty. */
    unsigned finder = 0;
    WHARF_UNROLL
    for (unsigned step = 16; step; step /= 2)
        if (shfl(share, finder + step) >> 16 <= number)
            finder += step;
    share = shfl(share, finder);
    if (number >= list.n_all)
        return {0, 0, status::more};
    uint32_t i = number - (share >> 16);
    uint32_t n_symbols = i + 1 == (share >> 5 & 31) ? share >> 10 & 15 : P::SUB_NSYMBOLS;
    uint32_t start = load(&s.starts[(share & 31) + i][finder]);
    return {list.begin + finder * list.range_nbits + start, n_symbols, status::more};
}

/* The last place where a piece may begin: the window also holds all bits that it looks at. */
template <typename P>
constexpr uint32_t LAST_PLACE =
    32 * shared<P>::WINDOW_NWORDS - 96 - P::SUB_NSYMBOLS *WHARF_DEFLATE_MAX_MATCH_NBITS;

/* The window's words from bit p on.  (opaque() keeps the address computation one instruction.) */
template <typename P>
WHARF_DEVICE const uint32_t *window_at(const shared<P> &s, uint32_t p)
{
    return &s.window[opaque(p >> 5)];
}

/* One lane.  Decodes the piece's symbols to tokens[0], [1], ...  The piece begins at bit p of the
 * window; the input ends at its bit `end`. */
template <typename P>
WHARF_DEVICE void decode_piece(const shared<P> &s, piece &piece, uint32_t p, uint32_t end,
                               uint32_t *tokens)
{
    uint32_t begin = p;
    uint32_t i = 0;
    status ended = status::more;
    do {
        const uint32_t *w = window_at(s, p);
        uint32_t mid = load(w + 1);
        uint32_t word = funnel_right(load(w), mid, p);
        uint32_t high = funnel_right(mid, load(w + 2), p);
        uint32_t entry = find_root(s.litlen, word);
        uint32_t rest = consume(word, high, entry);
        uint32_t d = find_root(s.distance, rest);
        d = litlen_is_match(entry) ? d : 0;
        if (litlen_is_special(entry) || d & DISTANCE_SPECIAL) {
            entry = find_litlen(s.litlen, word);
            rest = consume(word, high, entry);
            d = litlen_is_match(entry) ? find_distance(s.distance, rest) : 0;
            if (litlen_is_end(entry)) {
                ended = status::block_end;
                p += entry_nbits(entry);
                break;
            }
            if (litlen_is_special(entry) || d & DISTANCE_SPECIAL) {
                ended = status::stop;
                break;
            }
        }
        uint32_t copy = distance_value(rest, d) << 9 | litlen_length(word, entry);
        uint32_t literal = TOKEN_LITERAL | (entry & 0xff00) << 1;
        p += entry_nbits(entry) + entry_nbits(d);
        store(&tokens[opaque(i)], litlen_is_match(entry) ? copy : literal);
    } while (++i < piece.n_symbols);
    piece.at += p - begin;
    piece.n_symbols = i;
    piece.ended = ended;
    /* It used bits past the input's end: the exact path decodes this piece from its start. */
    if (p > end)
        piece = {piece.at - (p - begin), 0, status::stop};
}

/* The result of a group of pieces; the same in all lanes. */
struct group_result {
    uint32_t n_pieces;
    uint32_t n_tokens;
    uint32_t at;  /* where the next symbol (or block) begins */
    status ended; /* more: the next piece, if any, may begin at `at` */
};

/*
 * collective.  Decodes up to 32 pieces of the list, from number first_piece on, which must begin at
 * st.at.  Stores their tokens in order in `tokens`.
 */
template <typename P>
WHARF_DEVICE group_result decode_group(state<P> &st, const sub_list &list, uint32_t first_piece,
                                       uint32_t *tokens)
{
    shared<P> &s = st.s();
    move_window(st, st.at); /* synchronises: the last tokens' readers are done */
    piece mine = take_piece(s, list, first_piece);
    uint32_t start = mine.at;
    uint32_t place = exclusive_add(mine.n_symbols);
    uint32_t p = start - st.window;
    /* A missing piece ends the group, and so does one that lies outside the window. */
    bool here = mine.n_symbols && p <= LAST_PLACE<P>;
    if (here)
        decode_piece(s, mine, p, st.end() - st.window, tokens + place);
    else
        mine.n_symbols = 0;
    uint32_t next = shfl_down(start, 1);
    bool arrived = here && mine.ended == status::more && mine.at == next && lane_id() < 31;
    unsigned last = first_lane(~ballot(arrived) | 1u << 31);
    group_result r;
    r.n_pieces = uniform(shfl(here ? last + 1 : last, last));
    r.n_tokens = uniform(shfl(place + mine.n_symbols, last));
    r.at = uniform(shfl(mine.at, last));
    r.ended = (status)uniform(shfl((uint32_t)mine.ended, last));
    if (uniform(shfl(start, 0)) != st.at)
        r = {0, 0, st.at, status::more};
    syncwarp(); /* the tokens, before they are read */
    return r;
}

} // namespace flate
} // namespace wharf

#endif
