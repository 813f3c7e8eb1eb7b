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

/* 4 bytes from every place, which counts bytes, 2 bytes and 4 bytes. */
LANES_INLINE __m512i gather_16_bytes(const uint8_t *table, __m512i at)
{
    return _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), all_of_sixteen(), at, table, 1);
}

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

#endif
