/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deflate_tables.cuh: decoding tables of one block, in shared memory, and how the warp makes
 * them from code lengths.
 *
 * A table is one level of 2^ROOT entries of 16 bits, indexed by the next ROOT bits of the stream.
 * Codes longer than ROOT are found by comparison, as canonical codes allow: read most significant
 * bit first and left-justified, all codes of one length are smaller than all longer ones.  They
 * are rare (DESIGN: under 1 % of symbols with ROOT 10), and a second level would cost shared
 * memory that is worth more as further warps.
 *
 * ENTRIES.  Bits 0 to 4 hold how many bits the code takes, extra bits included, so that a shift
 * by the entry itself consumes it (shifts look at the low five bits of their count).
 *   litlen    bits 5 to 7: 0 to 5 a length with so many extra bits, 6 a literal, 7 special;
 *             bits 8 to 15: the literal, or the length's front bits, or which special
 *   distance  bits 5 to 9: the number of extra bits; bits 10 and 11: the front bits; bit 15:
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
constexpr uint32_t LITLEN_LITERAL = 6 << 5;
constexpr uint32_t LITLEN_SPECIAL = 7 << 5;
constexpr uint32_t LITLEN_LONG = LITLEN_SPECIAL | 0 << 8;
constexpr uint32_t LITLEN_END = LITLEN_SPECIAL | 1 << 8;
constexpr uint32_t LITLEN_INVALID = LITLEN_SPECIAL | 2 << 8;

constexpr uint32_t DISTANCE_SPECIAL = 1 << 15;
constexpr uint32_t DISTANCE_LONG = DISTANCE_SPECIAL | 0 << 8;
constexpr uint32_t DISTANCE_INVALID = DISTANCE_SPECIAL | 1 << 8;

/* One code.  N_SYMBOLS is a multiple of 32. */
template <unsigned ROOT_NBITS, unsigned N_SYMBOLS>
struct code_table {
    static constexpr unsigned ROOT = ROOT_NBITS;
    static constexpr unsigned N = N_SYMBOLS;
    uint16_t root[1 << ROOT_NBITS];
    uint16_t rest[N_SYMBOLS];            /* entries of codes longer than ROOT, in code order */
    uint16_t end[MAX_CODE_NBITS + 1];    /* of each length > ROOT: one past its last code, left-
                                            justified in 15 bits, so up to 2^15 */
    uint16_t offset[MAX_CODE_NBITS + 1]; /* code + offset, modulo 2^16, is its place in `rest` */
};

WHARF_DEVICE bool litlen_is_match(uint32_t entry)
{
    return (entry & LITLEN_KIND) < LITLEN_LITERAL;
}

WHARF_DEVICE bool litlen_is_special(uint32_t entry)
{
    return (entry & LITLEN_KIND) == LITLEN_SPECIAL;
}

WHARF_DEVICE bool litlen_is_end(uint32_t entry)
{
    return (entry & ~31u) == LITLEN_END;
}

WHARF_DEVICE uint32_t entry_nbits(uint32_t entry)
{
    return entry & 31;
}

/* `word` without the bits that the entry takes: its high bits are then zero. */
WHARF_DEVICE uint32_t consume(uint32_t word, uint32_t entry)
{
    return funnel_right(word, 0, entry);
}

/* f << x | e of an entry whose extra bits are the last that it takes from `word`. */
WHARF_DEVICE uint32_t entry_sum(uint32_t word, uint32_t entry, uint32_t front, uint32_t n_extra)
{
    uint32_t extra_on_top = funnel_left(0, word, 0 - entry); /* word << (32 - nbits), 1 <= nbits */
    return funnel_left(extra_on_top, front, n_extra);
}

WHARF_DEVICE uint32_t litlen_length(uint32_t word, uint32_t entry)
{
    return WHARF_DEFLATE_MIN_MATCH + entry_sum(word, entry, entry >> 8, entry >> 5 & 7);
}

WHARF_DEVICE uint32_t distance_value(uint32_t word, uint32_t entry)
{
    return 1 + entry_sum(word, entry, entry >> 10, entry >> 5);
}

/* One lane.  The entry of a code longer than ROOT at the front of `word`. */
template <typename T>
WHARF_DEVICE uint32_t find_long(const T &table, uint32_t word)
{
    uint32_t code = brev(word) >> (32 - MAX_CODE_NBITS);
    unsigned nbits = T::ROOT + 1;
    WHARF_UNROLL
    for (unsigned n = T::ROOT + 1; n < MAX_CODE_NBITS; n++)
        nbits += code >= load(&table.end[n]);
    uint32_t place = (code >> (MAX_CODE_NBITS - nbits)) + load(&table.offset[nbits]);
    /* A complete code has an entry for every word; the bound holds whatever the table is. */
    place &= 0xffff;
    return load(&table.rest[place < T::N ? place : 0]);
}

template <typename T>
WHARF_DEVICE uint32_t find_litlen(const T &table, uint32_t word)
{
    uint32_t entry = load(&table.root[word & ((1u << T::ROOT) - 1)]);
    if ((entry & ~31u) == LITLEN_LONG)
        entry = find_long(table, word);
    return entry;
}

template <typename T>
WHARF_DEVICE uint32_t find_distance(const T &table, uint32_t word)
{
    uint32_t entry = load(&table.root[word & ((1u << T::ROOT) - 1)]);
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
            return nbits | c << 8;
        if (c < 28) {
            uint32_t n_extra = (c >> 2) - 1;
            return (nbits + n_extra) | n_extra << 5 | (4 + (c & 3)) << 8;
        }
        return c == 28 ? nbits | (WHARF_DEFLATE_MAX_MATCH - WHARF_DEFLATE_MIN_MATCH) << 8
                       : LITLEN_INVALID | nbits;
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
};

/*
 * collective.  Counts the codes of each length into scratch.count and gives each symbol its rank
 * among those of its length.  ranks[c] is for symbol 32 * c + lane.  Synchronises at its end.
 */
template <unsigned N>
WHARF_DEVICE void rank_symbols(build_scratch &scratch, const uint32_t (&nbits)[N / 32],
                               uint32_t (&ranks)[N / 32])
{
    unsigned lane = lane_id();
    if (lane <= MAX_CODE_NBITS)
        store(&scratch.count[lane], (uint16_t)0);
    syncwarp();
    WHARF_UNROLL
    for (unsigned c = 0; c < N / 32; c++) {
        uint32_t same = match_any(nbits[c]);
        uint32_t before = load(&scratch.count[nbits[c]]);
        ranks[c] = before + popc(same & lanemask_lt());
        syncwarp();
        if ((same & lanemask_lt()) == 0)
            store(&scratch.count[nbits[c]], (uint16_t)(before + popc(same)));
        syncwarp();
    }
}

/* collective.  Where the codes of each length begin, and the bounds that find_long() needs.
 * Synchronises at its end. */
template <typename T>
WHARF_DEVICE void place_codes(T &table, build_scratch &scratch)
{
    unsigned lane = lane_id();
    uint32_t count = lane >= 1 && lane <= MAX_CODE_NBITS ? load(&scratch.count[lane]) : 0;
    /* Left-justified in 15 bits, codes follow one another without a gap; a code that is not
     * complete may sum up to anything below 2^15 and more than that has been refused. */
    uint32_t end = inclusive_add(lane <= MAX_CODE_NBITS ? count << ((15 - lane) & 15) : 0);
    uint32_t n_longer = inclusive_add(lane > T::ROOT ? count : 0);
    if (lane >= 1 && lane <= MAX_CODE_NBITS) {
        uint32_t first = (end >> (15 - lane)) - count;
        store(&scratch.first[lane], (uint16_t)first);
        store(&table.end[lane], (uint16_t)end);
        store(&table.offset[lane], (uint16_t)(n_longer - count - first));
    }
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

/* One lane.  Enters one symbol with a code of SHORT + 1 or more bits. */
template <typename T>
WHARF_DEVICE void fill_one(T &table, uint32_t nbits, uint32_t code, uint32_t reversed,
                           uint32_t entry)
{
    constexpr unsigned SHORT = T::ROOT - 5;
    if (nbits > T::ROOT) {
        uint32_t place = (code + load(&table.offset[nbits])) & 0xffff;
        store(&table.rest[place < T::N ? place : 0], (uint16_t)entry);
    } else if (nbits > SHORT) {
        for (uint32_t i = reversed; i < 1u << T::ROOT; i += 1u << nbits)
            store(&table.root[i], (uint16_t)entry);
    }
}

/*
 * collective.  Makes a table from code lengths, nbits[c] for symbol 32 * c + lane, 0 to 15 and 0
 * for a symbol without code.  False: over-subscribed, or incomplete and not one of the two cases
 * that are allowed, one code of one bit, and none (for distances).  Synchronises at its end.
 */
template <typename S, typename T>
WHARF_DEVICE_NOINLINE bool build_table(T &table, build_scratch &scratch,
                                       const uint32_t (&nbits)[T::N / 32], bool none_allowed)
{
    uint32_t ranks[T::N / 32];
    uint32_t space = 0, n_codes = 0;
    WHARF_UNROLL
    for (unsigned c = 0; c < T::N / 32; c++) {
        space += nbits[c] ? 1u << (MAX_CODE_NBITS - nbits[c]) : 0;
        n_codes += nbits[c] != 0;
    }
    space = reduce_add(space);
    if (space != 1u << MAX_CODE_NBITS) {
        n_codes = reduce_add(n_codes);
        bool one_bit_alone = n_codes == 1 && space == 1u << (MAX_CODE_NBITS - 1);
        if (!one_bit_alone && !(n_codes == 0 && none_allowed))
            return false;
        for (uint32_t i = lane_id(); i < 1u << T::ROOT; i += 32)
            store(&table.root[i], (uint16_t)(S::INVALID | 1));
    }
    rank_symbols<T::N>(scratch, nbits, ranks);
    place_codes(table, scratch);
    /* Words of the root table that begin longer codes: the last ones in code order. */
    uint32_t first_long = load(&table.end[T::ROOT]) >> (MAX_CODE_NBITS - T::ROOT);
    if (space == 1u << MAX_CODE_NBITS)
        for (uint32_t i = first_long + lane_id(); i < 1u << T::ROOT; i += 32)
            store(&table.root[brev(i) >> (32 - T::ROOT)], (uint16_t)S::LONG);
    WHARF_UNROLL
    for (unsigned c = 0; c < T::N / 32; c++) {
        uint32_t code = load(&scratch.first[nbits[c]]) + ranks[c];
        uint32_t reversed = nbits[c] ? brev(code) >> (32 - nbits[c]) : 0;
        uint32_t entry = S::entry(32 * c + lane_id(), nbits[c]);
        fill_short(table, nbits[c], reversed, entry);
        fill_one(table, nbits[c], code, reversed, entry);
    }
    syncwarp();
    return true;
}

} // namespace flate
} // namespace wharf

#endif
