/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_code.h: canonical Huffman codes, RFC 1951 section 3.2.2.  Internal to encoders/.
 */
#ifndef WHARF_ENCODERS_DEFLATE_INFLATE_CODE_H
#define WHARF_ENCODERS_DEFLATE_INFLATE_CODE_H

#include <stdint.h>

#include "encoders/deflate/deflate_format.h"

enum { WHARF_CODE_LITLEN = 0, WHARF_CODE_DISTANCE = 1 };

/*
 * The code lengths of a block as its header gives them: those of the litlen code and then those of
 * the distance code in one sequence, and what its reader learns on the way.
 */
struct wharf_code_lengths {
    unsigned n_litlen; /* lengths of the litlen code; the rest are the distance code's */
    /* A word at once may be written from any length on. */
    uint8_t nbits[WHARF_DEFLATE_N_LITLEN_FIXED + WHARF_DEFLATE_N_DISTANCE_FIXED + 8];
    /* Which of them are not zero, in their order: few, for the most part. */
    uint16_t used[WHARF_DEFLATE_N_LITLEN_FIXED + WHARF_DEFLATE_N_DISTANCE_FIXED + 8];
    /* How many of each length either code has; those of length 0 do not count. */
    uint16_t n_words[2][WHARF_DEFLATE_MAX_CODE_NBITS + 1];
};

/* The code words of a code in canonical order, which is that of their lengths, then symbols. */
struct wharf_code {
    unsigned max_nbits; /* 0: no word at all */
    uint16_t n_words[WHARF_DEFLATE_MAX_CODE_NBITS + 1];
    uint16_t first[WHARF_DEFLATE_MAX_CODE_NBITS + 2]; /* index of the first word of a length */
    uint16_t symbols[WHARF_DEFLATE_N_LITLEN_FIXED];
    uint16_t words[WHARF_DEFLATE_N_LITLEN_FIXED]; /* as they stand in the source: reversed */
};

enum wharf_code_kind {
    WHARF_CODE_COMPLETE,
    WHARF_CODE_TRIVIAL, /* one word of one bit, or no word */
    WHARF_CODE_BAD,     /* over-subscribed, or incomplete otherwise; *code is undefined */
};

/* Makes one of the two codes. */
enum wharf_code_kind wharf_code_init(struct wharf_code *code,
                                     const struct wharf_code_lengths *lengths, unsigned which);

/* A word of nbits that is canonical in its order of bits, as it stands in the source. */
unsigned wharf_code_reverse(unsigned word, unsigned nbits);

#endif
