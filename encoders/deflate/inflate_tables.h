/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_tables.h: the CPU inflater's decoding tables.  Internal to encoders/.
 *
 * A table of 2^n entries is indexed by the next n bits of the source.  Codes longer than n bits
 * go through a second table that lies behind the first.  An entry has 32 bits:
 *
 *     0..7    bits to take: the code word, and the extra bits of a length or distance
 *     8..11   bits of the code word alone (at most 15)
 *     12..15  flags
 *     16..31  value: the literal (and in the high byte a second one), the base of the length or
 *             distance
 *
 * so that with w the next bits of the source, a length or distance is
 * value + (low_bits(w, bits to take) >> code bits).  An entry that points to a second table has
 * the first table's width as code bits, that and the second one's as bits to take, and the
 * second one's index as value: the same sum is the index of the entry to go on with.
 */
#ifndef WHARF_ENCODERS_DEFLATE_INFLATE_TABLES_H
#define WHARF_ENCODERS_DEFLATE_INFLATE_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "encoders/deflate/deflate_format.h"
#include "encoders/deflate/inflate_bits.h"

#define WHARF_ENTRY_LITERAL 0x8000u  /* one literal or two */
#define WHARF_ENTRY_PAIR 0x4000u     /* two; the code bits are those of the first */
#define WHARF_ENTRY_SPECIAL 0x2000u  /* not a literal, length or distance, but ... */
#define WHARF_ENTRY_SUBTABLE 0x1000u /* ... a pointer to a second table, */
#define WHARF_ENTRY_END 0u           /* ... the end of the block (by its value), */
#define WHARF_ENTRY_INVALID 1u       /* ... or no symbol at all (by its value) */

/* Widths of the first tables, and the widths of the longest second ones. */
#define WHARF_LITLEN_TABLE_NBITS 11
#define WHARF_DISTANCE_TABLE_NBITS 8
#define WHARF_LITLEN_SUBTABLE_NBITS (WHARF_DEFLATE_MAX_CODE_NBITS - WHARF_LITLEN_TABLE_NBITS)
#define WHARF_DISTANCE_SUBTABLE_NBITS (WHARF_DEFLATE_MAX_CODE_NBITS - WHARF_DISTANCE_TABLE_NBITS)

/*
 * Most entries in second tables.  One of 2^k entries holds a whole binary tree of depth k, so at
 * least k + 1 code words; 2^k / (k + 1) entries a word grows with k, so with n words there are at
 * most n * 2^k / (k + 1) entries for the greatest k.
 */
#define WHARF_SUBTABLE_ENTRIES(n, k) ((n) * (1 << (k)) / ((k) + 1))

#define WHARF_LITLEN_ENTRIES                                                                       \
    ((1 << WHARF_LITLEN_TABLE_NBITS) +                                                             \
     WHARF_SUBTABLE_ENTRIES(WHARF_DEFLATE_N_LITLEN_FIXED, WHARF_LITLEN_SUBTABLE_NBITS))
#define WHARF_DISTANCE_ENTRIES                                                                     \
    ((1 << WHARF_DISTANCE_TABLE_NBITS) +                                                           \
     WHARF_SUBTABLE_ENTRIES(WHARF_DEFLATE_N_DISTANCE_FIXED, WHARF_DISTANCE_SUBTABLE_NBITS))

struct wharf_inflate_tables {
    uint32_t litlen[WHARF_LITLEN_ENTRIES];
    uint32_t distance[WHARF_DISTANCE_ENTRIES];
    unsigned litlen_nbits; /* widths of the first tables as they are now */
    unsigned distance_nbits;
    bool fixed; /* they are those of the fixed code */
};

static inline unsigned wharf_entry_nbits(uint32_t entry)
{
    return entry & 0xff;
}

static inline unsigned wharf_entry_code_nbits(uint32_t entry)
{
    return entry >> 8 & 15;
}

static inline uint32_t wharf_entry_value(uint32_t entry)
{
    return entry >> 16;
}

/* Base and extra bits of a length or distance, or the index in a second table. */
static inline uint32_t wharf_entry_sum(uint32_t entry, uint64_t word)
{
    return wharf_entry_value(entry) + (uint32_t)(wharf_low_bits(word, wharf_entry_nbits(entry)) >>
                                                 wharf_entry_code_nbits(entry));
}

/*
 * Builds the tables of a dynamic block from its code lengths, litlen first.  Returns NONE,
 * DEFLATE_LITLEN_CODE or DEFLATE_DISTANCE_CODE; on failure the tables are undefined.
 */
uint32_t wharf_inflate_tables_dynamic(struct wharf_inflate_tables *tables,
                                      const uint8_t *litlen_lengths, unsigned n_litlen,
                                      const uint8_t *distance_lengths, unsigned n_distance);

/* Makes the tables those of the fixed code, if they are not. */
void wharf_inflate_tables_fixed(struct wharf_inflate_tables *tables);

/* The code length code: entry of the next 7 bits is symbol * 8 + bits to take. */
#define WHARF_PRECODE_ENTRIES (1 << WHARF_DEFLATE_MAX_PRECODE_NBITS)

/* Returns NONE or DEFLATE_PRECODE. */
uint32_t wharf_inflate_precode_table(uint8_t table[WHARF_PRECODE_ENTRIES],
                                     const uint8_t lengths[WHARF_DEFLATE_N_PRECODE]);

#endif
