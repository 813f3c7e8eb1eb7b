/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_order_avx2.c: unshuffles elements of 2, 4, 8 and 16 bytes with vector instructions.
 *
 * Bytes: 16 elements at a time.  Each step of unpack instructions doubles the number of
 * neighbouring bytes that belong to the same element, so log2(element_nbytes) steps are enough.
 *
 * Bits: a 16 x 16 transposition, also by unpack steps, brings the bytes of the same eight elements
 * together.  movemask then collects the highest bit of each byte, which gives bytes of one element;
 * a shift left by one brings the bits of the next element to the top.
 *
 * The plain form has elements of other sizes, and what is left at the end.
 */
#include "encoders/blosc/blosc_order.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("avx2")))

enum { VECTOR = 16 };

/* Interleaves n vectors of 16 bytes, n a power of two: byte i of vector k goes to byte i * n +
 * k. */
TARGET static inline __attribute__((always_inline)) void interleave(__m128i *v, unsigned n)
{
    __m128i w[VECTOR];

    for (unsigned step = 1; step < n; step *= 2) {
        for (unsigned k = 0; k < n / 2; k++) {
            w[2 * k] = _mm_unpacklo_epi8(v[k], v[k + n / 2]);
            w[2 * k + 1] = _mm_unpackhi_epi8(v[k], v[k + n / 2]);
        }
        for (unsigned k = 0; k < n; k++)
            v[k] = w[k];
    }
}

TARGET static inline __attribute__((always_inline)) size_t
order_some_bytes(const uint8_t *in, size_t n, unsigned element_nbytes, uint8_t *out)
{
    size_t i = 0;

    for (; i + VECTOR <= n; i += VECTOR) {
        __m128i v[VECTOR];
        for (unsigned k = 0; k < element_nbytes; k++)
            v[k] = _mm_loadu_si128((const __m128i *)(in + k * n + i));
        interleave(v, element_nbytes);
        for (unsigned k = 0; k < element_nbytes; k++)
            _mm_storeu_si128((__m128i *)(out + i * element_nbytes + k * VECTOR), v[k]);
    }
    return i;
}

/* The elements from i on. */
static void order_last_bytes(const uint8_t *in, size_t n, unsigned element_nbytes, size_t i,
                             uint8_t *out)
{
    for (; i < n; i++)
        for (unsigned k = 0; k < element_nbytes; k++)
            out[i * element_nbytes + k] = in[k * n + i];
}

TARGET static void order_bytes(const uint8_t *in, size_t n, unsigned element_nbytes, uint8_t *out)
{
    size_t done;

    switch (element_nbytes) {
    case 2:
        done = order_some_bytes(in, n, 2, out);
        break;
    case 4:
        done = order_some_bytes(in, n, 4, out);
        break;
    case 8:
        done = order_some_bytes(in, n, 8, out);
        break;
    case 16:
        done = order_some_bytes(in, n, 16, out);
        break;
    default:
        wharf_blosc_order_plain.bytes(in, n, element_nbytes, out);
        return;
    }
    order_last_bytes(in, n, element_nbytes, done, out);
}

/* Transposes the 8 * element_nbytes bytes at `rows`, each a bit of eight elements, to these
 * elements. */
TARGET static inline __attribute__((always_inline)) void
turn_rows(const uint8_t *rows, unsigned element_nbytes, uint8_t *out)
{
    for (unsigned k = 0; k + 4 <= element_nbytes; k += 4) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(rows + 8 * k));
        for (unsigned e = 8; e-- > 0;) {
            uint32_t four = (uint32_t)_mm256_movemask_epi8(v);
            memcpy(out + e * element_nbytes + k, &four, 4);
            v = _mm256_add_epi8(v, v);
        }
    }
    if (element_nbytes == 2) {
        __m128i v = _mm_loadu_si128((const __m128i *)rows);
        for (unsigned e = 8; e-- > 0;) {
            uint16_t two = (uint16_t)_mm_movemask_epi8(v);
            memcpy(out + 2 * e, &two, 2);
            v = _mm_add_epi8(v, v);
        }
    }
}

TARGET static inline __attribute__((always_inline)) size_t
order_some_bits(const uint8_t *in, size_t n, unsigned element_nbytes, uint8_t *out)
{
    uint8_t rows[VECTOR][8 * 16];
    size_t i = 0;

    for (; i + VECTOR <= n; i += VECTOR) {
        for (unsigned k = 0; k < 8 * element_nbytes; k += VECTOR) {
            __m128i v[VECTOR];
            for (unsigned b = 0; b < VECTOR; b++)
                v[b] = _mm_loadu_si128((const __m128i *)(in + (k + b) * n + i));
            interleave(v, VECTOR);
            for (unsigned b = 0; b < VECTOR; b++)
                _mm_storeu_si128((__m128i *)(rows[b] + k), v[b]);
        }
        for (unsigned b = 0; b < VECTOR; b++)
            turn_rows(rows[b], element_nbytes, out + 8 * (i + b) * element_nbytes);
    }
    return i;
}

/* The groups of eight elements from i on, a bit at a time: they are few. */
static void order_last_bits(const uint8_t *in, size_t n, unsigned element_nbytes, size_t i,
                            uint8_t *out)
{
    memset(out + 8 * i * element_nbytes, 0, 8 * (n - i) * element_nbytes);
    for (unsigned k = 0; k < 8 * element_nbytes; k++)
        for (size_t at = i; at < n; at++)
            for (unsigned e = 0; e < 8; e++)
                out[(8 * at + e) * element_nbytes + k / 8] |=
                    (uint8_t)((in[k * n + at] >> e & 1) << k % 8);
}

TARGET static void order_bits(const uint8_t *in, size_t n, unsigned element_nbytes, uint8_t *out)
{
    size_t done;

    switch (element_nbytes) {
    case 2:
        done = order_some_bits(in, n, 2, out);
        break;
    case 4:
        done = order_some_bits(in, n, 4, out);
        break;
    case 8:
        done = order_some_bits(in, n, 8, out);
        break;
    case 16:
        done = order_some_bits(in, n, 16, out);
        break;
    default:
        wharf_blosc_order_plain.bits(in, n, element_nbytes, out);
        return;
    }
    order_last_bits(in, n, element_nbytes, done, out);
}

const struct wharf_blosc_order wharf_blosc_order_avx2 = {order_bytes, order_bits};

#endif
