/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codes 16 symbols at a time.  Coders are coded from the last to the first, and a register has them
 * in that order: element i of part 0 is coder 31 - i.
 */
#include "encoders/rans/rans_loop.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx2,bmi,bmi2,popcnt")))
#include "encoders/rans/rans_gather_zmm.h"

struct part {
    __m512i states;
    __m512i start;
    __m512i start_state;
};

LANES_INLINE __m512i turn_round(__m512i x)
{
    return _mm512_permutexvar_epi32(
        _mm512_set_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), x);
}

LANES_INLINE __m512i load_part(const uint32_t *values)
{
    return turn_round(_mm512_loadu_si512(values));
}

LANES_INLINE void store_part(uint32_t *values, __m512i x)
{
    _mm512_storeu_si512(values, turn_round(x));
}

/* The numbers of the codes of 16 symbols. */
LANES_INLINE __m512i code_numbers(const struct wharf_rans_source *source, struct lookup lookup,
                                  uint64_t number)
{
    __m512i symbols =
        lookup.symbol_nbytes == 1
            ? _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i_u *)(source->symbols + number)))
            : _mm512_cvtepu16_epi32(
                  _mm256_loadu_si256((const __m256i_u *)(source->symbols + 2 * number)));

    if (lookup.is_indexed) {
        __m512i indexes =
            _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i_u *)(source->indexes + number)));
        __m512i alphabet = _mm512_set1_epi32((int)source->shape.alphabet);

        symbols = _mm512_add_epi32(symbols, _mm512_mullo_epi32(indexes, alphabet));
    }
    return turn_round(symbols);
}

/* The upper halves of products. */
LANES_INLINE __m512i multiply_high(__m512i a, __m512i b)
{
    __m512i even = _mm512_srli_epi64(_mm512_mul_epu32(a, b), 32);
    __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), _mm512_srli_epi64(b, 32));

    return _mm512_mask_blend_epi32(0xaaaa, even, odd);
}

LANES_INLINE uint16_t *code_part(const struct wharf_rans_source *source, struct lookup lookup,
                                 struct part *part, uint64_t number, uint32_t group,
                                 uint16_t *next_word)
{
    uint32_t n_bits = source->shape.n_bits;
    __m512i reciprocals;
    __m512i ranges;

    gather_16_pairs(source->codes, code_numbers(source, lookup, number), &reciprocals, &ranges);
    __m512i less_1 = _mm512_and_si512(ranges, _mm512_set1_epi32(0xffff));
    __m512i first = _mm512_srli_epi32(ranges, 16);
    __m512i f = _mm512_add_epi32(less_1, _mm512_set1_epi32(1));
    /* That of all slots is 2^32, less 1. */
    __m512i most = _mm512_sub_epi32(_mm512_slli_epi32(f, 32 - n_bits), _mm512_set1_epi32(1));
    __mmask16 writes = _mm512_cmpgt_epu32_mask(part->states, most);
    __m512i words = _mm512_maskz_compress_epi32(writes, part->states);
    __m512i states = _mm512_mask_srli_epi32(part->states, writes, part->states, 16);

    _mm256_storeu_si256((__m256i_u *)next_word, _mm512_cvtepi32_epi16(words));
    part->start = _mm512_mask_set1_epi32(part->start, writes, (int)group);
    part->start_state = _mm512_mask_mov_epi32(part->start_state, writes, states);

    __m512i quotients = multiply_high(states, reciprocals);
    __m512i rest = _mm512_sub_epi32(states, _mm512_mullo_epi32(quotients, f));
    __mmask16 is_more = _mm512_cmpgt_epu32_mask(rest, less_1);
    quotients = _mm512_mask_add_epi32(quotients, is_more, quotients, _mm512_set1_epi32(1));
    rest = _mm512_mask_sub_epi32(rest, is_more, rest, f);
    part->states =
        _mm512_add_epi32(_mm512_slli_epi32(quotients, n_bits), _mm512_add_epi32(first, rest));
    return next_word + __builtin_popcount(writes);
}

#define N_PARTS 2
#define CODE_NAME wharf_rans_code_avx512
#include "encoders/rans/rans_code_body.h"

#endif
