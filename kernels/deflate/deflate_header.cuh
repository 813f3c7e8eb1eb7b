/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_header.cuh: reads block headers (RFC 1951, 3.2.3 to 3.2.7) and makes their tables.
 *
 * Checks run in the order of encoders/deflate/deflate_format.h.  Every error of a header is
 * reported at the header's first bit, so positions inside a header never leave this file.
 */
#ifndef WHARF_KERNELS_DEFLATE_HEADER_CUH
#define WHARF_KERNELS_DEFLATE_HEADER_CUH

#include "kernels/deflate/deflate_exact.cuh"

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

/* Reads n bits at `at`, lowest first, and advances it.  False: the input ends before them. */
template <typename St>
WHARF_DEVICE bool take_field(St &st, uint32_t &at, unsigned n, uint32_t &ret)
{
    uint32_t end = st.end();
    uint64_t bits = peek_64(st, at);
    if (at > end || end - at < n)
        return false;
    ret = uniform(low_bits((uint32_t)bits, n));
    at += n;
    return true;
}

/* A symbol's index in WHARF_DEFLATE_PRECODE_ORDER (16, 17, 18, 0, 8, 7, 9, 6, 10 ...); 19 or more
 * if it has none. */
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
 * collective.  Reads the n lengths of the code length code at `at` and makes its table, indexed by
 * the next 7 bits.  An entry has the code's length in bits 0 to 2 and the symbol in bits 3 to 7.
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
    /* Lane i takes symbol i's length, which is at this index in the header: */
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

/* The progress in reading code lengths. */
struct lengths_cursor {
    uint32_t at;
    uint32_t i;    /* so many are there */
    uint32_t last; /* the last one of them, but for repeats of zero */
};

/*
 * collective.  Reads up to n code lengths and stops before anything unusual.  Stores those that are
 * not zero.  Each lane decodes the symbol that would begin at one of the next 32 bits; then the
 * chain of true symbols is followed from the first bit.
 */
template <typename P>
WHARF_DEVICE void read_most_lengths(state<P> &st, lengths_cursor &c, uint32_t n)
{
    header_scratch &h = st.s().header;
    unsigned lane = lane_id();
    while (c.i < n) {
        uint32_t word = peek_at_lanes(st, c.at);
        uint32_t entry = load(&h.precode[word & 127]);
        uint32_t symbol = entry >> 3;
        uint32_t nbits = entry & 7;
        uint32_t n_extra = symbol < 16 ? 0 : symbol == 18 ? 7 : symbol - 14;
        uint32_t extra = low_bits(word >> nbits, n_extra);
        uint32_t repeat = symbol < 16 ? 1 : extra + (symbol == 18 ? 11 : 3);
        uint32_t next = lane + nbits + n_extra;
        uint32_t chain = 0;
        for (uint32_t p = 0; p < 32; p = uniform(shfl(next, p)))
            chain |= 1u << p;
        bool mine = chain >> lane & 1;
        uint32_t behind = c.i + inclusive_add(mine ? repeat : 0);
        uint32_t place = behind - repeat;
        mine = mine && place < n;
        bool odd = c.at + next > st.end() || behind > n || (symbol == 16 && place == 0);
        if (any_lane(mine && odd))
            return;
        /* A repeat takes the value of the last symbol before it that is no repeat. */
        uint32_t own = symbol < 16 ? symbol : 0;
        uint32_t owners = ballot(mine && symbol != 16);
        uint32_t before = owners & lanemask_lt();
        uint32_t repeated = shfl(own, 31 - clz(before | 1));
        uint32_t value = symbol != 16 ? own : before ? repeated : c.last;
        if (mine && value)
            for (uint32_t k = 0; k < repeat; k++)
                store(&h.nbits[place + k], (uint8_t)value);
        unsigned final = 31 - clz(ballot(mine));
        c.at += uniform(shfl(next, final));
        c.i = uniform(shfl(behind, final));
        c.last = uniform(shfl(value, final));
    }
}

/* The serial decoders have no parallel path. */
template <typename St>
WHARF_DEVICE void read_most_lengths(St &, lengths_cursor &, uint32_t)
{
}

/* collective.  Reads n code lengths at `at` into h.nbits. */
template <typename St>
WHARF_DEVICE uint32_t read_lengths(St &st, uint32_t &ret_at, uint32_t n)
{
    header_scratch &h = st.s().header;
    uint32_t end = st.end();
    lengths_cursor c = {ret_at, 0, 0};
    for (uint32_t k = lane_id(); k < sizeof(h.nbits) / 4; k += 32)
        store(reinterpret_cast<uint32_t *>(h.nbits) + k, 0u);
    syncwarp();
    read_most_lengths(st, c, n);
    uint32_t at = c.at;
    uint32_t last = c.last;
    for (uint32_t i = c.i; i < n;) {
        uint32_t word = uniform((uint32_t)peek_64(st, at));
        uint32_t left = end > at ? end - at : 0;
        uint32_t entry = uniform(load(&h.precode[word & 127]));
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
    ret_at = at;
    syncwarp();
    return WHARF_REASON_NONE;
}

/* collective.  build_table() for tables in shared memory. */
template <typename S, typename T>
WHARF_DEVICE bool build(T &table, build_scratch &scratch, uint8_t *lengths, uint32_t n,
                        bool none_allowed)
{
    shared_ref<T> table_ref;
    shared_ref<build_scratch> scratch_ref;
    shared_ref<uint8_t> lengths_ref;
    table_ref.init(table);
    scratch_ref.init(scratch);
    lengths_ref.init(*lengths);
    return any_lane(build_table<S>(table_ref, scratch_ref, lengths_ref, n, none_allowed));
}

/* collective.  Makes both tables from the n_litlen and n_distance lengths in h.nbits. */
template <typename Shared>
WHARF_DEVICE uint32_t make_tables(Shared &s, uint32_t n_litlen, uint32_t n_distance)
{
    header_scratch &h = s.header;
    if (uniform(load(&h.nbits[WHARF_DEFLATE_END_OF_BLOCK])) == 0)
        return WHARF_REASON_DEFLATE_NO_END;
    if (!build<litlen_symbols>(s.litlen, h.build, h.nbits, n_litlen, false))
        return WHARF_REASON_DEFLATE_LITLEN_CODE;
    if (!build<distance_symbols>(s.distance, h.build, h.nbits + n_litlen, n_distance, true))
        return WHARF_REASON_DEFLATE_DISTANCE_CODE;
    return WHARF_REASON_NONE;
}

/* collective.  Makes the tables of the fixed codes, unless they are in place.  Without that check,
 * a chunk of empty fixed blocks, of ten bits each, would be the slowest of all chunks. */
template <typename Shared>
WHARF_DEVICE void make_fixed_tables(Shared &s)
{
    static_assert(decltype(s.litlen)::ROOT >= 9, "no fixed code is longer, so litlen.how is free");
    if (uniform(load(&s.litlen.how)) == FIXED_CODES)
        return;
    header_scratch &h = s.header;
    syncwarp(); /* the tokens' readers are done */
    for (uint32_t symbol = lane_id(); symbol < 288; symbol += 32)
        store(&h.nbits[symbol], (uint8_t)(symbol < 144   ? 8
                                          : symbol < 256 ? 9
                                          : symbol < 280 ? 7
                                                         : 8));
    store(&h.nbits[288 + lane_id()], (uint8_t)5);
    syncwarp();
    build<litlen_symbols>(s.litlen, h.build, h.nbits, 288, false);
    build<distance_symbols>(s.distance, h.build, h.nbits + 288, 32, true);
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

/* collective.  Turns an empty coded block into a stored one of no bytes: finding symbol starts
 * costs the same for ten bits as for thousands. */
template <typename St>
WHARF_DEVICE void pass_end(St &st, block &b)
{
    uint32_t entry = find_litlen(st.s().litlen, (uint32_t)peek_64(st, b.body));
    if (!litlen_is_end(entry) || entry_nbits(entry) > st.end() - b.body)
        return;
    b.type = WHARF_DEFLATE_STORED;
    b.body += entry_nbits(entry);
}

/* collective.  Reads the header at st.at, which stays.  Makes the tables of a coded block. */
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

/* Takes the state by value: a reference would force it into memory in the caller's fast path. */
template <typename P>
WHARF_DEVICE_NOINLINE block parse_header_apart(state<P> st)
{
    block b = parse_header(st);
    b.window = st.window;
    return b;
}

/* collective.  The same, not inlined. */
template <typename P>
WHARF_DEVICE block read_header(state<P> &st)
{
    block b = parse_header_apart(st);
    st.window = uniform(b.window);
    b.reason = uniform(b.reason);
    b.body = uniform(b.body);
    b.type = uniform(b.type);
    b.final = uniform(b.final);
    b.stored_nbytes = uniform(b.stored_nbytes);
    return b;
}

} // namespace flate
} // namespace wharf

#endif
