/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_block_find.cuh: decodes the symbols of a part of a Deflate block's body with all lanes of
 * all warps.
 *
 * Idea: the part is cut into ranges, one for each lane.  A lane decodes blindly from its cut until
 * it reaches or passes the end of its range.  It then passes its position to its right neighbour,
 * which decodes again from there unless it had started there.  This repeats until no lane has to
 * decode again.  Huffman codes synchronise themselves, so few passes are needed.
 *
 * Invariant: lane 0 starts at a true symbol.  Output counts up to the first lane that did not start
 * where the lane before it ended.  All counted symbols are therefore true, whatever the bits are.
 */
#ifndef WHARF_KERNELS_DEFLATE_BLOCK_FIND_CUH
#define WHARF_KERNELS_DEFLATE_BLOCK_FIND_CUH

#include "kernels/deflate/deflate_block_state.cuh"

namespace wharf
{
namespace flate
{

/* One lane's range.  Positions are in bits of the window. */
struct lane_range {
    uint32_t begin; /* where the lane started, or NOWHERE */
    uint32_t at;    /* its position */
    uint32_t n_tokens;
    uint32_t nbytes; /* of output */
    status ended;    /* more: at or behind the range's end, or no more room */
};

/*
 * One lane.  Decodes from r.begin on until `stop`; `end` is the input's end.  A blind lane
 * continues past an end-of-block symbol, since that may be a false one.  Then r.begin becomes
 * NOWHERE, so that nothing after it counts.
 */
template <typename P>
WHARF_DEVICE void decode_range(block_shared<P> &s, unsigned number, bool blind, uint32_t stop,
                               uint32_t end, lane_range &r)
{
    uint32_t p = r.begin;
    uint32_t next = number, nbytes = 0;
    bool over = false;
    r.ended = status::more;
    while (p < stop && next < P::MAX_TOKENS * P::LANES) {
        const uint32_t *w = &s.window[opaque(p >> 5)];
        uint32_t mid = load(w + 1);
        uint32_t word = funnel_right(load(w), mid, p);
        uint32_t high = funnel_right(mid, load(w + 2), p);
        uint32_t entry = find_root(s.one.litlen, word);
        uint32_t rest = consume(word, high, entry);
        uint32_t d = find_root(s.one.distance, rest);
        d = litlen_is_match(entry) ? d : 0;
        if (litlen_is_special(entry) || d & DISTANCE_SPECIAL) {
            entry = find_litlen(s.one.litlen, word);
            rest = consume(word, high, entry);
            d = litlen_is_match(entry) ? find_distance(s.one.distance, rest) : 0;
            if (litlen_is_end(entry)) {
                p += entry_nbits(entry);
                over = true;
                if (blind)
                    continue;
                r.ended = status::block_end;
                break;
            }
            if (litlen_is_special(entry) || d & DISTANCE_SPECIAL) {
                r.ended = status::stop;
                break;
            }
        }
        uint32_t length = litlen_length(word, entry);
        uint32_t literal = BYTE_KNOWN | (entry >> 8 & 0xff);
        p += entry_nbits(entry) + entry_nbits(d);
        nbytes += litlen_is_match(entry) ? length + WHARF_DEFLATE_MIN_MATCH : 1;
        uint32_t mark = litlen_is_match(entry) ? distance_value(rest, d) : literal;
        store(&s.marks[0][0] + next, (uint16_t)mark);
        store(&s.lengths[0][0] + next, (uint8_t)length);
        next += P::LANES;
    }
    r.begin = blind && over ? NOWHERE : r.begin;
    r.at = p;
    r.n_tokens = next / P::LANES;
    r.nbytes = nbytes;
    if (p > end) /* verified elsewhere */
        r.ended = status::stop;
}

/* The result of a part; the same in all lanes of all warps. */
struct part_result {
    uint32_t at; /* where the next symbol (or block) begins, in the window */
    uint32_t nbytes;
    uint32_t n_tokens;
    status ended;
};

/*
 * For all warps.  Finds how many ranges are true and where each one's output begins: `ret_begin`,
 * counted from the part's first byte.  Removes the tokens of ranges that are not true.
 */
template <typename P>
WHARF_DEVICE part_result agree(block_shared<P> &s, unsigned warp, bool arrived, bool passes,
                               lane_range &r, uint32_t &ret_begin)
{
    unsigned number = 32 * warp + lane_id();
    uint32_t apart = ballot(!arrived), end = ballot(!passes);
    if (lane_id() == 0) {
        store(&s.first_apart[warp], apart ? 32 * warp + first_lane(apart) : P::LANES);
        store(&s.first_end[warp], end ? 32 * warp + first_lane(end) : P::LANES);
    }
    syncblock();
    bool mine = lane_id() < P::WARPS;
    /* Lane 0 of the first warp always started at a true symbol. */
    uint32_t last = reduce_min(mine ? load(&s.first_apart[lane_id() % P::WARPS]) : P::LANES) - 1;
    uint32_t first_end = reduce_min(mine ? load(&s.first_end[lane_id() % P::WARPS]) : P::LANES);
    last = last < first_end ? last : first_end;
    if (number > last)
        r.n_tokens = r.nbytes = 0;
    uint32_t sum = inclusive_add(r.nbytes);
    uint32_t count = reduce_add(r.n_tokens);
    if (lane_id() == 31) {
        store(&s.sums[warp], sum);
        store(&s.counts[warp], count);
    }
    if (number == last) {
        store(&s.last_at, r.at);
        store(&s.last_ended, (uint32_t)r.ended);
    }
    syncblock();
    uint32_t before = mine ? load(&s.sums[lane_id() % P::WARPS]) : 0;
    count = mine ? load(&s.counts[lane_id() % P::WARPS]) : 0;
    ret_begin = reduce_add(lane_id() < warp ? before : 0) + sum - r.nbytes;
    return {uniform(load(&s.last_at)), reduce_add(before), reduce_add(count),
            (status)uniform(load(&s.last_ended))};
}

/*
 * For all warps.  Decodes the symbols from bit `at` of the window on, where a symbol begins; `end`
 * is the input's end.  Leaves each lane's tokens in its column.
 */
template <typename P>
WHARF_DEVICE part_result find_symbols(block_shared<P> &s, unsigned warp, uint32_t at,
                                      uint32_t range_nbits, uint32_t end, lane_range &r,
                                      uint32_t &ret_begin)
{
    unsigned number = 32 * warp + lane_id();
    uint32_t begin = at + number * range_nbits;
    uint32_t stop = begin + range_nbits;
    bool decode = begin < end;
    uint32_t before = begin;
    r = {begin, NOWHERE, 0, 0, status::stop};
    bool passes = false;
    for (unsigned pass = 0;; pass++) {
        if (decode) {
            r.begin = before;
            decode_range(s, number, pass == 0 && number != 0, stop, end, r);
            passes = r.ended == status::more && r.at >= stop;
        }
        store(&s.ends[number], passes ? r.at : NOWHERE);
        syncblock();
        before = number ? load(&s.ends[number - 1]) : begin;
        decode = before != NOWHERE && before != r.begin;
        bool again = syncblock_or(decode);
        if (!again || pass + 1 == P::MAX_PASSES)
            break;
    }
    return agree(s, warp, before == r.begin, passes, r, ret_begin);
}

} // namespace flate
} // namespace wharf

#endif
