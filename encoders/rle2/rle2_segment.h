/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle2_segment.h: up to 512 values as one run, of the kind that takes the fewest bytes.
 */
#ifndef WHARF_ENCODERS_RLE2_RLE2_SEGMENT_H
#define WHARF_ENCODERS_RLE2_RLE2_SEGMENT_H

#include <stdint.h>

#include "encoders/rle2/rle2_format.h"

/* How a run is to be written. */
struct wharf_rle2_plan {
    enum wharf_rle2_kind kind; /* DIRECT, PATCHED_BASE or DELTA */
    uint32_t nbytes;           /* that it takes, header and all */
    unsigned width;            /* of packed numbers; 0 for a delta run whose differences are one */
    /* PATCHED_BASE */
    unsigned n_patches;
    unsigned gap_width;
    unsigned patch_width;
    uint64_t base;
    unsigned base_nbytes;
};

/*
 * wharf_rle2_plan_segment: chooses for n values, 1 to WHARF_RLE2_RUN_MAX.
 * wharf_rle2_write_segment: writes plan->nbytes.
 */
void wharf_rle2_plan_segment(const uint64_t *values, unsigned n, int is_signed,
                             struct wharf_rle2_plan *ret_plan);
void wharf_rle2_write_segment(const struct wharf_rle2_plan *plan, const uint64_t *values,
                              unsigned n, int is_signed, uint8_t *out);

/* What n times the same number takes at least: a short repeat, or from 11 on a delta run. */
unsigned wharf_rle2_repeat_nbytes(uint64_t value, unsigned n, int is_signed);

/* Writes them, 3 to WHARF_RLE2_RUN_MAX.  Returns how many bytes. */
unsigned wharf_rle2_write_repeat(uint64_t value, unsigned n, int is_signed, uint8_t *out);

/* The least number of bits that hold u, 0 for 0. */
static inline unsigned wharf_rle2_nbits(uint64_t u)
{
    return u ? 64 - (unsigned)__builtin_clzll(u) : 0;
}

/* The same, as widths of the table have it: 1 at least. */
static inline unsigned wharf_rle2_table_nbits(uint64_t u)
{
    return wharf_rle2_width(wharf_rle2_width_code(wharf_rle2_nbits(u)));
}

#endif
