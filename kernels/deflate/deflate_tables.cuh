/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_tables.cuh: decoding tables of one block, in shared memory, and how the warp makes
 * them from code lengths.
 *
 * A table is a first level of 2^ROOT entries of 16 bits, indexed by the next ROOT bits of the
 * stream, and a rest for longer codes, which are rare (under 1 % of symbols with ROOT 10).  Read
 * most significant bit first and left-justified, all codes of one length are smaller than all
 * longer ones, so the longer ones are the top of the range: the rest is indexed by how far a word
 * is above the first of them.  Should that not fit (long codes that stand for a good part of all
 * symbols), the rest has one entry a code instead, found by comparing lengths.
 *
 * ENTRIES.  Bits 0 to 4 hold how many bits the code takes, extra bits included, so that a shift
 * by the entry itself consumes it (shifts look at the low five bits of their count).
 *   litlen    bits 5 to 7: 0 special, 1 a literal, 2 to 7 a length with 5 to 0 extra bits;
 *             bits 8 to 15: the literal, or the length's front bits, or which special
 *   distance  bits 5 to 9: the number of extra bits; bits 10 and 11: the front bits; bit 14:
 *             special, then bits 8 and 9 say which
 * Front bits f and x extra bits e of Deflate's lengths and distances make one number, f << x | e:
 * length - 3 and distance - 1 are such numbers throughout (RFC 1951 section 3.2.5).
 */
#ifndef WHARF_KERNELS_DEFLATE_TABLES_CUH
#define WHARF_KERNELS_DEFLATE_TABLES_CUH

#include "encoders/deflate/deflate_format.h"
#include "kernels/warp.cuh"

namespace wharf
{
namespace flate
{

constexpr unsigned MAX_CODE_NBITS = WHARF_DEFLATE_MAX_CODE_NBITS;

constexpr uint32_t LITLEN_KIND = 7 << 5;
constexpr uint32_t LITLEN_SPECIAL = 0 << 5;
constexpr uint32_t LITLEN_LITERAL = 1 << 5;
constexpr uint32_t LITLEN_MATCH = 6 << 5; /* one of these bits */
constexpr uint32_t LITLEN_LONG = LITLEN_SPECIAL | 0 << 8;
constexpr uint32_t LITLEN_END = LITLEN_SPECIAL | 1 << 8;
constexpr uint32_t LITLEN_INVALID = LITLEN_SPECIAL | 2 << 8;

constexpr uint32_t DISTANCE_SPECIAL = 1 << 14;
constexpr uint32_t DISTANCE_LONG = DISTANCE_SPECIAL | 0 << 8;
constexpr uint32_t DISTANCE_INVALID = DISTANCE_SPECIAL | 1 << 8;

/* One code of N_SYMBOLS, a multiple of 32; N_REST is at least as much. */
template <unsigned ROOT_NBITS, unsigned N_SYMBOLS, unsigned N_REST>
struct code_table {
    static constexpr unsigned ROOT = ROOT_NBITS;
    static constexpr unsigned N = N_SYMBOLS;
    static constexpr unsigned REST = N_REST;
    static constexpr unsigned N_LONG = MAX_CODE_NBITS - ROOT; /* lengths of longer codes */
    uint16_t root[1 << ROOT];
    uint16_t rest[N_REST];
    uint32_t how; /* bits 0 to 15: the first word of the rest; bits 16 to 20: its words are those of
                     15 bits without so many last ones; or LOOK_LENGTHS */
    /* For LOOK_LENGTHS, of each length from ROOT + 1 on. */
    uint16_t end[N_LONG];    /* one past its last code, left-justified in 15 bits: up to 2^15 */
    uint16_t offset[N_LONG]; /* code + offset, modulo 2^16, is its place in `rest` */
};

constexpr uint32_t LOOK_LENGTHS = 1u << 31;
/* In litlen.how, where no code is longer than ROOT: both tables are those of the fixed codes. */
constexpr uint32_t FIXED_CODES = 1u << 30;

WHARF_DEVICE bool litlen_is_match(uint32_t entry)
{
    return (entry & LITLEN_MATCH) != 0;
}

WHARF_DEVICE bool litlen_is_special(uint32_t entry)
{
    return (entry & LITLEN_KIND) == 0;
}

WHARF_DEVICE bool litlen_is_end(uint32_t entry)
{
    return (entry & ~31u) == LITLEN_END;
}

WHARF_DEVICE uint32_t entry_nbits(uint32_t entry)
{
    return entry & 31;
}

/* The bits that follow those of the entry in (high:word). */
WHARF_DEVICE uint32_t consume(uint32_t word, uint32_t high, uint32_t entry)
{
    return funnel_right(word, high, entry);
}

/* f << x | e of an entry whose extra bits are the last that it takes from `word`. */
WHARF_DEVICE uint32_t entry_sum(uint32_t word, uint32_t entry, uint32_t front, uint32_t n_extra)
{
    /* word << (32 - nbits): the extra bits on top. */
    return funnel_left(funnel_right(0, word, entry), front, n_extra);
}

WHARF_DEVICE uint32_t litlen_n_extra(uint32_t entry)
{
    return ~(entry >> 5) & 7;
}

/* Less WHARF_DEFLATE_MIN_MATCH. */
WHARF_DEVICE uint32_t litlen_length(uint32_t word, uint32_t entry)
{
    return entry_sum(word, entry, entry >> 8, litlen_n_extra(entry));
}

/* Less 1. */
WHARF_DEVICE uint32_t distance_value(uint32_t word, uint32_t entry)
{
    return entry_sum(word, entry, entry >> 10, entry >> 5);
}

/* One lane.  The first-level entry.  (Opaque, the index becomes an address in one instruction.) */
template <typename T>
WHARF_DEVICE uint32_t find_root(const T &table, uint32_t word)
{
    return load(&table.root[opaque(word & ((1u << T::ROOT) - 1))]);
}

/* One lane.  The place in the rest of a word, by looking for its length. */
template <typename T>
WHARF_DEVICE_NOINLINE uint32_t look_lengths(shared_ref<const T> ref, uint32_t code)
{
    const T &table = ref.get();
    unsigned i = 0;
    while (i < T::N_LONG - 1 && code >= load(&table.end[i]))
        i++;
    return ((code >> (T::N_LONG - 1 - i)) + load(&table.offset[i])) & 0xffff;
}

/* One lane.  The entry of a code longer than ROOT at the front of `word`. */
template <typename T>
WHARF_DEVICE uint32_t find_long(const T &table, uint32_t word)
{
    uint32_t how = load(&table.how);
    uint32_t code = brev(word) >> (32 - MAX_CODE_NBITS);
    uint32_t place;
    if (how & LOOK_LENGTHS) {
        shared_ref<const T> ref;
        ref.init(table);
        place = look_lengths(ref, code);
    } else {
        place = (code >> (how >> 16)) - (how & 0xffff);
    }
    /* A complete code has an entry for every word; the bound holds whatever the table is. */
    return load(&table.rest[place < T::REST ? place : 0]);
}

template <typename T>
WHARF_DEVICE uint32_t find_litlen(const T &table, uint32_t word)
{
    uint32_t entry = find_root(table, word);
    if ((entry & ~31u) == LITLEN_LONG)
        entry = find_long(table, word);
    return entry;
}

template <typename T>
WHARF_DEVICE uint32_t find_distance(const T &table, uint32_t word)
{
    uint32_t entry = find_root(table, word);
    if ((entry & ~31u) == DISTANCE_LONG)
        entry = find_long(table, word);
    return entry;
}

/* The entries of symbols whose codes have nbits bits. */
struct litlen_symbols {
    static constexpr uint32_t LONG = LITLEN_LONG;
    static constexpr uint32_t INVALID = LITLEN_INVALID;

    WHARF_DEVICE_MEMBER static uint32_t entry(uint32_t symbol, uint32_t nbits)
    {
        if (symbol < WHARF_DEFLATE_END_OF_BLOCK)
            return LITLEN_LITERAL | nbits | symbol << 8;
        if (symbol == WHARF_DEFLATE_END_OF_BLOCK)
            return LITLEN_END | nbits;
        uint32_t c = symbol - WHARF_DEFLATE_FIRST_LENGTH;
        if (c < 8)
            return nbits | 7 << 5 | c << 8;
        if (c < 28) {
            uint32_t n_extra = (c >> 2) - 1;
            return (nbits + n_extra) | (7 - n_extra) << 5 | (4 + (c & 3)) << 8;
        }
        return nbits | (c == 28 ? 7 << 5 | (WHARF_DEFLATE_MAX_MATCH - WHARF_DEFLATE_MIN_MATCH) << 8
                                : LITLEN_INVALID);
    }
};

struct distance_symbols {
    static constexpr uint32_t LONG = DISTANCE_LONG;
    static constexpr uint32_t INVALID = DISTANCE_INVALID;

    WHARF_DEVICE_MEMBER static uint32_t entry(uint32_t symbol, uint32_t nbits)
    {
        if (symbol >= WHARF_DEFLATE_N_DISTANCE)
            return DISTANCE_INVALID | nbits;
        if (symbol < 2)
            return nbits | symbol << 10;
        uint32_t n_extra = (symbol >> 1) - 1;
        return (nbits + n_extra) | n_extra << 5 | (2 + (symbol & 1)) << 10;
    }
};

/* What the warp needs beside the table while it makes it. */
struct build_scratch {
    uint16_t count[MAX_CODE_NBITS + 1]; /* codes of each length */
    uint16_t first[MAX_CODE_NBITS + 1]; /* the first code of each length */
    uint16_t next[MAX_CODE_NBITS + 1];  /* codes of each length that have been entered */
};

/* collective.  Where the codes of each length begin, and how to find longer ones.  Synchronises
 * at its end. */
template <typename T>
WHARF_DEVICE void place_codes(T &table, build_scratch &scratch)
{
    unsigned lane = lane_id();
    uint32_t count = lane >= 1 && lane <= MAX_CODE_NBITS ? load(&scratch.count[lane]) : 0;
    /* Left-justified in 15 bits, codes follow one another without a gap. */
    uint32_t end = inclusive_add(lane <= MAX_CODE_NBITS ? count << ((15 - lane) & 15) : 0);
    uint32_t n_longer = inclusive_add(lane > T::ROOT ? count : 0);
    uint32_t first = lane <= MAX_CODE_NBITS ? (end >> (15 - lane)) - count : 0;
    if (lane >= 1 && lane <= MAX_CODE_NBITS)
        store(&scratch.first[lane], (uint16_t)first);
    if (lane > T::ROOT && lane <= MAX_CODE_NBITS) {
        store(&table.end[lane - T::ROOT - 1], (uint16_t)end);
        store(&table.offset[lane - T::ROOT - 1], (uint16_t)(n_longer - count - first));
    }
    uint32_t n_unused = MAX_CODE_NBITS - (31 - clz(ballot(count != 0) | 1));
    uint32_t first_long = shfl(end, T::ROOT) >> n_unused;
    bool fits = (1u << MAX_CODE_NBITS >> n_unused) - first_long <= T::REST;
    if (lane == 0)
        store(&table.how, fits ? first_long | n_unused << 16 : LOOK_LENGTHS);
    syncwarp();
}

/* collective.  Enters the symbol of each lane whose code is short, one after the other, each by
 * all lanes. */
template <typename T>
WHARF_DEVICE void fill_short(T &table, uint32_t nbits, uint32_t reversed, uint32_t entry)
{
    constexpr unsigned SHORT = T::ROOT - 5; /* 32 places or more in the table */
    uint32_t left = ballot(nbits >= 1 && nbits <= SHORT);
    while (left) {
        unsigned from = first_lane(left);
        left &= left - 1;
        uint32_t both = shfl(reversed << 16 | entry, from);
        unsigned n = shfl(nbits, from);
        for (uint32_t i = lane_id(); i < 1u << (T::ROOT - n); i += 32)
            store(&table.root[(both >> 16) + (i << n)], (uint16_t)both);
    }
}

/* One lane.  Enters one symbol with a code longer than ROOT. */
template <typename T>
WHARF_DEVICE void fill_rest(T &table, uint32_t nbits, uint32_t code, uint32_t entry)
{
    uint32_t how = load(&table.how);
    uint32_t place = (code + load(&table.offset[nbits - T::ROOT - 1])) & 0xffff;
    uint32_t n = 1;
    if (!(how & LOOK_LENGTHS)) {
        uint32_t n_free = MAX_CODE_NBITS - (how >> 16) - nbits;
        place = (code << n_free) - (how & 0xffff);
        n = 1u << n_free;
    }
    for (uint32_t i = 0; i < n && place + i < T::REST; i++)
        store(&table.rest[place + i], (uint16_t)entry);
}

/* One lane.  Enters one symbol with a code of SHORT + 1 or more bits. */
template <typename T>
WHARF_DEVICE void fill_one(T &table, uint32_t nbits, uint32_t code, uint32_t reversed,
                           uint32_t entry)
{
    constexpr unsigned SHORT = T::ROOT - 5;
    if (nbits > T::ROOT)
        fill_rest(table, nbits, code, entry);
    else if (nbits > SHORT)
        for (uint32_t i = reversed; i < 1u << T::ROOT; i += 1u << nbits)
            store(&table.root[i], (uint16_t)entry);
}

/* collective.  Adds up, in 16 bits for each, how often lanes have each number of bits.  Gives a
 * lane its rank among those with the same.  Synchronises before and after it stores. */
WHARF_DEVICE uint32_t count_lengths(uint16_t *counts, uint32_t nbits)
{
    uint32_t same = match_any(nbits);
    uint32_t before = load(&counts[nbits]);
    syncwarp();
    if ((same & lanemask_lt()) == 0)
        store(&counts[nbits], (uint16_t)(before + popc(same)));
    syncwarp();
    return before + popc(same & lanemask_lt());
}

/*
 * collective.  Makes a table from n code lengths, 0 to 15 and 0 for a symbol without code.  False:
 * over-subscribed, or incomplete and not one of the two cases that are allowed, one code of one
 * bit, and none (for distances).  What it reads must be there (syncwarp); synchronises at its end.
 *
 * Its loops stay loops: unrolled they are 50 KiB of code, which a chunk that is alone on its
 * multiprocessor fetches for the first time.
 */
template <typename S, typename T>
WHARF_DEVICE_NOINLINE bool build_table(shared_ref<T> table_ref, shared_ref<build_scratch> ref,
                                       shared_ref<uint8_t> lengths_ref, uint32_t n,
                                       bool none_allowed)
{
    T &table = table_ref.get();
    build_scratch &scratch = ref.get();
    const uint8_t *lengths = &lengths_ref.get();
    unsigned lane = lane_id();
    auto length = [&](uint32_t symbol) { return symbol < n ? load(lengths + symbol) : 0u; };
    uint32_t space = 0, n_codes = 0;
    if (lane <= MAX_CODE_NBITS) {
        store(&scratch.count[lane], (uint16_t)0);
        store(&scratch.next[lane], (uint16_t)0);
    }
    syncwarp();
    WHARF_NO_UNROLL
    for (uint32_t c = 0; c < T::N; c += 32) {
        uint32_t nbits = length(c + lane);
        space += nbits ? 1u << (MAX_CODE_NBITS - nbits) : 0;
        n_codes += nbits != 0;
        count_lengths(scratch.count, nbits);
    }
    space = reduce_add(space);
    if (space != 1u << MAX_CODE_NBITS) {
        n_codes = reduce_add(n_codes);
        bool one_bit_alone = n_codes == 1 && space == 1u << (MAX_CODE_NBITS - 1);
        if (!one_bit_alone && !(n_codes == 0 && none_allowed))
            return false;
        for (uint32_t i = lane; i < 1u << T::ROOT; i += 32)
            store(&table.root[i], (uint16_t)(S::INVALID | 1));
    }
    place_codes(table, scratch);
    /* Words of the root table that begin longer codes: the last ones in code order. */
    uint32_t n_root = load(&scratch.first[T::ROOT]) + load(&scratch.count[T::ROOT]);
    if (space == 1u << MAX_CODE_NBITS)
        for (uint32_t i = n_root + lane; i < 1u << T::ROOT; i += 32)
            store(&table.root[brev(i) >> (32 - T::ROOT)], (uint16_t)S::LONG);
    WHARF_NO_UNROLL
    for (uint32_t c = 0; c < T::N; c += 32) {
        uint32_t nbits = length(c + lane);
        uint32_t code = load(&scratch.first[nbits]) + count_lengths(scratch.next, nbits);
        uint32_t reversed = nbits ? brev(code) >> (32 - nbits) : 0;
        uint32_t entry = S::entry(c + lane, nbits);
        fill_short(table, nbits, reversed, entry);
        fill_one(table, nbits, code, reversed, entry);
    }
    syncwarp();
    return true;
}

} // namespace flate
} // namespace wharf

#endif
