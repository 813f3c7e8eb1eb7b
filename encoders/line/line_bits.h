/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_bits.h: the little numbers that lines are made of: fields of some bits, values of 1 to 8
 * bytes.
 */
#ifndef WHARF_ENCODERS_LINE_LINE_BITS_H
#define WHARF_ENCODERS_LINE_LINE_BITS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The value of `nbytes` bytes, 1, 2, 4 or 8, little-endian as the machine is. */
static inline uint64_t wharf_line_load(const uint8_t *p, uint32_t nbytes)
{
    uint64_t value = 0;

    memcpy(&value, p, nbytes);
    return value;
}

static inline void wharf_line_store(uint8_t *p, uint32_t nbytes, uint64_t value)
{
    memcpy(p, &value, nbytes);
}

/* A value of so many bytes as a signed number. */
static inline int64_t wharf_line_signed(uint64_t value, uint32_t nbytes)
{
    unsigned unused = 64 - 8 * nbytes;

    return (int64_t)(value << unused) >> unused;
}

/* Whether a number is one of so many bits, signed. */
static inline bool wharf_line_fits(int64_t value, uint32_t nbits)
{
    int64_t limit = INT64_C(1) << (nbits - 1);

    return value >= -limit && value < limit;
}

/* Adds field number i, of so many bits, at most 8, to bytes that are 0 where it stands. */
static inline void wharf_line_put_field(uint8_t *bytes, uint32_t i, uint32_t nbits, uint32_t value)
{
    uint32_t at = i * nbits;
    uint32_t bits = value << at % 8;

    bytes[at / 8] |= (uint8_t)bits;
    if (bits > 255)
        bytes[at / 8 + 1] |= (uint8_t)(bits >> 8);
}

#endif
