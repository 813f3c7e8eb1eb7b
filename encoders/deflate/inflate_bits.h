/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_bits.h: unaligned words and bit fields for the CPU inflater.  Internal to encoders/.
 */
#ifndef WHARF_ENCODERS_DEFLATE_INFLATE_BITS_H
#define WHARF_ENCODERS_DEFLATE_INFLATE_BITS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The 8 bytes at p, the first one least significant. */
static inline uint64_t wharf_load_le64(const uint8_t *p)
{
    uint64_t word;

    memcpy(&word, p, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* The lowest n bits of word, n < 64. */
static inline uint64_t wharf_low_bits(uint64_t word, unsigned n)
{
    return word & (((uint64_t)1 << n) - 1);
}

/*
 * At least 57 bits of the source from bit_pos on, zeros past its end: enough for any unit but a
 * dynamic block's header.  bit_pos is at most 8 * in_nbytes.
 */
static inline uint64_t wharf_peek_bits(const uint8_t *in, size_t in_nbytes, uint64_t bit_pos)
{
    size_t at = bit_pos >> 3;
    size_t left = in_nbytes - at;
    uint64_t word = 0;

    if (left >= sizeof(word))
        return wharf_load_le64(in + at) >> (bit_pos & 7);
    for (size_t i = 0; i < left; i++)
        word |= (uint64_t)in[at + i] << (8 * i);
    return word >> (bit_pos & 7);
}

#endif
