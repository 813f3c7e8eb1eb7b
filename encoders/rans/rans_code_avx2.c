/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codes 8 symbols at a time.  Coders are coded from the last to the first, and a register has them
 * in that order: element i of part 0 is coder 31 - i.
 */
#include "encoders/rans/rans_loop.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2,popcnt")))
#include "encoders/rans/rans_lookup.h"

struct part {
    __m256i states;
    __m256i start;
    __m256i start_state;
};

/* For a mask of 8 coders their places, in a byte each: the lowest one's comes first. */
static const uint64_t writers[256] = {
#define PLACE(m, i)                                                                                \
    (((m) >> (i)&1) ? (uint64_t)(i) << 8 * __builtin_popcount((m) & ((1u << (i)) - 1)) : 0)
#define ROW(m)                                                                                     \
    PLACE(m, 0) | PLACE(m, 1) | PLACE(m, 2) | PLACE(m, 3) | PLACE(m, 4) | PLACE(m, 5) |            \
        PLACE(m, 6) | PLACE(m, 7)
#define ROWS4(m) ROW(m), ROW((m) + 1), ROW((m) + 2), ROW((m) + 3)
#define ROWS16(m) ROWS4(m), ROWS4((m) + 4), ROWS4((m) + 8), ROWS4((m) + 12)
#define ROWS64(m) ROWS16(m), ROWS16((m) + 16), ROWS16((m) + 32), ROWS16((m) + 48)
    ROWS64(0), ROWS64(64), ROWS64(128), ROWS64(192)};

LANES_INLINE __m256i turn_round(__m256i x)
{
    return _mm256_permutevar8x32_epi32(x, _mm256_set_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

LANES_INLINE __m256i load_part(const uint32_t *values)
{
    return turn_round(_mm256_loadu_si256((const __m256i_u *)values));
}

LANES_INLINE void store_part(uint32_t *values, __m256i x)
{
    _mm256_storeu_si256((__m256i_u *)values, turn_round(x));
}

/* The code of a symbol, as one number. */
LANES_INLINE int64_t code_at(const struct wharf_rans_source *source, struct lookup lookup,
                             uint64_t number)
{
    uint32_t symbol = source->symbols[number * lookup.symbol_nbytes];
    int64_t code;

    if (lookup.symbol_nbytes == 2)
        symbol |= (uint32_t)source->symbols[2 * number + 1] << 8;
    if (lookup.is_indexed)
        symbol += source->indexes[number] * source->shape.alphabet;
    memcpy(&code, &source->codes[symbol], sizeof(code));
    return code;
}

/* The codes of the 8 symbols from `number` on: reciprocals, and the two halves of the rest. */
LANES_INLINE void find_codes(const struct wharf_rans_source *source, struct lookup lookup,
                             uint64_t number, __m256i *reciprocals, __m256i *ranges)
{
    /* Shuffles are within halves of 128 bits, of which each gets 2 elements of both. */
    __m256 a = _mm256_castsi256_ps(_mm256_set_epi64x(
        code_at(source, lookup, number + 2), code_at(source, lookup, number + 3),
        code_at(source, lookup, number + 6), code_at(source, lookup, number + 7)));
    __m256 b = _mm256_castsi256_ps(_mm256_set_epi64x(
        code_at(source, lookup, number), code_at(source, lookup, number + 1),
        code_at(source, lookup, number + 4), code_at(source, lookup, number + 5)));

    *reciprocals = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88));
    *ranges = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd));
}

/* The upper halves of products. */
LANES_INLINE __m256i multiply_high(__m256i a, __m256i b)
{
    __m256i even = _mm256_srli_epi64(_mm256_mul_epu32(a, b), 32);
    __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));

    return _mm256_blend_epi32(even, odd, 0xaa);
}

/* All ones where a > b, of numbers without a sign. */
LANES_INLINE __m256i is_above(__m256i a, __m256i b)
{
    return _mm256_xor_si256(_mm256_cmpeq_epi32(_mm256_max_epu32(a, b), b), _mm256_set1_epi32(-1));
}

/* The words of a mask's coders, from `next_word` on, where 8 are overwritten. */
LANES_INLINE uint16_t *write_words(__m256i states, __m256i writes, uint16_t *next_word)
{
    uint32_t mask = (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(writes));
    __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i_u *)&writers[mask]));
    __m256i low = _mm256_and_si256(states, _mm256_set1_epi32(0xffff));
    __m256i words = _mm256_permutevar8x32_epi32(low, order);

    _mm_storeu_si128((__m128i_u *)next_word, _mm_packus_epi32(_mm256_castsi256_si128(words),
                                                              _mm256_extracti128_si256(words, 1)));
    return next_word + __builtin_popcount(mask);
}

LANES_INLINE uint16_t *code_part(const struct wharf_rans_source *source, struct lookup lookup,
                                 struct part *part, uint64_t number, uint32_t group,
                                 uint16_t *next_word)
{
    int n_bits = (int)source->shape.n_bits;
    __m256i one = _mm256_set1_epi32(1);
    __m256i reciprocals;
    __m256i ranges;

    find_codes(source, lookup, number, &reciprocals, &ranges);
    __m256i less_1 = _mm256_and_si256(ranges, _mm256_set1_epi32(0xffff));
    __m256i first = _mm256_srli_epi32(ranges, 16);
    __m256i f = _mm256_add_epi32(less_1, one);
    /* That of all slots is 2^32, less 1. */
    __m256i most = _mm256_sub_epi32(_mm256_slli_epi32(f, 32 - n_bits), one);
    __m256i states = part->states;
    __m256i writes = is_above(states, most);

    next_word = write_words(states, writes, next_word);
    states = _mm256_blendv_epi8(states, _mm256_srli_epi32(states, 16), writes);
    part->start = _mm256_blendv_epi8(part->start, _mm256_set1_epi32((int)group), writes);
    part->start_state = _mm256_blendv_epi8(part->start_state, states, writes);

    __m256i quotients = multiply_high(states, reciprocals);
    __m256i rest = _mm256_sub_epi32(states, _mm256_mullo_epi32(quotients, f));
    __m256i is_more = is_above(rest, less_1);
    quotients = _mm256_sub_epi32(quotients, is_more);
    rest = _mm256_sub_epi32(rest, _mm256_and_si256(is_more, f));
    part->states =
        _mm256_add_epi32(_mm256_slli_epi32(quotients, n_bits), _mm256_add_epi32(first, rest));
    return next_word;
}

#define N_PARTS 4
#define CODE_NAME wharf_rans_code_avx2
#include "encoders/rans/rans_code_body.h"

#endif
