/* SPDX-License-Identifier: Apache-2.0 */
/* rans_loop_avx512.c: the inner loop with AVX-512. */
#include "encoders/rans/rans_loop.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx2,bmi,bmi2,popcnt")))
#include "encoders/rans/rans_lookup.h"

LANES_INLINE void store_bytes(uint8_t *out, __m512i symbols)
{
    _mm_storeu_si128((__m128i_u *)out, _mm512_cvtepi32_epi8(symbols));
}

LANES_INLINE __m512i take_words(__m512i states, __mmask16 takes, const uint8_t *place)
{
    const __m512i downwards =
        _mm512_set_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i words = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i_u *)(place - 32)));

    words = _mm512_maskz_expand_epi32(takes, _mm512_permutexvar_epi32(downwards, words));
    return _mm512_mask_or_epi32(states, takes, _mm512_slli_epi32(states, 16), words);
}

#define LOOP_NAME wharf_rans_loop_avx512
#include "encoders/rans/rans_loop_zmm.h"

#endif
