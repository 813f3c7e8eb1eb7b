/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where bytes can be permuted, that does what takes two or three instructions for the two ports
 * which the loop is bound by.
 */
#include "encoders/rans/rans_loop.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET                                                                                     \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx2,bmi,bmi2,"        \
                          "popcnt")))
#include "encoders/rans/rans_lookup.h"

LANES_INLINE void store_bytes(uint8_t *out, __m512i symbols)
{
    const __m512i lowest = _mm512_castsi128_si512(
        _mm_set_epi8(60, 56, 52, 48, 44, 40, 36, 32, 28, 24, 20, 16, 12, 8, 4, 0));

    _mm_storeu_si128((__m128i_u *)out,
                     _mm512_castsi512_si128(_mm512_permutexvar_epi8(lowest, symbols)));
}

LANES_INLINE __m512i take_words(__m512i states, __mmask16 takes, const uint8_t *place)
{
/* The places of words 15 to 0 in the upper halves of elements. */
#define WORD(i) (int)((2u * (i) + 1) << 24 | 2u * (i) << 16)
    const __m512i downwards = _mm512_set_epi32(WORD(0), WORD(1), WORD(2), WORD(3), WORD(4), WORD(5),
                                               WORD(6), WORD(7), WORD(8), WORD(9), WORD(10),
                                               WORD(11), WORD(12), WORD(13), WORD(14), WORD(15));
#undef WORD
    __m512i words = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i_u *)(place - 32)));

    words = _mm512_maskz_expand_epi32(takes, _mm512_permutexvar_epi8(downwards, words));
    return _mm512_mask_shldi_epi32(states, takes, states, words, 16);
}

#define LOOP_NAME wharf_rans_loop_avx512_vbmi
#include "encoders/rans/rans_loop_zmm.h"

#endif
