/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_header.cuh: block headers, judged in the order of encoders/deflate/deflate_format.h.
 * All errors stand at the header's first bit, so positions inside a header stay in here.
 */
#ifndef WHARF_KERNELS_DEFLATE_HEADER_CUH
#define WHARF_KERNELS_DEFLATE_HEADER_CUH

#include "kernels/deflate/deflate_careful.cuh"

namespace wharf
{
namespace flate
{

struct block {
    uint32_t reason;
    uint32_t type;
    uint32_t final;
    uint32_t stored_nbytes;
    uint32_t body;   /* where it begins, if the reason is NONE */
    uint32_t window; /* where the state's has gone */
};

/* The n lowest bits at `at`, which moves on; false when the input ends before. */
template <typename St>
WHARF_DEVICE bool take_field(St &st, uint32_t &at, unsigned n, uint32_t &ret)
{
    uint32_t end = st.end();
    uint64_t bits = peek_64(st, at);
    if (at > end || end - at < n)
        return false;
    ret = low_bits((uint32_t)bits, n);
    at += n;
    return true;
}

/* Where in WHARF_DEFLATE_PRECODE_ORDER (16, 17, 18, 0, 8, 7, 9, 6, 10 ...) a symbol stands; 19 or
 * more for none. */
WHARF_DEVICE unsigned precode_rank(unsigned symbol)
{
    if (symbol >= 16)
        return symbol < WHARF_DEFLATE_N_PRECODE ? symbol - 16 : symbol;
    if (symbol == 0)
        return 3;
    /* 8 and up are at 4, 6, 8 ...; 7 and down at 5, 7, 9 ... */
    return symbol >= 8 ? 4 + 2 * (symbol - 8) : 5 + 2 * (7 - symbol);
}

/*
 * collective.  Reads the n lengths of the code length code at `at` and makes its table: entries
 * of 7 bits' words, length in bits 0 to 2 and symbol in bits 3 to 7.
 */
template <typename St>
WHARF_DEVICE uint32_t read_precode(St &st, uint32_t &at, unsigned n)
{
    header_scratch &h = st.s().header;
    unsigned lane = lane_id();
    uint64_t bits = peek_64(st, at); /* 19 lengths of 3 bits are 57 */
    uint32_t end = st.end();
    if (at > end || end - at < 3 * n)
        return WHARF_REASON_INPUT_TRUNCATED;
    at += 3 * n;
    /* Lane i has symbol i's length, of those that are there number: */
    unsigned rank = precode_rank(lane);
    uint32_t nbits = rank < n ? (uint32_t)(bits >> 3 * rank) & 7 : 0;
    uint32_t space = reduce_add(nbits ? 128u >> nbits : 0);
    if (space != 128 && space != 0)
        return WHARF_REASON_DEFLATE_PRECODE;
    syncwarp();     /* the tokens' readers are done */
    if (space == 0) /* words of one bit that mean length 0 */
        for (unsigned i = lane; i < 128; i += 32)
            store(&h.precode[i], (uint8_t)1);
    uint32_t code = 0, mine = 0;
    WHARF_UNROLL
    for (unsigned k = 1; k <= WHARF_DEFLATE_MAX_PRECODE_NBITS; k++) {
        uint32_t same = ballot(nbits == k);
        code <<= 1;
        if (nbits == k)
            mine = code + popc(same & lanemask_lt());
        code += popc(same);
    }
    if (nbits)
        for (uint32_t i = brev(mine) >> (32 - nbits); i < 128; i += 1u << nbits)
            store(&h.precode[i], (uint8_t)(lane << 3 | nbits));
    syncwarp();
    return WHARF_REASON_NONE;
}

/* collective.  Reads n code lengths at `at` into h.nbits. */
template <typename St>
WHARF_DEVICE uint32_t read_lengths(St &st, uint32_t &at, uint32_t n)
{
    header_scratch &h = st.s().header;
    uint32_t end = st.end();
    uint32_t last = 0;
    for (uint32_t i = 0; i < n;) {
        uint32_t word = (uint32_t)peek_64(st, at);
        uint32_t left = end > at ? end - at : 0;
        uint32_t entry = load(&h.precode[word & 127]);
        uint32_t symbol = entry >> 3;
        uint32_t nbits = entry & 7;
        if (nbits > left)
            return WHARF_REASON_INPUT_TRUNCATED;
        uint32_t repeat = 1;
        if (symbol >= 16) {
            uint32_t n_extra = symbol == 18 ? 7 : symbol - 14;
            uint32_t extra = low_bits(word >> nbits, n_extra);
            nbits += n_extra;
            if (nbits > left)
                return WHARF_REASON_INPUT_TRUNCATED;
            repeat = extra + (symbol == 18 ? 11 : 3);
            if ((symbol == 16 && i == 0) || repeat > n - i)
                return WHARF_REASON_DEFLATE_LENGTH_REPEAT;
        }
        if (symbol != 16)
            last = symbol < 16 ? symbol : 0;
        for (uint32_t k = lane_id(); k < repeat; k += 32)
            store(&h.nbits[i + k], (uint8_t)last);
        i += repeat;
        at += nbits;
    }
    syncwarp();
    return WHARF_REASON_NONE;
}

/* collective.  Both tables from n_litlen and n_distance lengths in h.nbits. */
template <typename Shared>
WHARF_DEVICE uint32_t make_tables(Shared &s, uint32_t n_litlen, uint32_t n_distance)
{
    header_scratch &h = s.header;
    uint32_t litlen[9], distance[1];
    WHARF_UNROLL
    for (unsigned c = 0; c < 9; c++)
        litlen[c] = 32 * c + lane_id() < n_litlen ? load(&h.nbits[32 * c + lane_id()]) : 0;
    distance[0] = lane_id() < n_distance ? load(&h.nbits[n_litlen + lane_id()]) : 0;
    if (shfl(litlen[8], 0) == 0)
        return WHARF_REASON_DEFLATE_NO_END;
    if (!build_table<litlen_symbols>(s.litlen, h.build, litlen, false))
        return WHARF_REASON_DEFLATE_LITLEN_CODE;
    if (!build_table<distance_symbols>(s.distance, h.build, distance, true))
        return WHARF_REASON_DEFLATE_DISTANCE_CODE;
    return WHARF_REASON_NONE;
}

/* collective.  Nothing to do if the tables are still those of the fixed codes: empty fixed blocks
 * take ten bits, and making tables for each is what would make a chunk of them slowest. */
template <typename Shared>
WHARF_DEVICE void make_fixed_tables(Shared &s)
{
    static_assert(decltype(s.litlen)::ROOT >= 9, "no fixed code is longer, so litlen.how is free");
    if (uniform(load(&s.litlen.how)) == FIXED_CODES)
        return;
    uint32_t litlen[9], distance[1] = {5};
    WHARF_UNROLL
    for (unsigned c = 0; c < 9; c++) {
        uint32_t symbol = 32 * c + lane_id();
        litlen[c] = symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8;
    }
    syncwarp(); /* the tokens' readers are done */
    build_table<litlen_symbols>(s.litlen, s.header.build, litlen, false);
    build_table<distance_symbols>(s.distance, s.header.build, distance, true);
    if (lane_id() == 0)
        store(&s.litlen.how, FIXED_CODES);
    syncwarp();
}

template <typename St>
WHARF_DEVICE uint32_t read_dynamic(St &st, uint32_t &at)
{
    uint32_t counts;
    if (!take_field(st, at, 14, counts))
        return WHARF_REASON_INPUT_TRUNCATED;
    uint32_t n_litlen = (counts & 31) + WHARF_DEFLATE_FIRST_LENGTH;
    uint32_t n_distance = (counts >> 5 & 31) + 1;
    if (n_litlen > WHARF_DEFLATE_N_LITLEN || n_distance > WHARF_DEFLATE_N_DISTANCE)
        return WHARF_REASON_DEFLATE_CODE_COUNT;
    uint32_t reason = read_precode(st, at, (counts >> 10) + 4);
    if (reason == WHARF_REASON_NONE)
        reason = read_lengths(st, at, n_litlen + n_distance);
    if (reason == WHARF_REASON_NONE)
        reason = make_tables(st.s(), n_litlen, n_distance);
    return reason;
}

/* collective.  A coded block with nothing in it becomes a stored one of no bytes: looking for
 * places where symbols begin costs the same for ten bits as for thousands. */
template <typename St>
WHARF_DEVICE void pass_end(St &st, block &b)
{
    uint32_t entry = find_litlen(st.s().litlen, (uint32_t)peek_64(st, b.body));
    if (!litlen_is_end(entry) || entry_nbits(entry) > st.end() - b.body)
        return;
    b.type = WHARF_DEFLATE_STORED;
    b.body += entry_nbits(entry);
}

/* collective.  Reads the header at st.at, which stays; the tables of a coded block are ready then.
 */
template <typename St>
WHARF_DEVICE block parse_header(St &st)
{
    block b = {WHARF_REASON_NONE, 0, 0, 0, st.at, 0};
    uint32_t field;
    if (!take_field(st, b.body, 3, field)) {
        b.reason = WHARF_REASON_INPUT_TRUNCATED;
        return b;
    }
    b.final = field & 1;
    b.type = field >> 1;
    if (b.type == WHARF_DEFLATE_STORED) {
        b.body = (b.body + 7) & ~7u; /* skewed by whole bytes */
        if (!take_field(st, b.body, 32, field))
            b.reason = WHARF_REASON_INPUT_TRUNCATED;
        else if (((field & 0xffff) ^ 0xffff) != field >> 16)
            b.reason = WHARF_REASON_DEFLATE_STORED_LENGTH;
        b.stored_nbytes = field & 0xffff;
    } else if (b.type == WHARF_DEFLATE_FIXED) {
        make_fixed_tables(st.s());
    } else if (b.type == WHARF_DEFLATE_DYNAMIC) {
        b.reason = read_dynamic(st, b.body);
    } else {
        b.reason = WHARF_REASON_DEFLATE_BLOCK_TYPE;
    }
    if (b.reason == WHARF_REASON_NONE && b.type != WHARF_DEFLATE_STORED)
        pass_end(st, b);
    return b;
}

/* The state comes by value: a reference would keep it in memory in the caller's fast path. */
template <typename P>
WHARF_DEVICE_NOINLINE block parse_header_apart(state<P> st)
{
    block b = parse_header(st);
    b.window = st.window;
    return b;
}

/* collective.  The same, kept apart from the code that calls it. */
template <typename P>
WHARF_DEVICE block read_header(state<P> &st)
{
    block b = parse_header_apart(st);
    st.window = uniform(b.window);
    b.reason = uniform(b.reason);
    b.body = uniform(b.body);
    return b;
}

} // namespace flate
} // namespace wharf

#endif
