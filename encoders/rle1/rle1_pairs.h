/* SPDX-License-Identifier: Apache-2.0 */
/* rle1_pairs.h: varints of one and two bytes by instructions that not every machine has. */
#ifndef WHARF_ENCODERS_RLE1_RLE1_PAIRS_H
#define WHARF_ENCODERS_RLE1_RLE1_PAIRS_H

#include "encoders/rle_values.h"

/* So many bytes are read at once: eight numbers, or the latter four of them and what follows. */
enum { WHARF_RLE1_PAIRS_NBYTES = 16 };

/*
 * Takes the first ones of n varints and stores them as values of a type at `out`, where there is
 * room for n: until one is longer, or too little of the source is left, or there is no room for
 * eight values before out_end, which may be written to behind those that are taken.  Returns how
 * many; their numbers are or-ed to *all.  Always 0 where the machine lacks BMI2 or AVX2.
 */
unsigned wharf_rle1_take_pairs(struct wharf_rle_input *in, uint8_t *out, const uint8_t *out_end,
                               unsigned n, unsigned nbytes, int is_signed, uint64_t *all);

#endif
