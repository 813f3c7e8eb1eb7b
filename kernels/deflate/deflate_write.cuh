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
    int32_t value; /* the distance; or negative, and a literal in the low eight bits */
};

/* The 32 * ROUNDS bytes of output that are made together: byte 32 * r + lane at [r]. */
template <unsigned ROUNDS>
struct span_bytes {
    uint32_t byte[ROUNDS];
    uint32_t source[ROUNDS]; /* of a byte that waits: its place, counted from the span's first */
    uint32_t waiting;        /* bit r: byte[r] waits */
};

/* collective.  The bytes that wait get theirs from the lanes that have them. */
template <unsigned ROUNDS>
WHARF_DEVICE void settle(span_bytes<ROUNDS> &span)
{
    WHARF_UNROLL
    for (unsigned r = 0; r < ROUNDS; r++) {
        bool waits = span.waiting >> r & 1;
        if (!any_lane(waits))
            continue;
        /* From earlier rounds of the span, which are settled. */
        WHARF_UNROLL
        for (unsigned k = 0; k < r; k++) {
            uint32_t byte = shfl(span.byte[k], span.source[r]);
            if (waits && span.source[r] >> 5 == k)
                span.byte[r] = byte;
        }
        /* From this round: the lowest waiting lane's source is settled, so each turn settles one
         * lane at least. */
        waits = waits && span.source[r] >> 5 == r;
        uint32_t left = ballot(waits);
        while (left) {
            uint32_t byte = shfl(span.byte[r], span.source[r]);
            if (waits && !(left >> (span.source[r] & 31) & 1)) {
                span.byte[r] = byte;
                waits = false;
            }
            left = ballot(waits);
        }
    }
}

/*
 * collective.  Writes bytes `begin` to `end` - 1 of a batch whose first byte is out[base]; token
 * number `first` begins at `begin`.  What is before the span must be there (syncwarp).
 */
template <unsigned ROUNDS>
WHARF_DEVICE void write_span(uint8_t *out, uint32_t base, const batch_token &token, uint32_t begin,
                             uint32_t end, uint32_t &first)
{
    span_bytes<ROUNDS> span;
    uint32_t upto = lanemask_lt() | 1u << lane_id();
    span.waiting = 0;
    WHARF_UNROLL
    for (unsigned r = 0; r < ROUNDS; r++) {
        uint32_t round = begin + 32 * r;
        if (round >= end)
            break;
        uint32_t from = token.begin - round;
        uint32_t begins = reduce_or(from < 32 && token.length ? 1u << (from & 31) : 0);
        int32_t value = (int32_t)shfl((uint32_t)token.value, first + popc(begins & upto) - 1);
        first += popc(begins);
        uint32_t place = 32 * r + lane_id();
        span.byte[r] = (uint32_t)value;
        span.source[r] = place - (uint32_t)value;
        if (value >= 0 && begin + place < end) {
            if ((int32_t)span.source[r] < 0)
                span.byte[r] = load(out + (base + begin + span.source[r]));
            else
                span.waiting |= 1u << r;
        }
    }
    if (any_lane(span.waiting != 0))
        settle(span);
    WHARF_UNROLL
    for (unsigned r = 0; r < ROUNDS; r++)
        if (begin + 32 * r + lane_id() < end)
            store(out + (base + begin + 32 * r + lane_id()), (uint8_t)span.byte[r]);
}

/* collective.  The same for a stretch of any length; leaves its bytes visible to all lanes. */
template <typename P>
WHARF_DEVICE void write_stretch(uint8_t *out, uint32_t base, const batch_token &token,
                                uint32_t begin, uint32_t end, uint32_t first)
{
    for (; begin < end; begin += 32 * P::ROUNDS) {
        write_span<P::ROUNDS>(out, base, token, begin, end, first);
        syncwarp();
    }
}

/* collective.  A batch with matches to be copied one by one: the lanes of `alone`. */
template <typename P>
WHARF_DEVICE void write_cut(uint8_t *out, uint32_t base, uint32_t total, const batch_token &token,
                            uint32_t alone)
{
    uint32_t matches = ballot(token.length && token.value >= 0);
    if (token.length && token.value < 0)
        store(out + (base + token.begin), (uint8_t)token.value);
    uint32_t first = 0, begin = 0;
    while (alone) {
        unsigned lane = first_lane(alone);
        alone &= alone - 1;
        uint32_t at = shfl(token.begin, lane);
        uint32_t length = shfl(token.length, lane);
        uint32_t distance = shfl((uint32_t)token.value, lane);
        uint32_t before = matches >> first & ((1u << (lane - first)) - 1);
        syncwarp(); /* the literals, and the last copy */
        if (before)
            write_stretch<P>(out, base, token, begin, at, first);
        copy_long(out, base + at, distance, length);
        first = lane + 1;
        begin = at + length;
    }
    syncwarp();
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
    uint32_t word = lane_id() < n ? load(&tokens[lane_id()]) : 0;
    batch_token token;
    token.length = token_length(word);
    token.value = (int32_t)word >> 9;
    uint32_t sum = inclusive_add(token.length);
    token.begin = sum - token.length;
    uint32_t total = shfl(sum, 31);
    bool match = token.length > 1;
    bool too_far = match && (uint32_t)token.value > out.position + token.begin;
    if (any_lane(too_far) || total > out.room())
        return false;
    bool by_itself =
        match && (token.length >= P::LONG_MATCH ||
                  ((uint32_t)token.value < token.length && token.length >= P::LONG_OVERLAP));
    uint32_t alone = ballot(by_itself);
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
