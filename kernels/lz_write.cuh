/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lz_write.cuh: turns sequences of literals and matches into output, up to 32 at a time.
 *
 * Idea: the output bytes of a batch are spread over the lanes, one byte a lane and 32 bytes a
 * round, regardless of the sequences that they belong to.  For each round, a ballot of the lanes
 * whose sequences begin in it gives a mask of starts; the number of starts up to a byte identifies
 * its sequence.  One load instruction serves literals, from the input, and matches, from the
 * output.  The loads of several rounds are in flight together.  If a byte's source lies within
 * these same rounds, the byte waits until they are done, and then comes from the lane that holds
 * it.
 *
 * The whole warp copies long matches, and matches that overlap themselves, one by one with wide
 * stores.  The batch is cut at these matches.
 */
#ifndef WHARF_KERNELS_LZ_WRITE_CUH
#define WHARF_KERNELS_LZ_WRITE_CUH

#include "kernels/lz_copy.cuh"

namespace wharf
{
namespace lz
{

/* Rounds of 32 output bytes whose loads are in flight together. */
constexpr unsigned ROUNDS = 5;
/* Matches from this length on are copied one by one; for overlapping ones see LONG_OVERLAP. */
constexpr uint32_t LONG_MATCH = 96;
/* In batches with such matches, a lane itself stores up to so many literals before its match. */
constexpr uint32_t FEW_LITERALS = 8;

/* One lane's sequence of a batch.  All members are 0 in a lane without one. */
struct sequence {
    uint32_t begin;      /* its first byte, counted from the batch's first; less than 2^15 */
    uint32_t n_literals; /* they come first */
    uint32_t length;     /* with the match, which may be of 0 bytes */
    uint32_t literals;   /* where they are in the input */
    uint32_t distance;   /* of the match, less than 2^16 */
};

/* What is the same in all lanes. */
struct batch {
    uint8_t *out; /* the chunk's */
    const uint8_t *in;
    uint32_t base; /* where in the output the batch begins */
};

/* A lane's part of the 32 * ROUNDS bytes that are made together: byte 32 * r + lane at [r]. */
struct span_bytes {
    uint32_t byte[ROUNDS]; /* of a byte that waits: its match's distance */
    uint32_t waiting;      /* bit r: byte[r] waits */
};

/* collective.  Fetches the waiting bytes of round r from the lanes that hold them.  All earlier
 * rounds must be settled. */
WHARF_DEVICE void settle_round(span_bytes &span, unsigned r)
{
    bool waits = span.waiting & 1u << r;
    uint32_t source = 32 * r + lane_id() - span.byte[r]; /* counted from the span's first byte */
    WHARF_UNROLL
    for (unsigned k = 0; k < r; k++) {
        uint32_t byte = shfl(span.byte[k], source);
        span.byte[r] = waits && source >> 5 == k ? byte : span.byte[r];
    }
    bool inside = waits && source >> 5 == r;
    if (!any_lane(inside))
        return;
    /* A chain of waiting sources has at most 32 links: five doublings resolve it. */
    uint32_t from = inside ? source & 31 : lane_id();
    for (;;) {
        uint32_t next = shfl(from, from);
        if (!any_lane(next != from))
            break;
        from = next;
    }
    span.byte[r] = shfl(span.byte[r], from);
}

/* A lane's sequence, packed so that one shuffle passes each member. */
struct packed_sequence {
    uint32_t match;    /* where the match begins in the batch, times 2^16; and its distance */
    uint32_t literals; /* where they are in the input, less `begin` */
};

/*
 * collective.  Makes one round of a span: 32 bytes from byte begin + 32 * r of the batch on.  Bytes
 * behind `last` are not wanted.  `begins` has a bit for each byte that begins a sequence; the first
 * of these sequences is number `first`.
 */
WHARF_DEVICE void make_round(span_bytes &span, unsigned r, const batch &b,
                             const packed_sequence &mine, uint32_t begin, uint32_t last,
                             uint32_t begins, uint32_t &first)
{
    uint32_t upto = lanemask_lt() | 1u << lane_id();
    uint32_t whose = first + popc(begins & upto) - 1;
    uint32_t match = shfl(mine.match, whose);
    uint32_t literals = shfl(mine.literals, whose);
    first += popc(begins);
    uint32_t in_span = 32 * r + lane_id();
    uint32_t at = begin + in_span;
    at = at < last ? at : last;
    bool is_literal = at < match >> 16;
    uint32_t distance = match & 0xffff;
    bool near = !is_literal & (in_span >= distance);
    const uint8_t *from = is_literal ? b.in : b.out;
    uint32_t offset = is_literal ? literals + at : b.base + at - distance;
    /* Lanes that need no byte load the first one: cheaper than a predicate on the load. */
    uint32_t byte = load_part_once(from + (near ? 0 : offset), 0, !near);
    if (near)
        span.waiting |= 1u << r;
    span.byte[r] = near ? distance : byte;
}

/*
 * collective.  Writes n bytes, up to 32 * ROUNDS, from byte `begin` of a batch on.  Sequence number
 * `first` begins there, or later if a call for the bytes before set `first`.  All output before
 * must be visible to the warp (syncwarp).
 */
WHARF_DEVICE void write_span(const batch &b, const sequence &s, const packed_sequence &mine,
                             uint32_t begin, uint32_t n, uint32_t &first)
{
    static_assert(ROUNDS >= 3);
    span_bytes span = {};
    /* Where in the span the sequence begins; far ahead if not there. */
    uint32_t place = s.begin - begin;
    place = s.length && place < n ? place : 1u << 31;
    uint32_t last = begin + n - 1;
    auto make = [&](unsigned r) {
        uint32_t begins = reduce_or(bit_or_none(place - 32 * r));
        make_round(span, r, b, mine, begin, last, begins, first);
    };
    /* No branch between two rounds: the compiler waits for all loads where branches rejoin. */
    if (n <= 32) {
        make(0);
    } else if (n <= 96) {
        WHARF_UNROLL
        for (unsigned r = 0; r < 3; r++)
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
    uint8_t *to = b.out + (b.base + begin + lane_id());
    WHARF_UNROLL
    for (unsigned r = 0; r < ROUNDS; r++)
        if (32 * r + lane_id() < n)
            store(to + 32 * r, (uint8_t)span.byte[r]);
}

/* collective.  Each lane stores the literals of its own sequence, if they are few. */
WHARF_DEVICE void write_few_literals(const batch &b, const sequence &s)
{
    uint32_t n = s.n_literals <= FEW_LITERALS ? s.n_literals : 0;
    uint32_t most = reduce_max(n);
    for (uint32_t k = 0; k < most; k++)
        if (k < n)
            store(b.out + (b.base + s.begin + k), load(b.in + (s.literals + k)));
    syncwarp();
}

/*
 * collective.  Writes a batch of `total` bytes.  The caller has checked that they fit and that no
 * match reaches before the first byte of output.  Overlapping matches of LONG_OVERLAP bytes and
 * more are copied one by one.  Synchronises at its end.
 */
template <uint32_t LONG_OVERLAP>
WHARF_DEVICE void write_batch(const batch &b, const sequence &s, uint32_t total)
{
    static_assert(LONG_OVERLAP >= MIN_COPY_LENGTH);
    uint32_t match_begin = s.begin + s.n_literals;
    uint32_t match_length = s.length - s.n_literals;
    bool overlaps = (s.distance < match_length) & (match_length >= LONG_OVERLAP);
    uint32_t alone = ballot((overlaps | (match_length >= LONG_MATCH)) &
                            (b.base + match_begin >= MIN_COPY_POSITION));
    packed_sequence mine = {match_begin << 16 | s.distance, s.literals - s.begin};
    /* Sequences that still need a span after the lanes have stored those literals. */
    uint32_t spread = FULL_MASK, many_literals = FULL_MASK;
    if (alone) {
        write_few_literals(b, s);
        many_literals = ballot(s.n_literals > FEW_LITERALS);
        spread = ballot(match_length > 0) | many_literals;
    }
    uint32_t first = 0, begin = 0;
    for (;;) {
        unsigned lane = alone ? first_lane(alone) : 32;
        uint32_t end = alone ? uniform(shfl(match_begin, lane)) : total;
        uint32_t before = alone ? (1u << lane) - 1 : FULL_MASK;
        uint32_t inside = (spread & before) | (alone ? many_literals & 1u << lane : 0);
        if (inside & ~((1u << first) - 1)) {
            for (; begin < end; begin += 32 * ROUNDS) {
                uint32_t n = end - begin < 32 * ROUNDS ? end - begin : 32 * ROUNDS;
                write_span(b, s, mine, begin, n, first);
                syncwarp();
            }
        }
        if (!alone)
            break;
        uint32_t length = uniform(shfl(match_length, lane));
        copy_long(b.out, b.base + end, uniform(shfl(s.distance, lane)), length);
        syncwarp();
        alone &= alone - 1;
        first = lane + 1;
        begin = end + length;
        if (begin == total)
            break;
    }
}

} // namespace lz
} // namespace wharf

#endif
