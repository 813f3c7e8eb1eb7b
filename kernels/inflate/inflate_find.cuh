/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_find.cuh: finds a place in each part of a stream where a Deflate block may begin; the
 * counterpart of encoders/inflate_parallel/block_finder.c.
 *
 * A warp tests 1024 bit positions a step, 32 a lane, for dynamic blocks (RFC 1951, 3.2.7) that are
 * not final: first the header's 13 bits, of all positions at once; then, one position after the
 * other, whether the code length code is complete, which one in two hundred positions is.  Those
 * go into a queue.  When it holds 32, each lane reads one of these headers to its end: the codes
 * must be complete.  At a random position all this passes with probability 1.3e-9.
 *
 * Of stored blocks (3.2.4) LEN must be the complement of NLEN, with three zero bits before it, and
 * a stored or dynamic header must follow the block.
 *
 * The result is a guess, which the links prove (kernels/inflate_parts.h).
 */
#ifndef WHARF_KERNELS_INFLATE_INFLATE_FIND_CUH
#define WHARF_KERNELS_INFLATE_INFLATE_FIND_CUH

#include "encoders/deflate/deflate_format.h"
#include "kernels/inflate_parts.h"
#include "kernels/input_stream.cuh"

namespace wharf
{
namespace inflate
{

/* The code space of a complete code length code. */
constexpr uint32_t PRECODE_SPACE = 1 << WHARF_DEFLATE_MAX_PRECODE_NBITS;
constexpr uint32_t CODE_SPACE = 1 << WHARF_DEFLATE_MAX_CODE_NBITS;
constexpr unsigned QUAD_NBITS = 12;
constexpr unsigned FIND_WARPS = 8;
/* A stored block, and the longest header behind it. */
constexpr uint32_t FOLLOW_NBYTES = (64 << 10) + 1024;
/* So much of what precedes a part may be the padding in front of its first byte. */
constexpr uint32_t BEFORE_NBYTES = 16;

/* Of one warp. */
struct find_queue {
    uint32_t places[64];
    /* Symbols of each lane's code length code in the order of their codes. */
    uint8_t symbols[WHARF_DEFLATE_N_PRECODE][32];
};

/* Of a block. */
struct find_shared {
    uint16_t spaces[1 << QUAD_NBITS]; /* the code space of four lengths of three bits */
    find_queue queues[FIND_WARPS];
};

/* For all warps of a block.  Synchronises it. */
WHARF_DEVICE void make_spaces(find_shared &s, unsigned warp)
{
    for (uint32_t quad = 32 * warp + lane_id(); quad < 1u << QUAD_NBITS; quad += 32 * FIND_WARPS) {
        uint32_t space = 0;
        for (unsigned i = 0; i < QUAD_NBITS; i += 3)
            space += quad >> i & 7 ? PRECODE_SPACE >> (quad >> i & 7) : 0;
        store(&s.spaces[quad], (uint16_t)space);
    }
    syncblock();
}

/* ---- a header, by one lane --------------------------------------------------------------- */

/* Bits of the input, 32 of which can be looked at. */
struct lane_bits {
    const input_source &source;
    uint32_t at; /* skewed */
    uint32_t low, high;

    WHARF_DEVICE_MEMBER lane_bits(const input_source &s, uint32_t from) : source(s), at(from)
    {
        low = source.load_word(at >> 5);
        high = source.load_word((at >> 5) + 1);
    }
    WHARF_DEVICE_MEMBER uint32_t peek() const { return funnel_right(low, high, at); }
    /* n < 32 */
    WHARF_DEVICE_MEMBER void skip(uint32_t n)
    {
        bool crosses = (at & 31) + n >= 32;
        at += n;
        if (crosses) {
            low = high;
            high = source.load_word((at >> 5) + 1);
        }
    }
    WHARF_DEVICE_MEMBER uint32_t take(uint32_t n)
    {
        uint32_t v = low_bits(peek(), n);
        skip(n);
        return v;
    }
};

/*
 * A code length code.  Read most significant bit first, codes of one length are smaller than longer
 * ones that begin with as many bits: so the number of lengths whose codes end at or before a word
 * of seven bits tells its own length.  Byte k - 1 of each member is of length k.
 */
struct lane_precode {
    uint64_t ends;   /* behind the codes of that length, left-justified in seven bits: up to 128 */
    uint64_t places; /* of its first symbol among all, less its first code, modulo 256 */

    /* The length of the code that `word` begins with. */
    WHARF_DEVICE_MEMBER uint32_t length_of(uint32_t top) const
    {
        uint64_t t = (top + 128) * (uint64_t)0x0101010101010101 - ends;
        uint32_t lo = (uint32_t)t & 0x80808080u, hi = (uint32_t)(t >> 32) & 0x00008080u;
        return 1 + popc(lo) + popc(hi);
    }
};

/* The symbols of code lengths in the order of WHARF_DEFLATE_PRECODE_ORDER, five bits each. */
WHARF_DEVICE uint32_t precode_symbol(unsigned rank)
{
    if (rank < 3)
        return 16 + rank;
    if (rank == 3)
        return 0;
    return rank % 2 ? 7 - (rank - 5) / 2 : 8 + (rank - 4) / 2;
}

/* One lane.  Reads n lengths.  False: the code is not complete. */
WHARF_DEVICE bool read_lane_precode(find_queue &s, lane_bits &bits, unsigned n, lane_precode &code)
{
    uint64_t lengths = 0; /* by symbol, three bits each */
    uint64_t counts = 0;  /* by length, eight bits each */
    uint32_t space = 0;
    for (unsigned rank = 0; rank < n; rank++) {
        uint32_t length = bits.take(3);
        lengths |= (uint64_t)length << 3 * precode_symbol(rank);
        counts += length ? (uint64_t)1 << 8 * (length - 1) : 0;
        space += length ? PRECODE_SPACE >> length : 0;
    }
    if (space != PRECODE_SPACE)
        return false;
    uint64_t next = 0; /* the place of each length's next symbol */
    uint32_t end = 0, n_before = 0;
    code.ends = code.places = 0;
    for (unsigned k = 1; k <= WHARF_DEFLATE_MAX_PRECODE_NBITS; k++) {
        unsigned shift = 8 * (k - 1);
        uint32_t count = (uint32_t)(counts >> shift) & 0xff;
        uint32_t first = end >> (WHARF_DEFLATE_MAX_PRECODE_NBITS - k);
        next |= (uint64_t)n_before << shift;
        code.places |= (uint64_t)((n_before - first) & 0xff) << shift;
        end += count << (WHARF_DEFLATE_MAX_PRECODE_NBITS - k);
        code.ends |= (uint64_t)end << shift;
        n_before += count;
    }
    for (unsigned symbol = 0; symbol < WHARF_DEFLATE_N_PRECODE; symbol++) {
        uint32_t length = (uint32_t)(lengths >> 3 * symbol) & 7;
        if (length == 0)
            continue;
        unsigned shift = 8 * (length - 1);
        store(&s.symbols[(next >> shift) & 0x1f][lane_id()], (uint8_t)symbol);
        next += (uint64_t)1 << shift;
    }
    return true;
}

/* What the code lengths of both codes add up to. */
struct code_spaces {
    uint32_t litlen, distance;
    uint32_t n_distance;
    bool has_end;

    WHARF_DEVICE_MEMBER bool is_good() const
    {
        bool one_bit_alone = n_distance == 1 && distance == CODE_SPACE / 2;
        return has_end && litlen == CODE_SPACE &&
               (distance == CODE_SPACE || n_distance == 0 || one_bit_alone);
    }
};

/* One lane.  Reads all code lengths: n_litlen of n are those of literals and lengths. */
WHARF_DEVICE bool read_lane_lengths(const find_queue &s, lane_bits &bits, const lane_precode &code,
                                    uint32_t n_litlen, uint32_t n)
{
    code_spaces spaces = {0, 0, 0, false};
    uint32_t last = 0;
    for (uint32_t i = 0; i < n;) {
        uint32_t word = bits.peek();
        uint32_t top = brev(word) >> (32 - WHARF_DEFLATE_MAX_PRECODE_NBITS);
        uint32_t length = code.length_of(top);
        uint32_t place = (top >> (WHARF_DEFLATE_MAX_PRECODE_NBITS - length)) +
                         (uint32_t)(code.places >> 8 * (length - 1));
        /* A complete code has a symbol for each word; the bound holds whatever it is. */
        place &= 0xff;
        uint32_t symbol = load(&s.symbols[place < WHARF_DEFLATE_N_PRECODE ? place : 0][lane_id()]);
        uint32_t n_extra = symbol < 16 ? 0 : symbol == 18 ? 7 : symbol - 14;
        uint32_t extra = low_bits(word >> length, n_extra);
        uint32_t repeat = symbol < 16 ? 1 : extra + (symbol == 18 ? 11 : 3);
        if ((symbol == 16 && i == 0) || repeat > n - i)
            return false;
        uint32_t value = symbol < 16 ? symbol : symbol == 16 ? last : 0;
        uint32_t left = i < n_litlen ? n_litlen - i : 0;
        uint32_t n_left = repeat < left ? repeat : left;
        if (value) {
            spaces.litlen += n_left * (CODE_SPACE >> value);
            spaces.distance += (repeat - n_left) * (CODE_SPACE >> value);
            spaces.n_distance += repeat - n_left;
            spaces.has_end |=
                i <= WHARF_DEFLATE_END_OF_BLOCK && i + repeat > WHARF_DEFLATE_END_OF_BLOCK;
            if (spaces.litlen > CODE_SPACE || spaces.distance > CODE_SPACE)
                return false;
        }
        last = value;
        i += repeat;
        bits.skip(length + n_extra);
    }
    return spaces.is_good() && bits.at <= 8 * bits.source.end;
}

/* One lane.  Whether the header of a dynamic block begins at `at`, whose first three bits are known
 * to be right. */
WHARF_DEVICE bool is_dynamic_header(find_queue &s, const input_source &source, uint32_t at)
{
    lane_bits bits(source, at + 3);
    lane_precode code;
    uint32_t n_litlen = bits.take(5) + WHARF_DEFLATE_FIRST_LENGTH;
    uint32_t n_distance = bits.take(5) + 1;
    uint32_t n_lengths = bits.take(4) + 4;
    return n_litlen <= WHARF_DEFLATE_N_LITLEN && n_distance <= WHARF_DEFLATE_N_DISTANCE &&
           read_lane_precode(s, bits, n_lengths, code) &&
           read_lane_lengths(s, bits, code, n_litlen, n_litlen + n_distance);
}

/* One lane.  Whether a stored block whose LEN is at bit `at` ends in front of a good header. */
WHARF_DEVICE bool has_follower(find_queue &s, const input_source &source, uint32_t at)
{
    lane_bits bits(source, at);
    uint32_t next = at + 32 + 8 * bits.take(16);
    if (next + 64 > 8 * source.end)
        return false;
    lane_bits behind(source, next);
    uint32_t type = behind.take(3) >> 1;
    if (type == WHARF_DEFLATE_DYNAMIC)
        return is_dynamic_header(s, source, next);
    uint32_t padding = behind.take(5), word = behind.peek();
    return type == WHARF_DEFLATE_STORED && padding == 0 && ((word ^ word >> 16) & 0xffff) == 0xffff;
}

/* One lane.  How many zero bits, up to 7, are in front of bit `at`, which is 7 or more. */
WHARF_DEVICE uint32_t zeros_before(const input_source &source, uint32_t at)
{
    lane_bits bits(source, at - 7);
    return clz((bits.peek() & 0x7f) << 25 | 1u << 24);
}

/* ---- a part, by a warp ------------------------------------------------------------------- */

/* One lane.  Of the 32 positions from the first bit of `low` on, those of which the header's
 * beginning is right: not final, BTYPE 10, HLIT and HDIST not 30 or 31. */
WHARF_DEVICE uint32_t good_beginnings(uint32_t low, uint32_t high)
{
    uint64_t word = (uint64_t)high << 32 | low;
    uint64_t two = word & word >> 1;
    uint64_t four = two & two >> 2;
    return (uint32_t)(~word & ~(word >> 1) & word >> 2 & ~(four >> 4) & ~(four >> 9));
}

/* One lane.  Whether the code length code of a header at bit `pos` of the words is complete. */
WHARF_DEVICE bool has_good_precode(const uint16_t *spaces, const uint32_t (&w)[4], uint32_t pos)
{
    uint32_t at = pos + 13;
    bool next = at >= 32;
    uint32_t a = next ? w[1] : w[0], b = next ? w[2] : w[1], c = next ? w[3] : w[2];
    uint64_t bits = (uint64_t)funnel_right(b, c, at) << 32 | funnel_right(a, b, at);
    uint32_t n = ((uint32_t)bits & 15) + 4;
    bits = bits >> 4 & (((uint64_t)1 << 3 * n) - 1);
    uint32_t space = 0;
    WHARF_UNROLL
    for (unsigned i = 0; i < 60; i += QUAD_NBITS)
        space += load(&spaces[(uint32_t)(bits >> i) & ((1 << QUAD_NBITS) - 1)]);
    return space == PRECODE_SPACE;
}

/* A search.  Positions are skewed. */
struct part_search {
    find_queue &queue;
    const uint16_t *spaces;
    const input_source &source;
    uint32_t from, to;
    uint32_t n_queued;
    uint32_t n_tries; /* left: batches of headers that may be read */
    uint32_t best;    /* what was found, times 8, and a stored block's slack; or ~0 */

    /* collective.  Reads the headers that are queued, 32 at most. */
    WHARF_DEVICE_MEMBER void read_queued()
    {
        syncwarp(); /* the queue, before it is read */
        uint32_t place = load(&queue.places[lane_id()]),
                 later = load(&queue.places[32 + lane_id()]);
        bool mine = lane_id() < n_queued;
        bool good = mine && is_dynamic_header(queue, source, place);
        syncwarp(); /* where lanes meet, for the compiler too */
        uint32_t found = reduce_min(good ? place << 3 : ~0u);
        best = found < best ? found : best;
        n_queued = n_queued < 32 ? 0 : n_queued - 32;
        n_tries--;
        syncwarp();
        if (lane_id() < n_queued)
            store(&queue.places[lane_id()], later);
        syncwarp();
    }

    /* One lane.  Of 32 positions from `first` on, those that are to be searched. */
    WHARF_DEVICE_MEMBER uint32_t inside(uint32_t first) const
    {
        uint32_t mask = first + 32 <= from || first >= to ? 0 : ~0u;
        if (first < from)
            mask &= ~0u << ((from - first) & 31);
        if (first < to && to - first < 32)
            mask &= (1u << (to - first)) - 1;
        return mask;
    }

    /* collective.  Dynamic blocks, in each lane's 32 positions from `first` on. */
    WHARF_DEVICE_MEMBER void search_dynamic(const uint32_t (&w)[4], uint32_t first)
    {
        uint32_t left = good_beginnings(w[0], w[1]) & inside(first);
        while (any_lane(left != 0) && n_tries) {
            uint32_t pos = ffs(left) - 1;
            bool good = left && has_good_precode(spaces, w, pos & 31);
            left &= left - 1;
            uint32_t all = ballot(good);
            if (good)
                store(&queue.places[n_queued + popc(all & lanemask_lt())], first + pos);
            n_queued += popc(all);
            if (n_queued >= 32)
                read_queued();
        }
    }

    /* collective.  Stored blocks whose LEN begins in one of the four bytes behind each lane's
     * first. */
    WHARF_DEVICE_MEMBER void search_stored(const uint32_t (&w)[4], uint32_t first)
    {
        uint32_t at = 0;
        WHARF_UNROLL
        for (unsigned k = 4; k >= 1; k--) {
            uint32_t word = k == 4 ? w[1] : funnel_right(w[0], w[1], 8 * k);
            bool good = ((word ^ word >> 16) & 0xffff) == 0xffff && (w[0] >> (8 * k - 3) & 7) == 0;
            at = good ? first + 8 * k : at;
        }
        bool good = at && at - 3 >= from && at - 3 < to;
        if (!any_lane(good))
            return;
        good = good && has_follower(queue, source, at);
        uint32_t slack = good ? zeros_before(source, at - 3) : 0;
        syncwarp();
        uint32_t found = reduce_min(good ? (at - 3) << 3 | slack : ~0u);
        if (found == ~0u)
            return;
        if (n_queued)
            read_queued();
        best = found < best ? found : best;
    }

    /* collective. */
    WHARF_DEVICE_MEMBER void run()
    {
        uint32_t lane = lane_id();
        uint32_t i = from >> 5;
        uint32_t next = source.load_word(i + lane);
        while (32 * i < to && best == ~0u && n_tries) {
            uint32_t w[4];
            w[0] = next;
            next = source.load_word(i + 32 + lane);
            WHARF_UNROLL
            for (unsigned k = 1; k < 4; k++)
                w[k] = shfl(lane < k ? next : w[0], lane + k);
            search_dynamic(w, 32 * (i + lane));
            search_stored(w, 32 * (i + lane));
            i += 32;
        }
        if (n_queued && best == ~0u)
            read_queued();
    }
};

/* Batches of headers that are read in a part of so many bits: random bits have one in 6400. */
WHARF_DEVICE uint32_t most_tries(uint32_t n_bits)
{
    return n_bits / 2048 + 16;
}

/* collective.  Part number i, from 1 on. */
WHARF_DEVICE void find_part(find_shared &s, unsigned warp, const wharf_inflate_job &job, uint32_t i)
{
    uint64_t begin = i * job.part_nbytes - BEFORE_NBYTES;
    static_assert(FOLLOW_NBYTES <= WHARF_INFLATE_LOOK_NBYTES);
    uint64_t left = job.in_nbytes - begin, most = BEFORE_NBYTES + job.part_nbytes;
    input_source source;
    source.init(job.in + begin,
                (uint32_t)(left < most + FOLLOW_NBYTES ? left : most + FOLLOW_NBYTES));
    uint32_t from = source.skew_nbits() + 8 * BEFORE_NBYTES;
    uint32_t n_bits = (uint32_t)(8 * ((left < most ? left : most) - BEFORE_NBYTES));
    part_search search = {s.queues[warp],     s.spaces, source, from, from + n_bits, 0,
                          most_tries(n_bits), ~0u};
    search.run();
    if (lane_id() == 0) {
        uint64_t origin = 8 * (uint64_t)(source.aligned - job.in); /* modulo 2^64 */
        bool found = search.best != ~0u;
        store(&job.parts[i].start, found ? origin + (search.best >> 3) : WHARF_INFLATE_NOWHERE);
        store(&job.parts[i].slack, search.best & 7);
    }
    syncwarp(); /* the queue, before the next part */
}

/* collective.  The next number that a warp of any block gets; each once. */
WHARF_DEVICE uint32_t take_number(uint32_t *counter)
{
    uint32_t taken = 0;
    if (lane_id() == 0)
        taken = atomic_add(counter, 1);
    return uniform(shfl(taken, 0));
}

/* For all warps of a block.  Finds the starts of parts until all have been searched. */
WHARF_DEVICE void find_parts(find_shared &s, unsigned warp, const wharf_inflate_job &job)
{
    make_spaces(s, warp);
    for (;;) {
        uint32_t i = job.first_part + take_number(&job.control->n_searched);
        if (i >= job.end_part)
            return;
        if (i > 0 && i * job.part_nbytes < job.in_nbytes) {
            find_part(s, warp, job, i);
        } else if (lane_id() == 0) {
            store(&job.parts[i].start, i ? WHARF_INFLATE_NOWHERE : 0);
            store(&job.parts[i].slack, 0u);
        }
        syncwarp();
    }
}

} // namespace inflate
} // namespace wharf

#endif
