/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_model.h: the probabilities that a rans stream was coded with, and the tables that decoders
 * look them up in.  encoders/rans/rans_format.h has the packed form.
 */
#ifndef WHARF_ENCODERS_RANS_RANS_MODEL_H
#define WHARF_ENCODERS_RANS_RANS_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/rans/rans_format.h"

/* What a model is made for: the header's first fields. */
struct wharf_rans_shape {
    uint32_t n_bits;          /* WHARF_RANS_MIN_NBITS to WHARF_RANS_MAX_NBITS */
    uint32_t symbol_nbytes;   /* 1 or 2 */
    uint32_t alphabet;        /* symbols 0 to alphabet - 1; at most 256 if they are of 1 byte */
    uint32_t n_distributions; /* 1 to WHARF_RANS_MAX_DISTRIBUTIONS */
};

/* A symbol's range of slots.  One less than the frequency, so that 2^16 fits. */
struct wharf_rans_range {
    uint16_t frequency_less_1; /* means nothing if no slot is the symbol's */
    uint16_t first;
};

/* Tables, in memory that the caller gives: distribution d's slots begin at d << n_bits, its
 * ranges at d * alphabet. */
struct wharf_rans_model {
    struct wharf_rans_shape shape;
    bool is_full;           /* no distribution leaves a slot to nobody */
    uint32_t *totals;       /* of each distribution: slots from here on are nobody's */
    uint16_t *slot_symbols; /* by slot; nobody's have a symbol outside whose range they are */
    struct wharf_rans_range *ranges;
    /* Of a registered model that can have them, what wharf_rans_pack_slots makes; else NULL. */
    const uint32_t *packed_slots;
};

/* A stream that brings its model with it may have at most this many slots, and as many ranges, in
 * all distributions together; registered models, whose tables are made once, may have more. */
#define WHARF_RANS_INLINE_NSLOTS 65536
#define WHARF_RANS_REGISTERED_NSLOTS (1u << 24)

/* Whether a shape keeps to the ranges above and to max_nslots. */
bool wharf_rans_shape_is_good(const struct wharf_rans_shape *shape, uint32_t max_nslots);

/* What is written behind the last slot, and vector loads read there. */
#define WHARF_RANS_MORE_SLOTS 4

static inline size_t wharf_rans_n_slots(const struct wharf_rans_shape *shape)
{
    return (size_t)shape->n_distributions << shape->n_bits;
}

static inline size_t wharf_rans_n_ranges(const struct wharf_rans_shape *shape)
{
    return (size_t)shape->n_distributions * shape->alphabet;
}

/*
 * Fills in a model's tables from its packed form.  `model` has its shape, which is good, and memory
 * for n_distributions totals, n_slots slots and WHARF_RANS_MORE_SLOTS more, and n_ranges ranges, of
 * which those of symbols without slots may be left as they are.  False when the packed form breaks
 * rule 2.
 */
bool wharf_rans_model_unpack(const uint8_t *in, size_t in_nbytes, struct wharf_rans_model *model);

/*
 * The packed form of n_ranges frequencies (0 to 2^n_bits each), distribution by distribution.
 * Returns its size in bytes; writes it if that is at most out_avail.
 */
size_t wharf_rans_model_pack(const struct wharf_rans_shape *shape, const uint32_t *frequencies,
                             uint8_t *out, size_t out_avail);

/*
 * Frequencies of one distribution where most symbols have none: those that have, in rising order.
 * The alphabet ends with the last of them.
 */
struct wharf_rans_some {
    const uint32_t *symbols;
    const uint32_t *frequencies;
    uint32_t n; /* at least 1 */
};

static inline uint32_t wharf_rans_some_alphabet(const struct wharf_rans_some *some)
{
    return some->symbols[some->n - 1] + 1;
}

/* The packed form of these: its size in bits; and the form itself, of which the size in bytes is
 * returned, and behind which some more are overwritten. */
#define WHARF_RANS_SOME_MARGIN_NBYTES 8
uint64_t wharf_rans_some_nbits(const struct wharf_rans_some *some);
size_t wharf_rans_some_pack(const struct wharf_rans_some *some, uint8_t *out);

/* The most bytes of a packed form: all widths are 5 bits, no frequency is over 17. */
static inline size_t wharf_rans_packed_bound(size_t n_ranges)
{
    return n_ranges * (WHARF_RANS_WIDTH_NBITS + WHARF_RANS_MAX_WIDTH) / 8 + 1;
}

/* The least: all widths stand there. */
static inline size_t wharf_rans_packed_least(const struct wharf_rans_shape *shape)
{
    size_t n_blocks = (shape->alphabet + WHARF_RANS_BLOCK_NSYMBOLS - 1) / WHARF_RANS_BLOCK_NSYMBOLS;

    return (shape->n_distributions * n_blocks * WHARF_RANS_WIDTH_NBITS + 7) / 8;
}

/* Whether each distribution gives away at least one slot, and no more than there are. */
bool wharf_rans_frequencies_are_good(const struct wharf_rans_shape *shape,
                                     const uint32_t *frequencies);

/*
 * Frequencies for symbols that were counted, less than 2^53 of them: each counted symbol gets at
 * least 1, their sum is 2^n_bits, and the coded size of what was counted is the least possible.  0;
 * -EINVAL if nothing was counted, or more symbols than 2^n_bits; -ENOMEM.
 */
int wharf_rans_normalise(const uint64_t *counts, uint32_t alphabet, uint32_t n_bits,
                         uint32_t *ret_frequencies);

/* The same for symbols that were all counted: the others need not be there. */
int wharf_rans_normalise_some(const uint64_t *counts, uint32_t n_symbols, uint32_t n_bits,
                              uint32_t *ret_frequencies);

#endif
