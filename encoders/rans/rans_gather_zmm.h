/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_gather_zmm.h: gathers of sixteen, each with a register of zeros to gather into, for the
 * reason that encoders/rans/rans_gather_ymm.h gives.
 */
#ifndef WHARF_ENCODERS_RANS_RANS_GATHER_ZMM_H
#define WHARF_ENCODERS_RANS_RANS_GATHER_ZMM_H

#include <immintrin.h>

#include "encoders/rans/rans_lookup.h"

LANES_INLINE __mmask16 all_of_sixteen(void)
{
    __mmask16 all = 0xffff;

    __asm__("" : "+k"(all));
    return all;
}

/* 4 bytes from every place, which counts 2 bytes and 4 bytes. */
LANES_INLINE __m512i gather_16_halves(const uint16_t *table, __m512i at)
{
    return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), all_of_sixteen(), at, table, 2);
}

LANES_INLINE __m512i gather_16(const void *table, __m512i at)
{
    return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), all_of_sixteen(), at, table, 4);
}

/* 8 bytes from each of eight places. */
LANES_INLINE __m512i gather_8_wide(const void *table, __m256i at)
{
    return _mm512_mask_i32gather_epi64(_mm512_setzero_si512(), (__mmask8)all_of_sixteen(), at,
                                       table, 8);
}

/* Entries of two times 4 bytes from sixteen places: their first and their second halves. */
LANES_INLINE void gather_16_pairs(const void *table, __m512i at, __m512i *firsts, __m512i *seconds)
{
    const __m512i even =
        _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
    const __m512i odd = _mm512_set_epi32(31, 29, 27, 25, 23, 21, 19, 17, 15, 13, 11, 9, 7, 5, 3, 1);
    __m512i low = gather_8_wide(table, _mm512_castsi512_si256(at));
    __m512i high = gather_8_wide(table, _mm512_extracti64x4_epi64(at, 1));

    *firsts = _mm512_permutex2var_epi32(low, even, high);
    *seconds = _mm512_permutex2var_epi32(low, odd, high);
}

#endif
