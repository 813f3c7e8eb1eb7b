/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_streams.cuh: decodes Huffman-coded literals, in one stream or four.
 *
 * Idea: the lanes divide the streams; each lane has a range of its stream's bits.  Huffman codes
 * synchronise themselves, so a lane starts blindly some hundred bits before its range and counts
 * the literals that begin in the range.  If it did not start where the lane before it ended, it
 * counts again from there.  The counts then say where each lane's literals go.
 *
 * NOTHING HERE DECIDES ANYTHING, except that all is good.  If it is not, the exact path below
 * decodes the stream again, one literal at a time, and reports the error and its place.
 */
#ifndef WHARF_KERNELS_ZSTD_ZSTD_STREAMS_CUH
#define WHARF_KERNELS_ZSTD_ZSTD_STREAMS_CUH

#include "kernels/zstd/zstd_tree.cuh"

namespace wharf
{
namespace zstd
{

/* About how many bits before its range a lane starts. */
constexpr uint32_t APPROACH_NBITS = 256;
/* Literals between two looks at where a lane is, and their bits at most: half of them are taken off
 * 64 bits. */
constexpr unsigned TURN_LITERALS = 8; /* put_down() stores as many at once */
constexpr uint32_t TURN_NBITS = TURN_LITERALS * QUICK_TREE_LOG;
static_assert(TURN_NBITS / 2 <= 64 && TURN_NBITS <= 128);

/* A stream: bits from `top` down to `begin`, and the place of its literals in the output. */
struct stream {
    uint32_t begin, top; /* the same: it has no bits, or is none */
    uint32_t out_at, n_literals;
    bool is_there;
};

/* One lane.  The stream of the bytes from `at` to `end`. */
WHARF_DEVICE stream find_stream(const input_source &source, uint32_t at, uint32_t end,
                                uint32_t out_at, uint32_t n_literals)
{
    uint32_t last = 0;
    if (end > at)
        last = load_nc(source.aligned + end - 1);
    last = opaque(last); /* where lanes that parted meet, for the compiler too */
    uint32_t top = last ? 8 * (end - 1) + high_bit(last) : 8 * at;
    return {8 * at, top, out_at, n_literals, last != 0};
}

/* One lane.  A piece that is not all input. */
WHARF_DEVICE_NOINLINE uint64_t load_edge(input_source source, int32_t i)
{
    if (i < 0)
        return 0;
    return (uint64_t)source.load_word(2 * (uint32_t)i + 1) << 32 |
           source.load_word(2 * (uint32_t)i);
}

/* One lane.  Bits 64 * i to 64 * i + 63 of the input; 0 outside. */
WHARF_DEVICE uint64_t load_piece(const input_source &source, int32_t i)
{
    uint32_t first = 8 * (uint32_t)i;
    if (i >= 0 && first >= source.begin && first + 8 <= source.end)
        return load_nc(reinterpret_cast<const uint64_t *>(source.aligned) + i);
    return load_edge(source, i);
}

/*
 * A lane's own reader, downwards.  It holds three pieces of 64 bits.  All lanes load the two below
 * at the beginning of a turn and need them at its end, so the loads have time to arrive, whichever
 * lanes move on to another piece.
 */
struct reader {
    uint32_t at; /* bits below are the next */
    int32_t piece;
    uint64_t high, middle, low;
    uint64_t pending[2];

    /* One lane.  `at` is not 0. */
    WHARF_DEVICE_MEMBER void init(const input_source &source, uint32_t from)
    {
        at = from;
        piece = (int32_t)(at - 1) >> 6;
        high = load_piece(source, piece);
        middle = load_piece(source, piece - 1);
        low = load_piece(source, piece - 2);
    }

    WHARF_DEVICE_MEMBER void begin_turn(const input_source &source)
    {
        pending[0] = load_piece(source, piece - 3);
        pending[1] = load_piece(source, piece - 4);
    }

    /* 64 bits below `at`, the first of them the highest. */
    WHARF_DEVICE_MEMBER uint64_t peek() const
    {
        int32_t n = (int32_t)at - 64 * piece; /* -63 to 64 */
        bool is_high = n > 0;
        uint64_t first = is_high ? high : middle, second = is_high ? middle : low;
        uint32_t n_first = (uint32_t)(is_high ? n : n + 64);
        return first << (64 - n_first) | second >> 1 >> (n_first - 1);
    }

    /* Behind TURN_NBITS at most. */
    WHARF_DEVICE_MEMBER void end_turn()
    {
        int32_t now = (int32_t)(at - 1) >> 6;
        uint32_t n = (uint32_t)(piece - now); /* 0 to 2 */
        high = n == 0 ? high : n == 1 ? middle : low;
        middle = n == 0 ? middle : n == 1 ? low : pending[0];
        low = n == 0 ? low : n == 1 ? pending[0] : pending[1];
        piece = now;
    }
};

/* The bits that `bits`, the high and the low half of what is peeked, begin with.  One lane: takes a
 * literal off them: its table entry, of which byte 0 is how many bits it has. */
struct peeked {
    uint32_t high, low;

    WHARF_DEVICE_MEMBER void init(uint64_t bits)
    {
        high = (uint32_t)(bits >> 32);
        low = (uint32_t)bits;
    }
    WHARF_DEVICE_MEMBER uint32_t look(const tree_memory &t, uint32_t log) const
    {
        return load(&t.table[high >> (32 - log)]);
    }
    /* By the low five bits of n. */
    WHARF_DEVICE_MEMBER void skip(uint32_t n)
    {
        high = funnel_left(low, high, n);
        low = funnel_left(0, low, n);
    }
};

/* One lane.  Counts literals down to bit `cut` or below. */
WHARF_DEVICE uint32_t count_down(const tree_memory &t, uint32_t log, const input_source &source,
                                 reader &r, uint32_t cut)
{
    uint32_t n = 0;
    WHARF_NO_UNROLL
    while (r.at > cut) {
        r.begin_turn(source);
        bool is_whole = r.at > cut + TURN_NBITS;
        WHARF_UNROLL
        for (unsigned half = 0; half < 2; half++) {
            peeked bits;
            bits.init(r.peek());
            uint32_t sum = 0;
            if (is_whole) {
                WHARF_UNROLL
                for (unsigned k = 0; k < TURN_LITERALS / 2; k++) {
                    uint32_t entry = bits.look(t, log);
                    bits.skip(entry);
                    sum += entry;
                }
                n += TURN_LITERALS / 2;
            } else {
                WHARF_UNROLL
                for (unsigned k = 0; k < TURN_LITERALS / 2; k++) {
                    bool is_one = r.at - (sum & 0xff) > cut;
                    uint32_t entry = is_one ? bits.look(t, log) : 0;
                    bits.skip(entry);
                    sum += entry;
                    n += is_one;
                }
            }
            r.at -= sum & 0xff;
        }
        r.end_turn();
    }
    return n;
}

/* One lane.  Writes n literals to `to`. */
WHARF_DEVICE void put_down(const tree_memory &t, uint32_t log, const input_source &source,
                           reader &r, uint8_t *to, uint32_t n)
{
    uint32_t wanted = 8 - ((uint32_t) reinterpret_cast<uintptr_t>(to) & 7);
    WHARF_NO_UNROLL
    while (n > 0) {
        r.begin_turn(source);
        wanted = wanted < n ? wanted : n;
        uint32_t words[2];
        WHARF_UNROLL
        for (unsigned half = 0; half < 2; half++) {
            peeked bits;
            bits.init(r.peek());
            uint32_t entry[4], sum = 0;
            WHARF_UNROLL
            for (unsigned k = 0; k < 4; k++) {
                entry[k] = 4 * half + k < wanted ? bits.look(t, log) : 0;
                bits.skip(entry[k]);
                sum += entry[k];
            }
            words[half] = byte_perm(byte_perm(entry[0], entry[1], 0x0051),
                                    byte_perm(entry[2], entry[3], 0x0051), 0x5410);
            r.at -= sum & 0xff;
        }
        if (wanted == TURN_LITERALS) {
            store(reinterpret_cast<uint64_t *>(to), (uint64_t)words[1] << 32 | words[0]);
        } else {
            WHARF_UNROLL
            for (unsigned k = 0; k < TURN_LITERALS; k++)
                if (k < wanted)
                    store(to + k, (uint8_t)(words[k / 4] >> 8 * (k & 3)));
        }
        to += wanted;
        n -= wanted;
        wanted = TURN_LITERALS;
        r.end_turn();
    }
}

/* collective.  The streams' literals, of n_lanes (8 or 32) lanes each; `mine` is this lane's.
 * False: the streams are not all good, and the output is undefined.  Synchronises at its end. */
WHARF_DEVICE bool put_streams(const state &st, const stream &mine, uint32_t n_lanes, uint32_t log,
                              step_counter &steps)
{
    const tree_memory &t = st.s().tree;
    uint32_t number = lane_id() & (n_lanes - 1);
    uint32_t n_bits = mine.top - mine.begin;
    /* Multiples of the longest code's bits: where all codes have these, all lanes begin well. */
    uint32_t range = (n_bits / n_lanes / log + 1) * log;
    uint32_t approach = (APPROACH_NBITS / log + 1) * log;
    uint32_t before = number * range, after = before + range;
    uint32_t from = before < n_bits ? mine.top - before : mine.begin;
    uint32_t to = after < n_bits && number + 1 < n_lanes ? mine.top - after : mine.begin;
    uint32_t longest = reduce_max(range);
    if (!steps.take(longest / 64 + 1))
        return false;
    reader r;
    r.init(st.source, mine.top - from > approach ? from + approach : mine.top);
    count_down(t, log, st.source, r, from);
    syncwarp(); /* lanes meet, for the compiler too */
    uint32_t start = number == 0 ? mine.top : r.at;
    uint32_t n = count_down(t, log, st.source, r, to);
    syncwarp();
    /* Each turn at least one lane more begins where the one before it ends. */
    for (;;) {
        uint32_t end = shfl_up(r.at, 1);
        bool is_wrong = number > 0 && end != start;
        if (!any_lane(is_wrong))
            break;
        if (!steps.take(longest / 64 + 1))
            return false;
        if (is_wrong) {
            start = end;
            r.init(st.source, start);
            n = count_down(t, log, st.source, r, to);
        }
        syncwarp(); /* lanes meet, for the compiler too */
    }
    uint32_t upto = inclusive_add(n);
    uint32_t before_stream = shfl(upto - n, lane_id() - number);
    bool is_even = (r.at == mine.begin) & (upto - before_stream == mine.n_literals);
    bool is_good = mine.is_there & (is_even | (number + 1 < n_lanes));
    if (any_lane(!is_good))
        return false;
    syncwarp();
    r.init(st.source, start);
    put_down(t, log, st.source, r, st.out + mine.out_at + (upto - n - before_stream), n);
    syncwarp();
    return true;
}

/* collective.  The exact path: one stream by all lanes alike, a literal at a time.  Returns a
 * reason. */
WHARF_DEVICE uint32_t put_carefully(const state &st, const stream &mine, uint32_t log,
                                    step_counter &steps)
{
    const tree_memory &t = st.s().tree;
    uint32_t at = mine.top;
    uint32_t start = load(&t.starts[lane_id() & 15]);
    if (!mine.is_there)
        return WHARF_REASON_ZSTD_STREAMS;
    for (uint32_t i = 0; i < mine.n_literals; i++) {
        if (!steps.take(1)) /* a bit */
            return WHARF_REASON_STEP_BUDGET;
        uint32_t low = at - mine.begin < log ? mine.begin : at - log;
        uint32_t index = (load_bytes(st.source, low >> 3) >> (low & 7) & ((1u << (at - low)) - 1))
                         << (log - (at - low));
        /* The last weight whose codes begin there or before. */
        bool is_weight = lane_id() - 1 < log;
        uint32_t begins = ballot(is_weight & (start <= index));
        uint32_t weight = high_bit(begins);
        uint32_t entry = uniform(entry_of(t, index, log, weight));
        if ((entry & 15) > at - mine.begin)
            return WHARF_REASON_ZSTD_STREAMS;
        at -= entry & 15;
        if (lane_id() == 0)
            store(st.out + mine.out_at + i, (uint8_t)(entry >> 8));
        syncwarp(); /* lanes meet, for the compiler too */
    }
    syncwarp();
    return at == mine.begin ? WHARF_REASON_NONE : WHARF_REASON_ZSTD_STREAMS;
}

} // namespace zstd
} // namespace wharf

#endif
