/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_entry.h: an entry of the CPU inflater's decoding tables.  Internal to encoders/.
 *
 * The litlen table is looked up with the next bits of the source.  One look-up is one step, and
 * yields as many symbols as the table is wide enough for: two literals, a literal and a length, a
 * length and its distance, or a literal and both.  Codes longer than the table is wide go through
 * a second table that lies behind the first; so do those of the distance table, which serves the
 * lengths that come without a distance.
 *
 * An entry has 32 bits.  Those to take are always in the lowest six, so that the next step's bits
 * are known before the kind of this one is looked at:
 *
 *     0..5    bits to take, extra bits included
 *     6       FULL: a match with its distance; without this and LITERAL, a length alone
 *     7       LITERAL: one literal or two, no match
 *     8..12   a literal: the number of literals; FULL: the distance symbol; a length or distance,
 *             or a pointer: bits to take before the extra bits begin
 *     13      MORE: before the match comes a literal
 *     14      SUBTABLE: SPECIAL, and a pointer to a second table
 *     15      SPECIAL: none of all these: the end of the block, no symbol at all, or a pointer
 *     16..23  the literal, or the first one
 *     24..31  the second literal; of a match the length less 3, without its extra bits unless FULL
 *
 * Pointers and entries of the distance table have a value in 16..31, the index or the distance
 * without its extra bits; the end and no symbol differ in it.  With w the bits of the source,
 * value + (low_bits(w, bits to take) >> bits before) is the distance, or the index of the entry
 * to go on with.
 */
#ifndef WHARF_ENCODERS_DEFLATE_INFLATE_ENTRY_H
#define WHARF_ENCODERS_DEFLATE_INFLATE_ENTRY_H

#include <stdint.h>

#include "encoders/deflate/deflate_format.h"
#include "encoders/deflate/inflate_bits.h"

#define WHARF_ENTRY_FULL 0x40u
#define WHARF_ENTRY_LITERAL 0x80u
#define WHARF_ENTRY_MORE 0x2000u
#define WHARF_ENTRY_SUBTABLE 0x4000u
#define WHARF_ENTRY_SPECIAL 0x8000u
#define WHARF_ENTRY_END 0u /* values of special entries */
#define WHARF_ENTRY_INVALID 1u
/* Whole ones, but for the bits of their codes. */
#define WHARF_ENTRY_OF_END (WHARF_ENTRY_SPECIAL | WHARF_ENTRY_END << 16)
#define WHARF_ENTRY_OF_INVALID (WHARF_ENTRY_SPECIAL | WHARF_ENTRY_INVALID << 16)

/*
 * Widths of the first tables.  The litlen table is 8 KiB so, a quarter of a first-level cache that
 * output and window need as well; the distance table 1 KiB.
 */
#define WHARF_LITLEN_TABLE_NBITS 11
#define WHARF_DISTANCE_TABLE_NBITS 8
#define WHARF_LITLEN_SUBTABLE_NBITS (WHARF_DEFLATE_MAX_CODE_NBITS - WHARF_LITLEN_TABLE_NBITS)
#define WHARF_DISTANCE_SUBTABLE_NBITS (WHARF_DEFLATE_MAX_CODE_NBITS - WHARF_DISTANCE_TABLE_NBITS)

/* Entries by symbol, but for the bits of the code. */
extern const uint32_t wharf_inflate_litlen_templates[WHARF_DEFLATE_N_LITLEN_FIXED];

/* Distances without their extra bits, and the number of those, by bits 8..13 of a FULL entry: by
 * distance symbol, whether MORE or not. */
extern const uint32_t wharf_inflate_distances[64];

static inline unsigned wharf_entry_nbits(uint32_t entry)
{
    return entry & 0x3f;
}

static inline unsigned wharf_entry_code_nbits(uint32_t entry)
{
    return entry >> 8 & 15;
}

static inline uint32_t wharf_entry_value(uint32_t entry)
{
    return entry >> 16;
}

/* The extra bits of a length or distance whose code is at the front of `word`. */
static inline uint32_t wharf_entry_extra(uint32_t entry, uint64_t word)
{
    return (uint32_t)(wharf_low_bits(word, wharf_entry_nbits(entry)) >>
                      wharf_entry_code_nbits(entry));
}

/* The entry of the code at the front of `word` that goes on behind a pointer. */
static inline uint32_t wharf_entry_follow(const uint32_t *table, uint32_t pointer, uint64_t word)
{
    return table[wharf_entry_value(pointer) + wharf_entry_extra(pointer, word)];
}

/* The entry of a symbol whose template is `entry` and whose code has nbits. */
static inline uint32_t wharf_inflate_entry(uint32_t entry, unsigned nbits)
{
    entry += nbits;
    return entry & WHARF_ENTRY_LITERAL ? entry : entry | nbits << 8;
}

#endif
