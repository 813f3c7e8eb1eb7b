/* SPDX-License-Identifier: Apache-2.0 */
/* crc32_join.c: joins CRC-32s by multiplying polynomials modulo the CRC's. */
#include "encoders/crc32_join.h"

/*
 * Polynomials over bits modulo that of the CRC, the highest bit of a word being x^0: as the CRC's
 * register holds them.
 */
#define POLYNOMIAL 0xedb88320u
#define X_TO_THE_0 0x80000000u
#define X_TO_THE_8 0x00800000u

static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;

    for (uint32_t bit = X_TO_THE_0; bit; bit >>= 1) {
        if (a & bit)
            product ^= b;
        b = b >> 1 ^ (b & 1 ? POLYNOMIAL : 0);
    }
    return product;
}

/*
 * The bytes behind multiply what the register held before them by x^8 each.  That it begins and
 * ends inverted is the same for both parts and the whole, and falls out.
 */
uint32_t wharf_crc32_join(uint32_t first, uint32_t second, uint64_t second_nbytes)
{
    uint32_t power = X_TO_THE_0;
    uint32_t factor = X_TO_THE_8;

    for (; second_nbytes; second_nbytes >>= 1) {
        if (second_nbytes & 1)
            power = multiply(power, factor);
        factor = multiply(factor, factor);
    }
    return multiply(power, first) ^ second;
}
