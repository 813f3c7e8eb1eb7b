/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_bits.h: bits that are read from their end to their beginning, plainly.
 *
 * READ ME FIRST: a stream's last byte has its first bits.  Its highest bit that is set only says
 * where they begin; the bits below are read downwards, then those of the byte before, from its
 * highest on.  A number's first bit is its highest.  Past the beginning all bits are 0.
 */
#ifndef WHARF_ENCODERS_ZSTD_ZSTD_BITS_H
#define WHARF_ENCODERS_ZSTD_ZSTD_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wharf_zstd_bits {
    const uint8_t *begin;
    uint64_t n_left; /* bits that are not yet read: those below it */
    bool is_over;    /* more were taken than there are */
};

/* False if there is no stream: no bytes, or no bit that is set in the last. */
static inline bool wharf_zstd_bits_init(struct wharf_zstd_bits *bits, const uint8_t *begin,
                                        size_t nbytes)
{
    uint8_t last = nbytes ? begin[nbytes - 1] : 0;

    if (last == 0)
        return false;
    bits->begin = begin;
    bits->n_left = 8 * ((uint64_t)nbytes - 1) + 31u - (unsigned)__builtin_clz(last);
    bits->is_over = false;
    return true;
}

/* The next n bits, at most 32. */
static inline uint32_t wharf_zstd_bits_peek(const struct wharf_zstd_bits *bits, unsigned n)
{
    unsigned n_there = bits->n_left < n ? (unsigned)bits->n_left : n;
    uint64_t from = bits->n_left - n_there;
    uint64_t value = 0;

    if (n_there == 0)
        return 0;
    for (uint64_t i = from / 8; i <= (from + n_there - 1) / 8; i++)
        value |= (uint64_t)bits->begin[i] << 8 * (i - from / 8);
    value = value >> from % 8 & ((UINT64_C(1) << n_there) - 1);
    return (uint32_t)(value << (n - n_there));
}

static inline void wharf_zstd_bits_skip(struct wharf_zstd_bits *bits, unsigned n)
{
    if (n > bits->n_left) {
        bits->is_over = true;
        n = (unsigned)bits->n_left;
    }
    bits->n_left -= n;
}

static inline uint32_t wharf_zstd_bits_take(struct wharf_zstd_bits *bits, unsigned n)
{
    uint32_t value = wharf_zstd_bits_peek(bits, n);

    wharf_zstd_bits_skip(bits, n);
    return value;
}

#endif
