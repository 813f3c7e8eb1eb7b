/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The form for AVX-512 with its instructions on bytes (VBMI, VBMI2): a line of 64 bytes, or half of
 * one of 128, at a time.
 */
#include "encoders/line/line_loop.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#include "encoders/line/line_bits.h"

#define LOOP wharf_line_loop_avx512
#define FEATURES "avx2,bmi2,popcnt,avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2"
/* clang has no such word for functions, and refuses it. */
#ifdef __clang__
#define TARGET __attribute__((target(FEATURES)))
#else
#define TARGET __attribute__((target(FEATURES ",prefer-vector-width=512")))
#endif
#define TARGET_INLINE TARGET __attribute__((always_inline)) static inline

TARGET_INLINE __m512i load_64(const uint8_t *p)
{
    return _mm512_loadu_si512(p);
}

/* ---- bdi ------------------------------------------------------------------------------------ */

/* The first n bytes of a vector, 32 or 64. */
TARGET_INLINE void store_some(uint8_t *p, __m512i v, uint32_t n)
{
    if (n < 64)
        _mm256_storeu_si256((__m256i_u *)p, _mm512_castsi512_si256(v));
    else
        _mm512_storeu_si512(p, v);
}

TARGET_INLINE void put_repeat(const uint8_t *content, uint32_t n, uint8_t *out)
{
    __m512i value = _mm512_set1_epi64((int64_t)wharf_line_load(content, 8));

    for (uint32_t at = 0; at < n; at += 64)
        store_some(out + at, value, n);
}

#define LOAD_8(p) _mm_loadl_epi64((const __m128i_u *)(p))
#define LOAD_16(p) _mm_loadu_si128((const __m128i_u *)(p))
#define LOAD_32(p) _mm256_loadu_si256((const __m256i_u *)(p))
#define SET_8(v) _mm512_set1_epi64((int64_t)(v))
#define SET_4(v) _mm512_set1_epi32((int)(v))
#define SET_2(v) _mm512_set1_epi16((short)(v))

/* The base is added where a value's bit is 0. */
#define DEFINE_PUT(b, d, load_deltas, widen, mask_add, mask_type)                                  \
    TARGET_INLINE void put_##b##_##d(const uint8_t *content, uint32_t n, uint8_t *out)             \
    {                                                                                              \
        uint32_t mask_nbytes = (n / b + 7) / 8;                                                    \
        uint64_t mask = ~wharf_line_load(content, 8);                                              \
        __m512i base = SET_##b(wharf_line_load(content + mask_nbytes, b));                         \
        const uint8_t *p = content + mask_nbytes + b;                                              \
        for (uint32_t at = 0; at < n; at += 64, p += 64 / b * d) {                                 \
            __m512i deltas = widen(load_deltas(p));                                                \
            store_some(out + at, mask_add(deltas, (mask_type)mask, deltas, base), n);              \
            if (n > 64)                                                                            \
                mask >>= 64 / b;                                                                   \
        }                                                                                          \
    }
DEFINE_PUT(8, 1, LOAD_8, _mm512_cvtepi8_epi64, _mm512_mask_add_epi64, __mmask8)
DEFINE_PUT(8, 2, LOAD_16, _mm512_cvtepi16_epi64, _mm512_mask_add_epi64, __mmask8)
DEFINE_PUT(8, 4, LOAD_32, _mm512_cvtepi32_epi64, _mm512_mask_add_epi64, __mmask8)
DEFINE_PUT(4, 1, LOAD_16, _mm512_cvtepi8_epi32, _mm512_mask_add_epi32, __mmask16)
DEFINE_PUT(4, 2, LOAD_32, _mm512_cvtepi16_epi32, _mm512_mask_add_epi32, __mmask16)
DEFINE_PUT(2, 1, LOAD_32, _mm512_cvtepi8_epi16, _mm512_mask_add_epi16, __mmask32)

#include "encoders/line/line_loop_fpc.h"

/* ---- cpack ---------------------------------------------------------------------------------- */

TARGET_INLINE bool put_cpack(const uint8_t *content, const struct wharf_line_code *code, uint32_t n,
                             uint8_t *out)
{
    const __m512i shifts =
        _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
    const __m512i halves = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    /* A word's place is its nibble, with a byte of its own or without. */
    const __m512i places = _mm512_setr_epi32(0, 0, 1, 2, 3, 0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 0);
    const __m512i sources = _mm512_set1_epi32(7), most = _mm512_set1_epi32(code->variant);
    const uint8_t *dictionary = content + wharf_line_cpack_head_nbytes(n);
    const uint8_t *bytes = dictionary + 4 * (size_t)code->variant;
    __m512i words =
        _mm512_maskz_permutexvar_epi32(0x1e1e, places, _mm512_castsi128_si512(LOAD_16(dictionary)));
    uint32_t n_taken = 0, wrong = 0;

    for (uint32_t at = 0; at < n; at += 64) {
        __m512i pair = _mm512_castsi128_si512(LOAD_8(content + at / 8));
        __m512i nibbles = _mm512_srlv_epi32(_mm512_permutexvar_epi32(halves, pair), shifts);
        uint32_t has_byte = _mm512_test_epi32_mask(nibbles, _mm512_set1_epi32(8));
        uint32_t is_over = _mm512_cmpgt_epu32_mask(_mm512_and_si512(nibbles, sources), most);
        if (n < 64) {
            has_byte &= 255;
            is_over &= 255;
        }
        __m512i dealt = _mm512_maskz_expand_epi32((__mmask16)has_byte,
                                                  _mm512_cvtepu8_epi32(LOAD_16(bytes + n_taken)));
        __m512i word = _mm512_permutexvar_epi32(nibbles, words);
        word = _mm512_mask_andnot_epi32(word, (__mmask16)has_byte, _mm512_set1_epi32(255), word);
        store_some(out + at, _mm512_or_si512(word, dealt), n);
        n_taken += (uint32_t)_mm_popcnt_u32(has_byte);
        wrong |= is_over;
    }
    return !wrong && n_taken <= code->n_given;
}

/* ---- palette -------------------------------------------------------------------------------- */

/* For 64 fields of 3 or 4 bits: in which word of 8 bytes a field's bytes go, and from which bit on
 * it stands there. */
static const uint8_t words_of_3[64] __attribute__((aligned(64))) = {
    0, 1, 2, 0,  0,  0,  0,  0, 3, 4, 5,  0,  0,  0,  0,  0, 6, 7, 8,  0,  0,  0,
    0, 0, 9, 10, 11, 0,  0,  0, 0, 0, 12, 13, 14, 0,  0,  0, 0, 0, 15, 16, 17, 0,
    0, 0, 0, 0,  18, 19, 20, 0, 0, 0, 0,  0,  21, 22, 23, 0, 0, 0, 0,  0};
static const uint8_t words_of_4[64] __attribute__((aligned(64))) = {
    0, 1, 2,  3,  0,  0,  0,  0,  4, 5, 6,  7,  0,  0,  0,  0,  8, 9, 10, 11, 0,  0,
    0, 0, 12, 13, 14, 15, 0,  0,  0, 0, 16, 17, 18, 19, 0,  0,  0, 0, 20, 21, 22, 23,
    0, 0, 0,  0,  24, 25, 26, 27, 0, 0, 0,  0,  28, 29, 30, 31, 0, 0, 0,  0};

TARGET_INLINE __m512i spread_64(const uint8_t *fields, uint32_t nbits)
{
    __m512i words = _mm512_permutexvar_epi8(
        _mm512_load_si512(nbits == 3 ? words_of_3 : words_of_4),
        _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i_u *)fields)));
    __m512i shifts = _mm512_set1_epi64(nbits == 3 ? 0x15120f0c09060300 : 0x1c1814100c080400);

    return _mm512_and_si512(_mm512_multishift_epi64_epi8(shifts, words),
                            _mm512_set1_epi8((char)((1 << nbits) - 1)));
}

/* Bytes of an exponent in `e` bits and a field in the others, whose lowest bit is the sign. */
TARGET_INLINE __m512i join_bytes(__m512i exponents, __m512i fields, uint32_t e)
{
    __m512i upper = _mm512_and_si512(_mm512_slli_epi16(exponents, 8 - e),
                                     _mm512_set1_epi8((char)(256 - (256 >> e))));
    __m512i byte = _mm512_or_si512(upper, fields);

    /* The upper seven bits, and the lowest one in front of them. */
    return _mm512_ternarylogic_epi64(_mm512_set1_epi8(0x7f), _mm512_srli_epi16(byte, 1),
                                     _mm512_slli_epi16(byte, 7), 0xca);
}

/* 2 k bytes, of k pairs of which `low` and `high` have the bytes. */
TARGET_INLINE void store_pairs(uint8_t *out, __m512i first, __m512i second, uint32_t k)
{
    if (k == 64) {
        _mm512_storeu_si512(out, first);
        _mm512_storeu_si512(out + 64, second);
    } else {
        store_some(out, first, 2 * k);
    }
}

TARGET_INLINE bool put_values(const struct wharf_line_group *group, const uint8_t *content,
                              uint32_t n_escapes, uint32_t n, uint8_t *out, uint32_t type,
                              uint32_t width)
{
    uint32_t f = type == WHARF_LINE_BF16 ? 8 : type == WHARF_LINE_E4M3 ? 4 : 3;
    uint32_t n_values = type <= WHARF_LINE_F16 ? n / 2 : n, n_taken = 0;
    uint32_t k = n_values < 64 ? n_values : 64;
    uint64_t there = k == 64 ? UINT64_MAX : (UINT64_C(1) << k) - 1;
    const uint8_t *fields = content + (type == WHARF_LINE_F16 ? n_values : 0);
    const uint8_t *indexes = fields + n_values * f / 8;
    const uint8_t *escapes = indexes + n_values * width / 8;
    __m512i palette = _mm512_broadcast_i32x4(LOAD_16(group->palette));

    for (uint32_t i = 0; i < n_values; i += 64) {
        __m512i index = spread_64(indexes + i * width / 8, width);
        uint64_t is_escape =
            _mm512_cmpeq_epi8_mask(index, _mm512_set1_epi8((char)((1 << width) - 1))) & there;
        __m512i exponents = _mm512_mask_expand_epi8(_mm512_shuffle_epi8(palette, index), is_escape,
                                                    load_64(escapes + n_taken));
        n_taken += (uint32_t)_mm_popcnt_u64(is_escape);
        __m512i low, high;
        if (type == WHARF_LINE_BF16) {
            low = load_64(fields + i);
            high = exponents;
        } else {
            low = load_64(content + i);
            high = join_bytes(exponents, spread_64(fields + i * f / 8, f), 8 - f);
        }
        if (type > WHARF_LINE_F16) {
            store_some(out + i, high, k);
            continue;
        }
        __m512i first = _mm512_or_si512(
            _mm512_cvtepu8_epi16(_mm512_castsi512_si256(low)),
            _mm512_slli_epi16(_mm512_cvtepu8_epi16(_mm512_castsi512_si256(high)), 8));
        __m512i second = _mm512_or_si512(
            _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(low, 1)),
            _mm512_slli_epi16(_mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(high, 1)), 8));
        if (type == WHARF_LINE_BF16) {
            first = _mm512_shldi_epi16(first, first, 15);
            second = _mm512_shldi_epi16(second, second, 15);
        }
        store_pairs(out + 2 * i, first, second, k);
    }
    return n_taken <= n_escapes;
}

#include "encoders/line/line_loop_types.h"

#include "encoders/line/line_loop_body.h"

#endif
