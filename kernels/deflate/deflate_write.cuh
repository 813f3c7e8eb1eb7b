/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_write.cuh: turns tokens into output, 32 at a time.
 *
 * Idea: the output bytes of a batch, 100 to 200 for text, are spread over the lanes, one byte a
 * lane and 32 bytes a round, regardless of the tokens that they belong to.  For each round, a
 * ballot of the lanes whose tokens begin in it gives a mask of starts; the number of starts up to a
 * byte identifies its token.  The loads of several rounds are in flight together.  If a byte's
 * source lies within these same rounds, the byte waits until they are done, and then comes from the
 * lane that holds it.
 *
 * The whole warp copies long matches, and matches that overlap themselves, one by one with wide
 * stores.  The batch is cut at these matches.
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

/* A lane's part of the 32 * ROUNDS bytes that are made together: byte 32 * r + lane at [r]. */
template <unsigned ROUNDS>
struct span_bytes {
    uint32_t byte[ROUNDS]; /* of a byte that waits: its token's value, distance - 1 */
    uint32_t waiting;      /* bit r: byte[r] waits */
};

/* collective.  Fetches the waiting bytes of round r from the lanes that hold them.  All earlier
 * rounds must be settled. */
template <unsigned ROUNDS>
WHARF_DEVICE void settle_round(span_bytes<ROUNDS> &span, unsigned r)
{
    bool waits = span.waiting & 1u << r;
    /* Counted from the span's first byte. */
    uint32_t source = 32 * r + lane_id() - 1 - span.byte[r];
    WHARF_UNROLL
    for (unsigned k = 0; k < r; k++) {
        uint32_t byte = shfl(span.byte[k], source);
        span.byte[r] = waits && source >> 5 == k ? byte : span.byte[r];
    }
    /* From this round: the lowest waiting lane's source is settled, so each turn settles one lane
     * at least. */
    uint32_t left = ballot(waits && source >> 5 == r);
    uint32_t mine = left & 1u << lane_id();
    while (left) {
        uint32_t byte = shfl(span.byte[r], source);
        bool settled = mine && !(left >> (source & 31) & 1);
        span.byte[r] = settled ? byte : span.byte[r];
        mine = settled ? 0 : mine;
        left = ballot(mine != 0);
    }
}

/* Where a span's bytes are and go: one behind the other.  inflate_wide.cuh has the counterpart for
 * bytes of an unknown window. */
struct plain_output {
    uint8_t *out;

    /* One lane.  Byte `at`, which others may be storing if it is not wanted.  Sources that the
     * second-level cache no longer has must not push out what was written since. */
    WHARF_DEVICE_MEMBER uint32_t take(uint32_t at, bool wanted) const
    {
        return load_part_once(out + at, 0, wanted);
    }

    /* Places from a first one on. */
    struct places {
        uint8_t *to;
        WHARF_DEVICE_MEMBER void put(uint32_t i, uint32_t v) const { store(to + i, (uint8_t)v); }
    };
    WHARF_DEVICE_MEMBER places from(uint32_t begin, uint32_t lane) const
    {
        return {out + begin + lane};
    }
};

/*
 * collective.  Makes one round of a span: 32 bytes from byte `place` of the output on.  `begins`
 * has a bit for each byte that begins a token; the first of these tokens is number `first`.
 */
template <unsigned ROUNDS, typename Output>
WHARF_DEVICE void make_round(span_bytes<ROUNDS> &span, unsigned r, Output out,
                             const batch_token &token, uint32_t span_begin, uint32_t begins,
                             uint32_t &first)
{
    uint32_t upto = lanemask_lt() | 1u << lane_id();
    uint32_t value = shfl((uint32_t)token.value, first + popc(begins & upto) - 1);
    first += popc(begins);
    /* Of lanes behind the end too: their bytes are not stored, and their sources are where that of
     * the last byte is, or just behind.  A literal's is far ahead. */
    uint32_t source = span_begin + lane_id() + (32 * r - 1) - value;
    bool near = source >= span_begin;
    if (near && (int32_t)value >= 0)
        span.waiting |= 1u << r;
    /* Lanes that need no byte load the first one: cheaper than a predicate on the load. */
    uint32_t byte = out.take(near ? 0 : source, !near);
    span.byte[r] = near ? value : byte;
}

/*
 * collective.  Writes n bytes, up to 32 * ROUNDS, from byte `begin` of a batch on, whose first byte
 * is out[base].  Token number `first` begins there.  All output before must be visible (syncwarp).
 */
template <unsigned ROUNDS, typename Output>
WHARF_DEVICE void write_span(Output out, uint32_t base, const batch_token &token, uint32_t begin,
                             uint32_t n, uint32_t &first)
{
    static_assert(ROUNDS >= 2);
    span_bytes<ROUNDS> span = {};
    uint32_t lane = lane_id();
    uint32_t span_begin = base + begin;
    /* Where in the span the token begins; far ahead if not there. */
    uint32_t place = token.length ? token.begin - begin : 1u << 31;
    auto make = [&](unsigned r) {
        make_round(span, r, out, token, span_begin, reduce_or(bit_or_none(place - 32 * r)), first);
    };
    /* No branch between two rounds: the compiler waits for all loads where branches rejoin. */
    if (n <= 32) {
        make(0);
    } else if (n <= 64) {
        WHARF_UNROLL
        for (unsigned r = 0; r < 2; r++)
            make(r);
    } else {
        WHARF_UNROLL
        for (unsigned r = 0; r < ROUNDS; r++)
            make(r);
    }
    uint32_t waiting = reduce_or(span.waiting);
    if (waiting) {
        WHARF_UNROLL
        for (unsigned r = 0; r < ROUNDS; r++)
            if (waiting & 1u << r)
                settle_round(span, r);
    }
    auto to = out.from(span_begin, lane);
    if (n >= 32 * ROUNDS) {
        WHARF_UNROLL
        for (unsigned r = 0; r < ROUNDS; r++)
            to.put(32 * r, span.byte[r]);
    } else {
        WHARF_UNROLL
        for (unsigned r = 0; r < ROUNDS; r++)
            if (32 * r + lane < n)
                to.put(32 * r, span.byte[r]);
    }
}

/*
 * collective.  Writes a batch.  The lanes of `alone` hold matches that are copied one by one.  The
 * bytes of a stretch between two of them are spread over the lanes.  If there are such matches, all
 * literals are written first.  (One loop serves batches with and without them: with two copies the
 * code does not fit the instruction cache.)
 */
template <typename P>
WHARF_DEVICE void write_parts(uint8_t *out, uint32_t base, uint32_t total, const batch_token &token,
                              uint32_t alone)
{
    /* A stretch, up to lane `lane`'s match of `length` bytes or the batch's end; and whether it has
     * bytes that are not written yet. */
    uint32_t first = 0, begin = 0, end = total, length = 0;
    unsigned lane = 0;
    bool is_spread = true;
    uint32_t matches = 0;
    last_bytes tail;
    tail.init(base);
    auto next_stretch = [&]() {
        lane = alone ? first_lane(alone) : 32;
        /* 258 * 32 bytes are less than 2^14. */
        uint32_t range = token.begin | token.length << 14;
        range = alone ? reduce_or(lane_id() == lane ? range : 0) : total;
        uint32_t before = alone ? (1u << lane) - 1 : 0xffffffffu;
        end = range & 0x3fff;
        length = range >> 14;
        is_spread = (matches & before & ~((1u << first) - 1)) != 0;
    };
    if (alone) {
        matches = ballot(token.length > 1);
        if (token.length == 1)
            store(out + (base + token.begin), (uint8_t)token.value);
        syncwarp();
        next_stretch();
    }
    for (;;) {
        if (is_spread) {
            uint32_t n = first;
            do {
                write_span<P::ROUNDS>(plain_output{out}, base, token, begin, end - begin, n);
                syncwarp();
                begin += 32 * P::ROUNDS;
            } while (begin < end);
            if (!alone)
                break;
            tail.init(base + end);
        } else {
            if (!alone)
                break;
            tail.append_literals(out, (uint32_t)token.value, first, lane, base + end);
        }
        uint32_t distance = reduce_or(lane_id() == lane ? (uint32_t)token.value : 0) + 1;
        copy_long(out, base + end, distance, length, tail);
        syncwarp();
        alone &= alone - 1;
        first = lane + 1;
        begin = end + length;
        if (first == 32)
            break;
        next_stretch();
    }
}

/*
 * collective.  Writes tokens that are all literals or matches at distance 8, `total` bytes, 8 or
 * more, at out[at].  Columns of 8-byte values consist mostly of these.  A word of output is the
 * state (match_copy.cuh) after the last token that begins in the word or before it.  A scan gives
 * the state after each token; a search finds each word's token.
 */
template <typename P>
WHARF_DEVICE_NOINLINE void write_cycle(shared_ref<shared<P>> ref, uint8_t *out, uint32_t at,
                                       batch_token token, uint32_t total)
{
    last_cycle &last = ref.get().cycle;
    uint8_t *to = out + at;
    uint32_t skew = reinterpret_cast<uintptr_t>(to) & 7;
    uint64_t *words = reinterpret_cast<uint64_t *>(to - skew);
    uint32_t place = skew + token.begin;
    bool literal = token.length == 1;
    cycle_state own;
    own.mask = literal ? (uint64_t)0xff << 8 * (place & 7) : 0;
    own.bytes = literal ? (uint64_t)(token.value & 0xff) << 8 * (place & 7) : 0;
    own = scan_cycle(own);
    /* Loading bytes that were just stored is slow. */
    uint64_t before;
    if (uniform(load(&last.position)) == at) {
        before = load(&last.bytes);
    } else {
        before = load_cycle(to);
        syncwarp(); /* all have loaded the bytes before `to`, which the first word has again */
    }
    uint64_t state = own.bytes | (before & ~own.mask);
    uint32_t begins = token.length ? place >> 3 : 0xffffffffu;
    uint32_t end = skew + total;
    WHARF_NO_UNROLL
    for (uint32_t first = 0; first < end / 8; first += 32) {
        uint32_t i = first + lane_id();
        unsigned finder = find_cycle(begins, i);
        uint64_t word = shfl(state, finder);
        if (i < end / 8)
            store(words + i, word);
    }
    uint64_t after = shfl(state, 31);
    syncwarp(); /* all have read it */
    if (lane_id() == 0) {
        store(&last.bytes, after);
        store(&last.position, at + total);
    }
    if (lane_id() < (end & 7))
        store(reinterpret_cast<uint8_t *>(words + end / 8) + lane_id(),
              (uint8_t)(after >> 8 * lane_id()));
    syncwarp();
}

/*
 * collective.  Writes the first of n tokens, up to 32 of them, and sets n to the number written.
 * False: nothing is written, because one of them reaches before the stream's first byte or does not
 * fit.  Synchronises at its end.  The last parameter tells this from the counterpart for units of
 * another type.
 */
template <typename P>
WHARF_DEVICE bool write_batch(const shared_ref<shared<P>> &ref, output_stream &out,
                              const uint32_t *tokens, uint32_t &n, uint8_t)
{
    bool mine = lane_id() < n;
    uint32_t word = mine ? load(&tokens[lane_id()]) : 0;
    batch_token token;
    token.length = mine ? token_length(word) : 0;
    token.value = (int32_t)word >> 9;
    token.begin = inclusive_add(token.length) - token.length;
    uint32_t total = reduce_add(token.length);
    bool match = token.length > 1;
    uint32_t distance = (uint32_t)token.value + 1;
    uint32_t position = out.position + token.begin;
    if (total > out.room())
        return false;
    if (out.position < WHARF_DEFLATE_WINDOW_NBYTES && any_lane(match & (distance > position)))
        return false;
    bool overlaps = (distance < token.length) & (token.length >= P::LONG_OVERLAP);
    uint32_t alone = ballot(match & (overlaps | (token.length >= P::LONG_MATCH)) &
                            (position >= MIN_COPY_POSITION));
    if (alone) {
        /* Write the tokens before the first match at another distance by the cycle, if that pays;
         * else write those before the next stretch for which it pays. */
        uint32_t others = ballot(match & (distance != 8));
        uint32_t front = others ? (others & (0 - others)) - 1 : FULL_MASK;
        uint32_t later = alone & ~front & ~others;
        uint32_t cut = 0;
        bool cycles =
            popc(alone & front) >= P::MIN_CYCLE_MATCHES && out.position >= MIN_CYCLE_POSITION;
        if (cycles)
            cut = ~front;
        else if (popc(later) >= P::MIN_CYCLE_MATCHES)
            cut = 0 - (later & (0 - later));
        if (cut) {
            uint32_t n_front = first_lane(cut);
            n = n < n_front ? n : n_front;
            total = uniform(shfl(token.begin + token.length, n - 1));
            token.length = lane_id() < n ? token.length : 0;
            alone &= ~cut;
        }
        if (cycles) {
            write_cycle(ref, out.out, out.position, token, total);
            out.position += total;
            return true;
        }
    }
    write_parts<P>(out.out, out.position, total, token, alone);
    out.position += total;
    return true;
}

} // namespace flate
} // namespace wharf

#endif
