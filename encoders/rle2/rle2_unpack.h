/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle2_unpack.h: numbers of a fixed width in bits, the most significant bit first.
 */
#ifndef WHARF_ENCODERS_RLE2_RLE2_UNPACK_H
#define WHARF_ENCODERS_RLE2_RLE2_UNPACK_H

#include "encoders/rle_values.h"

/* So much behind the packed bytes may be read too. */
enum { WHARF_RLE2_WORD_NBYTES = 8 };

/* Number i of those at `bytes`.  All widths of the table up to 56, and 64, lie in the 8 bytes from
 * where they begin: 56 bits begin at a byte's start. */
WHARF_RLE_INLINE uint64_t wharf_rle2_number(const uint8_t *bytes, size_t i, unsigned width)
{
    size_t bit = i * width;
    uint64_t word;

    memcpy(&word, bytes + bit / 8, 8);
    return __builtin_bswap64(word) << bit % 8 >> (64 - width);
}

/* n numbers. */
static inline void wharf_rle2_unpack(const uint8_t *bytes, unsigned n, unsigned width,
                                     uint64_t *out)
{
    for (unsigned i = 0; i < n; i++)
        out[i] = wharf_rle2_number(bytes, i, width);
}

/*
 * The first of n numbers likewise, as many as the machine has quick instructions for: returns how
 * many; there is room for `room` values, n or more, and up to 7 behind the n may be written too.
 * Those numbers are or-ed to *all, unless all that have their width are of the type.
 */
unsigned wharf_rle2_unpack_bmi2(const uint8_t *bytes, unsigned n, unsigned width, uint8_t *out,
                                size_t room, unsigned nbytes, int is_signed, uint64_t *all);

/* The same of sums, base + number, which the type has all. */
unsigned wharf_rle2_sum_bmi2(const uint8_t *bytes, unsigned n, unsigned width, uint64_t base,
                             uint8_t *out, size_t room, unsigned nbytes);

/* n numbers, as values of a type, to where there is room for `room`, n or more.  Returns the
 * numbers, or-ed. */
WHARF_RLE_INLINE uint64_t wharf_rle2_unpack_to(const uint8_t *bytes, unsigned n, unsigned width,
                                               uint8_t *out, size_t room, unsigned nbytes,
                                               int is_signed)
{
    uint64_t all = 0;
    unsigned i = wharf_rle2_unpack_bmi2(bytes, n, width, out, room, nbytes, is_signed, &all);

    for (; i < n; i++) {
        uint64_t u = wharf_rle2_number(bytes, i, width);
        all |= u;
        wharf_rle_store(out + i * nbytes, wharf_rle_value(u, is_signed), nbytes);
    }
    return all;
}

/* base + each of n numbers, sums that the type has all, likewise. */
WHARF_RLE_INLINE void wharf_rle2_sum_to(const uint8_t *bytes, unsigned n, unsigned width,
                                        uint64_t base, uint8_t *out, size_t room, unsigned nbytes)
{
    unsigned i = wharf_rle2_sum_bmi2(bytes, n, width, base, out, room, nbytes);

    for (; i < n; i++)
        wharf_rle_store(out + i * nbytes, base + wharf_rle2_number(bytes, i, width), nbytes);
}

#endif
