/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_write.cuh: turns tokens into output, 32 at a time.
 *
 * A batch of 32 tokens is text's usual 100 to 200 bytes.  Its bytes are spread over the lanes,
 * one byte a lane and 32 a round, whatever token they belong to: for each round the lanes whose
 * tokens begin in it make a mask of beginnings, and the number of beginnings up to a byte says
 * whose byte it is.  Loads of several rounds are on their way together.  A byte whose source is
 * itself of these rounds waits until they are done and then takes it from the lane that has it.
 *
 * Long matches, and those that repeat themselves, are copied one by one by the whole warp with
 * wide stores; the batch is cut at them.
 */
#ifndef WHARF_KERNELS_DEFLATE_WRITE_CUH
#define WHARF_KERNELS_DEFLATE_WRITE_CUH

#include "kernels/deflate/deflate_copy.cuh"
#include "kernels/deflate/deflate_state.cuh"

namespace wharf
{
namespace flate
{

/* One lane's token of a batch. */
struct batch_token {
    uint32_t begin; /* its first byte, counted from the batch's first */
    uint32_t length;
    int32_t value; /* the distance - 1; or negative, and a literal in the low eight bits */
};

/* The 32 * ROUNDS bytes of output that are made together: byte 32 * r + lane at [r]. */
template <unsigned ROUNDS>
struct span_bytes {
    uint32_t byte[ROUNDS]; /* of a byte that waits: its token's value, distance - 1 */
    uint32_t waiting;      /* bit r: byte[r] waits */
};

/* collective.  The bytes of round R that wait get theirs from the lanes that have them. */
template <unsigned R, unsigned ROUNDS>
WHARF_DEVICE void settle_round(span_bytes<ROUNDS> &span)
{
    bool waits = span.waiting & 1u << R;
    /* Counted from the span's first byte. */
    uint32_t source = 32 * R + lane_id() - 1 - span.byte[R];
    /* From earlier rounds of the span, which are settled. */
    WHARF_UNROLL
    for (unsigned k = 0; k < R; k++) {
        uint32_t byte = shfl(span.byte[k], source);
        span.byte[R] = waits && source >> 5 == k ? byte : span.byte[R];
    }
    /* From this round: the lowest waiting lane's source is settled, so each turn settles one lane
     * at least. */
    uint32_t left = ballot(waits && source >> 5 == R);
    uint32_t mine = left & 1u << lane_id();
    while (left) {
        uint32_t byte = shfl(span.byte[R], source);
        bool settled = mine && !(left >> (source & 31) & 1);
        span.byte[R] = settled ? byte : span.byte[R];
        mine = settled ? 0 : mine;
        left = ballot(mine != 0);
    }
}

/* collective.  Of all rounds; bit r of `rounds`, the same in all lanes: some byte of round r
 * waits. */
template <unsigned ROUNDS>
WHARF_DEVICE void settle(span_bytes<ROUNDS> &span, uint32_t rounds)
{
    static_assert(ROUNDS <= 8);
    if (rounds & 1)
        settle_round<0>(span);
    if constexpr (ROUNDS > 1)
        if (rounds & 2)
            settle_round<1>(span);
    if constexpr (ROUNDS > 2)
        if (rounds & 4)
            settle_round<2>(span);
    if constexpr (ROUNDS > 3)
        if (rounds & 8)
            settle_round<3>(span);
    if constexpr (ROUNDS > 4)
        if (rounds & 16)
            settle_round<4>(span);
    if constexpr (ROUNDS > 5)
        if (rounds & 32)
            settle_round<5>(span);
    if constexpr (ROUNDS > 6)
        if (rounds & 64)
            settle_round<6>(span);
    if constexpr (ROUNDS > 7)
        if (rounds & 128)
            settle_round<7>(span);
}

/*
 * collective.  Writes n bytes, up to 32 * ROUNDS, from byte `begin` of a batch on whose first byte
 * is out[base]; token number `first` begins there.  What is before must be there (syncwarp).
 */
template <unsigned ROUNDS>
WHARF_DEVICE void write_span(uint8_t *out, uint32_t base, const batch_token &token, uint32_t begin,
                             uint32_t n, uint32_t &first)
{
    span_bytes<ROUNDS> span;
    uint32_t lane = lane_id();
    uint32_t upto = lanemask_lt() | 1u << lane;
    /* The round in which the token begins, if it is one of these, and its bit in that. */
    uint32_t round = token.length ? (token.begin - begin) >> 5 : ROUNDS;
    uint32_t bit = 1u << ((token.begin - begin) & 31);
    uint32_t span_begin = base + begin;
    uint32_t here = span_begin + lane;
    span.waiting = 0;
    WHARF_UNROLL
    for (unsigned r = 0; r < ROUNDS; r++) {
        uint32_t begins = reduce_or(round == r ? bit : 0);
        uint32_t value = shfl((uint32_t)token.value, first + popc(begins & upto) - 1);
        first += popc(begins);
        /* Of lanes behind the end too: their bytes are not stored, and their sources are where
         * that of the last byte is, or just behind.  A literal's is far ahead. */
        uint32_t source = here + (32 * r - 1) - value;
        bool near = source >= span_begin;
        if (near && (int32_t)value >= 0)
            span.waiting |= 1u << r;
        /* Lanes that need no byte load the first one, which costs less than leaving them out. */
        uint32_t byte = load(out + (near ? 0 : source));
        span.byte[r] = near ? value : byte;
    }
    uint32_t rounds = reduce_or(span.waiting);
    if (rounds)
        settle(span, rounds);
    uint8_t *to = out + here;
    WHARF_UNROLL
    for (unsigned r = 0; r < ROUNDS; r++)
        if (32 * r + lane < n)
            store(to + 32 * r, (uint8_t)span.byte[r]);
}

/* collective.  The same for a stretch of any length; leaves its bytes visible to all lanes. */
template <typename P>
WHARF_DEVICE void write_stretch(uint8_t *out, uint32_t base, const batch_token &token,
                                uint32_t begin, uint32_t end, uint32_t first)
{
    while (begin < end) {
        uint32_t n = end - begin;
        if (n <= 32) {
            write_span<1>(out, base, token, begin, n, first);
            begin += 32;
        } else if (n <= 96) {
            write_span<3>(out, base, token, begin, n, first);
            begin += 96;
        } else {
            write_span<P::ROUNDS>(out, base, token, begin, n, first);
            begin += 32 * P::ROUNDS;
        }
        syncwarp();
    }
}

/*
 * collective.  Writes a batch of which the lanes of `alone` hold matches that are copied one by
 * one.  What stands between two of them is a stretch, but literals are written before all else.
 */
template <typename P>
WHARF_DEVICE void write_cut(uint8_t *out, uint32_t base, uint32_t total, const batch_token &token,
                            uint32_t alone)
{
    uint32_t matches = ballot(token.length > 1);
    /* 258 * 32 bytes are less than 2^14. */
    uint32_t range = token.begin | token.length << 14;
    uint32_t first = 0, begin = 0;
    last_bytes tail;
    tail.init(base);
    if (token.length == 1)
        store(out + (base + token.begin), (uint8_t)token.value);
    syncwarp();
    do {
        unsigned lane = first_lane(alone);
        /* So the compiler knows that they are the same in all lanes. */
        uint32_t r = reduce_or(lane_id() == lane ? range : 0);
        uint32_t distance = reduce_or(lane_id() == lane ? (uint32_t)token.value : 0) + 1;
        uint32_t at = r & 0x3fff;
        if (matches & ((1u << lane) - (1u << first))) {
            write_stretch<P>(out, base, token, begin, at, first);
            tail.init(base + at);
        } else {
            tail.append_literals(out, (uint32_t)token.value, first, lane);
        }
        copy_long(out, base + at, distance, r >> 14, tail);
        syncwarp();
        alone &= alone - 1;
        first = lane + 1;
        begin = at + (r >> 14);
    } while (alone);
    if (first < 32 && matches >> first)
        write_stretch<P>(out, base, token, begin, total, first);
}

/*
 * collective.  Writes n tokens, up to 32.  False, and nothing is written: one of them reaches
 * before the stream's first byte, or does not fit.  Synchronises at its end.
 */
template <typename P>
WHARF_DEVICE bool write_batch(output_stream &out, const uint32_t *tokens, uint32_t n)
{
    bool mine = lane_id() < n;
    uint32_t word = mine ? load(&tokens[lane_id()]) : 0;
    batch_token token;
    token.length = mine ? token_length(word) : 0;
    token.value = (int32_t)word >> 9;
    uint32_t sum = inclusive_add(token.length);
    token.begin = sum - token.length;
    uint32_t total = uniform(shfl(sum, 31));
    bool match = token.length > 1;
    uint32_t distance = (uint32_t)token.value + 1;
    if (any_lane(match & (distance > out.position + token.begin)) || total > out.room())
        return false;
    bool overlaps = (distance < token.length) & (token.length >= P::LONG_OVERLAP);
    uint32_t alone = ballot(match & (overlaps | (token.length >= P::LONG_MATCH)));
    if (alone)
        write_cut<P>(out.out, out.position, total, token, alone);
    else
        write_stretch<P>(out.out, out.position, token, 0, total, 0);
    out.position += total;
    return true;
}

} // namespace flate
} // namespace wharf

#endif
