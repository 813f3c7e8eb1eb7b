/* SPDX-License-Identifier: Apache-2.0 */
/* The form for AVX2 and BMI2: 32 bytes of bdi and cpack at a time, 16 values of palette. */
#include "encoders/line/line_loop.h"

#if defined(__x86_64__)

#include <immintrin.h>
#include <string.h>

#include "encoders/line/line_bits.h"

#define LOOP wharf_line_loop_avx2
#define TARGET __attribute__((target("avx2,bmi2,popcnt")))
#define TARGET_INLINE TARGET __attribute__((always_inline)) static inline

TARGET_INLINE __m128i load_4(const uint8_t *p)
{
    return _mm_cvtsi32_si128((int)wharf_line_load(p, 4));
}

TARGET_INLINE __m128i load_8(const uint8_t *p)
{
    return _mm_loadl_epi64((const __m128i_u *)p);
}

TARGET_INLINE __m128i load_16(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i_u *)p);
}

TARGET_INLINE void store_32(uint8_t *p, __m256i v)
{
    _mm256_storeu_si256((__m256i_u *)p, v);
}

/* ---- bdi ------------------------------------------------------------------------------------ */

TARGET_INLINE void put_repeat(const uint8_t *content, uint32_t n, uint8_t *out)
{
    __m256i value = _mm256_set1_epi64x((int64_t)wharf_line_load(content, 8));

    for (uint32_t at = 0; at < n; at += 32)
        store_32(out + at, value);
}

/* The base where a value's bit is 0, else zero. */
TARGET_INLINE __m256i bases_8(uint64_t mask, __m256i base)
{
    const __m256i bits = _mm256_setr_epi64x(1, 2, 4, 8);

    return _mm256_andnot_si256(
        _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x((int64_t)mask), bits), bits), base);
}

TARGET_INLINE __m256i bases_4(uint64_t mask, __m256i base)
{
    const __m256i bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);

    return _mm256_andnot_si256(
        _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)mask), bits), bits), base);
}

TARGET_INLINE __m256i bases_2(uint64_t mask, __m256i base)
{
    const __m256i bits = _mm256_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096,
                                           8192, 16384, INT16_MIN);

    return _mm256_andnot_si256(
        _mm256_cmpeq_epi16(_mm256_and_si256(_mm256_set1_epi16((short)mask), bits), bits), base);
}

#define DEFINE_PUT(b, d, set_base, load_deltas, widen, add)                                        \
    TARGET_INLINE void put_##b##_##d(const uint8_t *content, uint32_t n, uint8_t *out)             \
    {                                                                                              \
        uint32_t mask_nbytes = (n / b + 7) / 8;                                                    \
        uint64_t mask = wharf_line_load(content, 8);                                               \
        __m256i base = set_base(wharf_line_load(content + mask_nbytes, b));                        \
        const uint8_t *deltas = content + mask_nbytes + b;                                         \
        for (uint32_t at = 0; at < n; at += 32, deltas += 32 / b * d, mask >>= 32 / b)             \
            store_32(out + at, add(widen(load_deltas(deltas)), bases_##b(mask, base)));            \
    }
#define SET_8(v) _mm256_set1_epi64x((int64_t)(v))
#define SET_4(v) _mm256_set1_epi32((int)(v))
#define SET_2(v) _mm256_set1_epi16((short)(v))
DEFINE_PUT(8, 1, SET_8, load_4, _mm256_cvtepi8_epi64, _mm256_add_epi64)
DEFINE_PUT(8, 2, SET_8, load_8, _mm256_cvtepi16_epi64, _mm256_add_epi64)
DEFINE_PUT(8, 4, SET_8, load_16, _mm256_cvtepi32_epi64, _mm256_add_epi64)
DEFINE_PUT(4, 1, SET_4, load_8, _mm256_cvtepi8_epi32, _mm256_add_epi32)
DEFINE_PUT(4, 2, SET_4, load_16, _mm256_cvtepi16_epi32, _mm256_add_epi32)
DEFINE_PUT(2, 1, SET_2, load_16, _mm256_cvtepi8_epi16, _mm256_add_epi16)

#include "encoders/line/line_loop_fpc.h"

/* ---- cpack and palette: bytes that only some of eight values have --------------------------- */

/* Deals the next bytes out to those of eight whose bits are set, and goes on behind them. */
TARGET_INLINE uint64_t deal_bytes(const uint8_t *bytes, uint32_t *n_taken, uint32_t bits)
{
    uint64_t places = _pdep_u64(bits, 0x0101010101010101u) * 255;
    uint64_t dealt = _pdep_u64(wharf_line_load(bytes + *n_taken, 8), places);

    *n_taken += (uint32_t)_mm_popcnt_u32(bits);
    return dealt;
}

TARGET_INLINE bool put_cpack(const uint8_t *content, const struct wharf_line_code *code, uint32_t n,
                             uint8_t *out)
{
    uint32_t n_words = code->variant, n_taken = 0;
    const uint8_t *dictionary = content + wharf_line_cpack_head_nbytes(n);
    const uint8_t *bytes = dictionary + 4 * n_words;
    const __m256i most = _mm256_set1_epi32((int)n_words), low = _mm256_set1_epi32(255);
    /* Word 0 is zero, so that a word's source is its place. */
    __m256i words = _mm256_permutevar8x32_epi32(_mm256_castsi128_si256(load_16(dictionary)),
                                                _mm256_setr_epi32(0, 0, 1, 2, 3, 0, 0, 0));
    __m256i wrong = _mm256_setzero_si256();

    words = _mm256_blend_epi32(words, _mm256_setzero_si256(), 0xe1);
    for (uint32_t at = 0; at < n; at += 32) {
        uint32_t nibbles = (uint32_t)wharf_line_load(content + at / 8, 4);
        uint64_t spread = _pdep_u64(nibbles, 0x0f0f0f0f0f0f0f0fu);
        __m256i source =
            _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)(spread & 0x0707070707070707u)));
        uint32_t has_byte = (uint32_t)_pext_u32(nibbles, 0x88888888u);
        __m256i dealt =
            _mm256_cvtepu8_epi32(_mm_cvtsi64_si128((int64_t)deal_bytes(bytes, &n_taken, has_byte)));
        __m256i has_low = _mm256_andnot_si256(bases_4(has_byte, low), low);
        wrong = _mm256_or_si256(wrong, _mm256_cmpgt_epi32(source, most));
        store_32(out + at, _mm256_or_si256(_mm256_andnot_si256(
                                               has_low, _mm256_permutevar8x32_epi32(words, source)),
                                           dealt));
    }
    return _mm256_testz_si256(wrong, wrong) && n_taken <= code->n_given;
}

/* Sixteen fields of 3 or 4 bits, each in a byte. */
TARGET_INLINE __m128i spread_16(const uint8_t *fields, uint32_t nbits)
{
    uint64_t mask = nbits == 3 ? 0x0707070707070707u : 0x0f0f0f0f0f0f0f0fu;
    uint64_t first = _pdep_u64(wharf_line_load(fields, 4), mask);
    uint64_t second = _pdep_u64(wharf_line_load(fields + nbits, 4), mask);

    return _mm_set_epi64x((int64_t)second, (int64_t)first);
}

/* Sixteen exponents. */
TARGET_INLINE __m128i exponents_16(const uint8_t *indexes, uint32_t width, __m128i palette,
                                   const uint8_t *escapes, uint32_t *n_taken)
{
    __m128i index = spread_16(indexes, width);
    __m128i is_escape = _mm_cmpeq_epi8(index, _mm_set1_epi8((char)((1 << width) - 1)));
    uint32_t bits = (uint32_t)_mm_movemask_epi8(is_escape);
    uint64_t first = deal_bytes(escapes, n_taken, bits & 255);
    uint64_t second = deal_bytes(escapes, n_taken, bits >> 8);

    return _mm_blendv_epi8(_mm_shuffle_epi8(palette, index),
                           _mm_set_epi64x((int64_t)second, (int64_t)first), is_escape);
}

/* Bytes of an exponent in `e` bits and a field in the others, whose lowest bit is the sign. */
TARGET_INLINE __m128i join_bytes(__m128i exponents, __m128i fields, uint32_t e)
{
    __m128i upper = _mm_slli_epi16(exponents, (int)(8 - e));
    __m128i byte =
        _mm_or_si128(_mm_and_si128(upper, _mm_set1_epi8((char)(256 - (256 >> e)))), fields);
    const __m128i sign = _mm_set1_epi8((char)0x80);

    return _mm_or_si128(_mm_andnot_si128(sign, _mm_srli_epi16(byte, 1)),
                        _mm_and_si128(sign, _mm_slli_epi16(byte, 7)));
}

TARGET_INLINE void store_pairs(uint8_t *out, __m128i low, __m128i high)
{
    _mm_storeu_si128((__m128i_u *)out, _mm_unpacklo_epi8(low, high));
    _mm_storeu_si128((__m128i_u *)(out + 16), _mm_unpackhi_epi8(low, high));
}

TARGET_INLINE __m128i rotate(__m128i pairs)
{
    return _mm_or_si128(_mm_srli_epi16(pairs, 1), _mm_slli_epi16(pairs, 15));
}

TARGET_INLINE bool put_values(const struct wharf_line_group *group, const uint8_t *content,
                              uint32_t n_escapes, uint32_t n, uint8_t *out, uint32_t type,
                              uint32_t width)
{
    uint32_t f = type == WHARF_LINE_BF16 ? 8 : type == WHARF_LINE_E4M3 ? 4 : 3;
    uint32_t n_values = type <= WHARF_LINE_F16 ? n / 2 : n, n_taken = 0;
    const uint8_t *fields = content + (type == WHARF_LINE_F16 ? n_values : 0);
    const uint8_t *indexes = fields + n_values * f / 8;
    const uint8_t *escapes = indexes + n_values * width / 8;
    __m128i palette = load_16(group->palette);

    for (uint32_t i = 0; i < n_values; i += 16) {
        __m128i exponents =
            exponents_16(indexes + i * width / 8, width, palette, escapes, &n_taken);
        if (type == WHARF_LINE_BF16) {
            __m128i own = load_16(fields + i);
            _mm_storeu_si128((__m128i_u *)(out + 2 * i), rotate(_mm_unpacklo_epi8(own, exponents)));
            _mm_storeu_si128((__m128i_u *)(out + 2 * i + 16),
                             rotate(_mm_unpackhi_epi8(own, exponents)));
        } else {
            __m128i bytes = join_bytes(exponents, spread_16(fields + i * f / 8, f), 8 - f);
            if (type == WHARF_LINE_F16)
                store_pairs(out + 2 * i, load_16(content + i), bytes);
            else
                _mm_storeu_si128((__m128i_u *)(out + i), bytes);
        }
    }
    return n_taken <= n_escapes;
}

#include "encoders/line/line_loop_types.h"

#include "encoders/line/line_loop_body.h"

#endif
