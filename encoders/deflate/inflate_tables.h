/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_tables.h: the CPU inflater's decoding tables, of entries as inflate_entry.h has them.
 * Internal to encoders/.
 */
#ifndef WHARF_ENCODERS_DEFLATE_INFLATE_TABLES_H
#define WHARF_ENCODERS_DEFLATE_INFLATE_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "encoders/deflate/deflate_format.h"
#include "encoders/deflate/inflate_code.h"
#include "encoders/deflate/inflate_entry.h"

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
    unsigned litlen_nbits;             /* width of the first litlen table as it is now */
    struct wharf_code_lengths lengths; /* what they were made from */
};

/*
 * Builds the tables of a dynamic block from tables->lengths, of which the first n_litlen are those
 * of the litlen code and the rest those of the distance code.  Returns NONE, DEFLATE_LITLEN_CODE
 * or DEFLATE_DISTANCE_CODE; on failure the tables are undefined.  expected_nbits is about how long
 * the block's body will be: more work is put into tables that serve longer.
 */
uint32_t wharf_inflate_tables_dynamic(struct wharf_inflate_tables *tables, uint64_t expected_nbits);

/* The tables of the fixed code, made once for the whole process. */
const struct wharf_inflate_tables *wharf_inflate_tables_fixed(void);

#endif
