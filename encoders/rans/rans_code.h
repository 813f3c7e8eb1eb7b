/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_code.h: what coders of symbols work with, whichever instructions they use.
 */
#ifndef WHARF_ENCODERS_RANS_RANS_CODE_H
#define WHARF_ENCODERS_RANS_RANS_CODE_H

#include "encoders/rans/rans_write.h"

/*
 * How a symbol is coded: state becomes quotient << n, plus the remainder, plus `first`.  A word is
 * written before, if the state is at least f * 2^(32 - n).
 */
struct wharf_rans_code {
    /* Of f, for the quotient: floor(2^32 / f), which is above 2^32 / f - 1, or 2^32 - 1 for f = 1.
     * What its product with a state has above 2^32 is the quotient or one less. */
    uint32_t reciprocal;
    uint16_t frequency_less_1;
    uint16_t first;
};

/* What is coded. */
struct wharf_rans_source {
    struct wharf_rans_shape shape;
    const struct wharf_rans_code *codes; /* distribution d's from d * alphabet on */
    const uint8_t *symbols;              /* n_symbols of symbol_nbytes each, little-endian */
    const uint8_t *indexes; /* n_symbols numbers of distributions; NULL if there is one */
    uint32_t n_symbols;
    uint32_t max_splits; /* at least 1 */
};

/* The coders on their way to the first group. */
struct wharf_rans_coder {
    const struct wharf_rans_source *source;
    uint32_t states[WHARF_RANS_N_LANES];
    /* Of each coder the group in which it wrote a word last, UINT32_MAX before it wrote any, and
     * its state behind that: what a decoder that begins now has to know. */
    uint32_t start[WHARF_RANS_N_LANES];
    uint32_t start_state[WHARF_RANS_N_LANES];
    const uint16_t *words;
    uint16_t *next_word; /* behind those that are written: there 32 more may be overwritten */
};

/* Codes the groups before `end`, down to `begin`: the last one first.  All are whole. */
typedef void wharf_rans_code_fn(struct wharf_rans_coder *coder, uint32_t begin, uint32_t end);

/* The code of a symbol of frequency f whose slots begin at `first`. */
static inline struct wharf_rans_code wharf_rans_code_of(uint32_t f, uint32_t reciprocal,
                                                        uint32_t first)
{
    return (struct wharf_rans_code){reciprocal, (uint16_t)(f - 1), (uint16_t)first};
}

static inline uint32_t wharf_rans_reciprocal(uint32_t f)
{
    return f > 1 ? (uint32_t)((1ull << 32) / f) : UINT32_MAX;
}

#endif
