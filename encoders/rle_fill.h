/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle_fill.h: writes values that differ by the same amount, 16 bytes at a time, as large as
 * registers of all machines are.
 */
#ifndef WHARF_ENCODERS_RLE_FILL_H
#define WHARF_ENCODERS_RLE_FILL_H

#include "encoders/rle_values.h"

enum { WHARF_RLE_FILL_NBYTES = 16 };

/* n values from `out` on, and perhaps some more: up to 15 bytes behind them are written too. */
#define WHARF_RLE_DEFINE_FILL(nbits)                                                               \
    static inline void wharf_rle_fill_##nbits(uint8_t *out, uint##nbits##_t base,                  \
                                              uint##nbits##_t delta, unsigned n)                   \
    {                                                                                              \
        enum { N = 8 * WHARF_RLE_FILL_NBYTES / nbits };                                            \
        typedef uint##nbits##_t block __attribute__((vector_size(WHARF_RLE_FILL_NBYTES)));         \
        block values = {0};                                                                        \
        for (unsigned i = 0; i < N; i++)                                                           \
            values[i] = (uint##nbits##_t)(base + i * delta);                                       \
        for (unsigned i = 0; i < n; i += N) {                                                      \
            memcpy(out, &values, sizeof(values));                                                  \
            out += sizeof(values);                                                                 \
            values += (uint##nbits##_t)(N * delta);                                                \
        }                                                                                          \
    }
WHARF_RLE_DEFINE_FILL(8)
WHARF_RLE_DEFINE_FILL(16)
WHARF_RLE_DEFINE_FILL(32)
WHARF_RLE_DEFINE_FILL(64)
#undef WHARF_RLE_DEFINE_FILL

/* The same value all over whole blocks of block_nbytes, a constant, till n are there. */
WHARF_RLE_INLINE void wharf_rle_fill_blocks(uint8_t *out, uint64_t base, unsigned n,
                                            unsigned nbytes, unsigned block_nbytes)
{
    typedef uint64_t words __attribute__((vector_size(WHARF_RLE_FILL_NBYTES)));
    const uint8_t *end = out + (size_t)n * nbytes;
    uint64_t ones = UINT64_MAX / (UINT64_MAX >> (64 - 8 * nbytes));
    uint64_t word = (base & UINT64_MAX >> (64 - 8 * nbytes)) * ones;
    words values = {word, word};

    do {
        for (unsigned i = 0; i < block_nbytes; i += WHARF_RLE_FILL_NBYTES)
            memcpy(out + i, &values, sizeof(values));
        out += block_nbytes;
    } while (out < end);
}

/* n values from `out` on, for which there is room before out_end.  What is behind them and before
 * out_end may be written too. */
WHARF_RLE_INLINE void wharf_rle_fill(uint8_t *out, const uint8_t *out_end, uint64_t base,
                                     uint64_t delta, unsigned n, unsigned nbytes)
{
    if ((size_t)(out_end - out) < (size_t)n * nbytes + WHARF_RLE_FILL_NBYTES - 1) {
        for (unsigned i = 0; i < n; i++)
            wharf_rle_store(out + (size_t)i * nbytes, base + i * delta, nbytes);
        return;
    }
    switch (nbytes) {
    case 1:
        wharf_rle_fill_8(out, (uint8_t)base, (uint8_t)delta, n);
        break;
    case 2:
        wharf_rle_fill_16(out, (uint16_t)base, (uint16_t)delta, n);
        break;
    case 4:
        wharf_rle_fill_32(out, (uint32_t)base, (uint32_t)delta, n);
        break;
    default:
        wharf_rle_fill_64(out, base, delta, n);
        break;
    }
}

#endif
