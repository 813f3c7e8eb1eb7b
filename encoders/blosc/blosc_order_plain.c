/* SPDX-License-Identifier: Apache-2.0 */
/* blosc_order_plain.c: unshuffles in portable C, elements of any size. */
#include <string.h>

#include "encoders/blosc/blosc_order.h"

/* Elements processed at a time: their cache lines stay in the cache for all planes. */
enum { STRIP = 64 };

static void order_bytes(const uint8_t *in, size_t n, unsigned element_nbytes, uint8_t *out)
{
    for (size_t at = 0; at < n; at += STRIP) {
        size_t end = n - at < STRIP ? n : at + STRIP;
        for (unsigned k = 0; k < element_nbytes; k++)
            for (size_t i = at; i < end; i++)
                out[i * element_nbytes + k] = in[k * n + i];
    }
}

/* Transposes a matrix of 8 x 8 bits: bit c of byte r goes to bit r of byte c. */
static uint64_t transpose(uint64_t x)
{
    uint64_t t = (x ^ x >> 7) & UINT64_C(0x00aa00aa00aa00aa);

    x ^= t ^ t << 7;
    t = (x ^ x >> 14) & UINT64_C(0x0000cccc0000cccc);
    x ^= t ^ t << 14;
    t = (x ^ x >> 28) & UINT64_C(0x00000000f0f0f0f0);
    return x ^ t ^ t << 28;
}

static void order_bits(const uint8_t *in, size_t n, unsigned element_nbytes, uint8_t *out)
{
    for (size_t i = 0; i < n; i++) {
        for (unsigned k = 0; k < element_nbytes; k++) {
            const uint8_t *plane = in + 8 * (size_t)k * n + i;
            uint8_t *to = out + 8 * i * element_nbytes + k;
            uint64_t rows = 0;
            for (unsigned b = 0; b < 8; b++)
                rows |= (uint64_t)plane[b * n] << 8 * b;
            rows = transpose(rows);
            for (unsigned e = 0; e < 8; e++)
                to[e * (size_t)element_nbytes] = (uint8_t)(rows >> 8 * e);
        }
    }
}

const struct wharf_blosc_order wharf_blosc_order_plain = {order_bytes, order_bits};
