/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_gather_ymm.h: gathers of eight, each with a register of zeros to gather into.
 *
 * The compiler's own intrinsics take whatever register is free, where the mask is known to have all
 * elements.  But the instruction reads what it gathers into, so each gather then waits for what had
 * that register before, which is often the gather before it.  So the mask is hidden from it.
 */
#ifndef WHARF_ENCODERS_RANS_RANS_GATHER_YMM_H
#define WHARF_ENCODERS_RANS_RANS_GATHER_YMM_H

#include <immintrin.h>

#include "encoders/rans/rans_lookup.h"

LANES_INLINE __m256i all_of_eight(void)
{
    __m256i all = _mm256_set1_epi32(-1);

    __asm__("" : "+x"(all));
    return all;
}

/* Two entries of 4 bytes from each of 8 places: from places 0, 1, 4 and 5, and from the others. */
struct pairs {
    __m256i a;
    __m256i b;
};

/* 4 bytes from every place, which counts 2 bytes and 4 bytes; 8 bytes. */
LANES_INLINE __m256i gather_8_halves(const uint16_t *table, __m256i at)
{
    return _mm256_mask_i32gather_epi32(_mm256_setzero_si256(), (const int *)(const void *)table, at,
                                       all_of_eight(), 2);
}

LANES_INLINE __m256i gather_8(const void *table, __m256i at)
{
    return _mm256_mask_i32gather_epi32(_mm256_setzero_si256(), table, at, all_of_eight(), 4);
}

LANES_INLINE __m256i gather_4_wide(const void *table, __m128i at)
{
    return _mm256_mask_i32gather_epi64(_mm256_setzero_si256(), table, at, all_of_eight(), 8);
}

#endif
