/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_bits.h: the bits of a rans body: words of 16 bits, most significant bit first, each word
 * little-endian.  So bit i of the body is bit 15 - i % 16 of word i / 16.
 */
#ifndef WHARF_ENCODERS_RANS_RANS_BITS_H
#define WHARF_ENCODERS_RANS_RANS_BITS_H

#include <stdint.h>

#include "encoders/little_endian.h"

/*
 * The n_bits (0 to 32) from bit `at` on.  They must all be there.
 */
static inline uint32_t wharf_rans_bits(const uint8_t *in, uint64_t at, uint32_t n_bits)
{
    uint64_t first = at / 16;
    uint64_t last = (at + n_bits - 1) / 16;
    uint64_t gathered = 0;

    if (n_bits == 0)
        return 0;
    for (uint64_t word = first; word <= last; word++)
        gathered = gathered << 16 | wharf_load_le16(in + 2 * word);
    gathered >>= 16 * (last + 1) - (at + n_bits);
    return (uint32_t)(gathered & (((uint64_t)1 << n_bits) - 1));
}

/* A sign bit, 1 for negative, and a magnitude of n_bits (1 to 32). */
static inline int64_t wharf_rans_signed_bits(const uint8_t *in, uint64_t at, uint32_t n_bits)
{
    int64_t magnitude = wharf_rans_bits(in, at + 1, n_bits);

    return wharf_rans_bits(in, at, 1) ? -magnitude : magnitude;
}

/* Writes fields one after the other; `out` must be zeroed and large enough. */
struct wharf_rans_bit_writer {
    uint8_t *out;
    uint64_t at;
};

static inline void wharf_rans_put_bits(struct wharf_rans_bit_writer *writer, uint32_t value,
                                       uint32_t n_bits)
{
    for (uint32_t i = n_bits; i-- > 0; writer->at++) {
        uint64_t bit = writer->at % 16;
        /* The word's high byte is the second one. */
        uint8_t *byte = writer->out + 2 * (writer->at / 16) + (bit < 8);

        *byte |= (uint8_t)((value >> i & 1) << (7 - bit % 8));
    }
}

static inline void wharf_rans_put_signed(struct wharf_rans_bit_writer *writer, int64_t value,
                                         uint32_t n_bits)
{
    wharf_rans_put_bits(writer, value < 0, 1);
    wharf_rans_put_bits(writer, (uint32_t)(value < 0 ? -value : value), n_bits);
}

#endif
