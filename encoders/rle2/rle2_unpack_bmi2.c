/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rle2_unpack_bmi2.c: unpacks eight numbers of up to 8 bits, or four of up to 16 bits, at a time.
 * One PDEP instruction distributes the bits of a word to its bytes, or to pairs of bytes.
 */
#include "encoders/rle2/rle2_unpack.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("bmi2,avx2")))
#define TARGET_INLINE TARGET __attribute__((always_inline)) static inline

typedef int8_t bytes8 __attribute__((vector_size(8)));
typedef int16_t shorts4 __attribute__((vector_size(8)));

/* Eight or four signed values, each at its place in a word, as values of a type. */
#define DEFINE_WIDEN(name, vector, lanes, nbits)                                                   \
    TARGET_INLINE void name##_##nbits(uint8_t *out, uint64_t word)                                 \
    {                                                                                              \
        typedef int##nbits##_t wide __attribute__((vector_size(lanes * nbits / 8)));               \
        vector narrow;                                                                             \
        memcpy(&narrow, &word, sizeof(narrow));                                                    \
        wide values = __builtin_convertvector(narrow, wide);                                       \
        memcpy(out, &values, sizeof(values));                                                      \
    }
DEFINE_WIDEN(widen8, bytes8, 8, 16)
DEFINE_WIDEN(widen8, bytes8, 8, 32)
DEFINE_WIDEN(widen8, bytes8, 8, 64)
DEFINE_WIDEN(widen4, shorts4, 4, 8)
DEFINE_WIDEN(widen4, shorts4, 4, 32)
DEFINE_WIDEN(widen4, shorts4, 4, 64)

/* Numbers of under 8 or 16 bits are no negative ones, and those of 8 or 16 bits are left to others
 * where a type is wider. */
TARGET_INLINE void put_8(uint8_t *out, uint64_t word, unsigned nbytes)
{
    if (nbytes == 1)
        memcpy(out, &word, 8);
    else if (nbytes == 2)
        widen8_16(out, word);
    else if (nbytes == 4)
        widen8_32(out, word);
    else
        widen8_64(out, word);
}

TARGET_INLINE void put_4(uint8_t *out, uint64_t word, unsigned nbytes)
{
    if (nbytes == 1)
        widen4_8(out, word);
    else if (nbytes == 2)
        memcpy(out, &word, 8);
    else if (nbytes == 4)
        widen4_32(out, word);
    else
        widen4_64(out, word);
}

TARGET_INLINE uint64_t load_big(const uint8_t *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, 8);
    return __builtin_bswap64(word);
}

/* Eight numbers of up to 8 bits, each in a byte. */
TARGET_INLINE uint64_t deal_8(const uint8_t *bytes, unsigned width, uint64_t mask)
{
    return __builtin_bswap64(_pdep_u64(load_big(bytes) >> (64 - 8 * width), mask));
}

/* Numbers i to i + 3, of up to 16 bits, each in a pair of bytes. */
TARGET_INLINE uint64_t deal_4(const uint8_t *bytes, unsigned i, unsigned width, uint64_t mask)
{
    size_t bit = (size_t)i * width;
    uint64_t u = _pdep_u64(load_big(bytes + bit / 8) << bit % 8 >> (64 - 4 * width), mask);

    /* The first number is in the top pair of bytes. */
    return u >> 48 | (u >> 16 & 0xffff0000u) | (u << 16 & 0xffff00000000u) | u << 48;
}

TARGET_INLINE unsigned unpack_8(const uint8_t *bytes, unsigned n, unsigned width, uint8_t *out,
                                unsigned nbytes, int is_signed)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t mask = ones * ((1u << width) - 1);
    unsigned i = 0;

    for (; i + 8 <= n; i += 8, bytes += width) {
        uint64_t u = deal_8(bytes, width, mask);
        if (is_signed)
            u = (u >> 1 & ones * 0x7f) ^ (u & ones) * 0xff;
        put_8(out + i * nbytes, u, nbytes);
    }
    return i;
}

TARGET_INLINE unsigned unpack_4(const uint8_t *bytes, unsigned n, unsigned width, uint8_t *out,
                                unsigned nbytes, int is_signed, uint64_t *all)
{
    const uint64_t ones = 0x0001000100010001u;
    uint64_t mask = ones * ((1u << width) - 1);
    unsigned i = 0;

    for (; i + 4 <= n; i += 4) {
        uint64_t u = deal_4(bytes, i, width, mask);
        *all |= u;
        if (is_signed)
            u = (u >> 1 & ones * 0x7fff) ^ (u & ones) * 0xffff;
        put_4(out + i * nbytes, u, nbytes);
    }
    /* Any of the four. */
    *all = (*all | *all >> 16 | *all >> 32 | *all >> 48) & 0xffff;
    return i;
}

#define CALL_BY_TYPE(function, ...)                                                                \
    switch (2 * nbytes + (is_signed != 0)) {                                                       \
    case 2:                                                                                        \
        return function(bytes, n, width, out, 1, 0, ##__VA_ARGS__);                                \
    case 3:                                                                                        \
        return function(bytes, n, width, out, 1, 1, ##__VA_ARGS__);                                \
    case 4:                                                                                        \
        return function(bytes, n, width, out, 2, 0, ##__VA_ARGS__);                                \
    case 5:                                                                                        \
        return function(bytes, n, width, out, 2, 1, ##__VA_ARGS__);                                \
    case 8:                                                                                        \
        return function(bytes, n, width, out, 4, 0, ##__VA_ARGS__);                                \
    case 9:                                                                                        \
        return function(bytes, n, width, out, 4, 1, ##__VA_ARGS__);                                \
    case 16:                                                                                       \
        return function(bytes, n, width, out, 8, 0, ##__VA_ARGS__);                                \
    default:                                                                                       \
        return function(bytes, n, width, out, 8, 1, ##__VA_ARGS__);                                \
    }

TARGET static unsigned unpack_narrow(const uint8_t *bytes, unsigned n, unsigned width, uint8_t *out,
                                     unsigned nbytes, int is_signed){CALL_BY_TYPE(unpack_8)}

TARGET static unsigned unpack_wide(const uint8_t *bytes, unsigned n, unsigned width, uint8_t *out,
                                   unsigned nbytes, int is_signed, uint64_t *all)
{
    CALL_BY_TYPE(unpack_4, all)
}

static int has_instructions(void)
{
    return __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("avx2");
}

/* n, or if there is room as many values more as make whole groups of 4 or 8.  A group then still
 * begins in the packed bytes, behind which a word may be read. */
static unsigned round_up(unsigned n, unsigned group, size_t room)
{
    unsigned up = (n + group - 1) & -group;

    return up <= room ? up : n;
}

unsigned wharf_rle2_unpack_bmi2(const uint8_t *bytes, unsigned n, unsigned width, uint8_t *out,
                                size_t room, unsigned nbytes, int is_signed, uint64_t *all)
{
    if (width > 16 || !has_instructions())
        return 0;
    if (width < 8 || (width == 8 && (nbytes == 1 || is_signed)))
        return unpack_narrow(bytes, round_up(n, 8, room), width, out, nbytes, is_signed);
    /* A byte is too short for some numbers, so that those behind the n must not be looked at. */
    if (nbytes >= 2)
        n = round_up(n, 4, room);
    if (width < 16 || nbytes <= 2 || is_signed)
        return unpack_wide(bytes, n, width, out, nbytes, is_signed, all);
    return 0;
}

/* ---- sums --------------------------------------------------------------------------------- */

/* Eight bytes, and four pairs of them, each plus a base. */
TARGET_INLINE void put_sums_8(uint8_t *out, uint64_t word, uint64_t base, unsigned nbytes)
{
    __m128i bytes = _mm_cvtsi64_si128((int64_t)word);

    if (nbytes == 1) {
        _mm_storel_epi64((__m128i_u *)out, _mm_add_epi8(bytes, _mm_set1_epi8((char)base)));
    } else if (nbytes == 2) {
        _mm_storeu_si128((__m128i_u *)out,
                         _mm_add_epi16(_mm_cvtepu8_epi16(bytes), _mm_set1_epi16((short)base)));
    } else if (nbytes == 4) {
        _mm256_storeu_si256((__m256i_u *)out, _mm256_add_epi32(_mm256_cvtepu8_epi32(bytes),
                                                               _mm256_set1_epi32((int)base)));
    } else {
        __m256i bases = _mm256_set1_epi64x((int64_t)base);
        _mm256_storeu_si256((__m256i_u *)out, _mm256_add_epi64(_mm256_cvtepu8_epi64(bytes), bases));
        _mm256_storeu_si256(
            (__m256i_u *)(out + 32),
            _mm256_add_epi64(_mm256_cvtepu8_epi64(_mm_srli_si128(bytes, 4)), bases));
    }
}

TARGET_INLINE void put_sums_4(uint8_t *out, uint64_t word, uint64_t base, unsigned nbytes)
{
    __m128i pairs = _mm_cvtsi64_si128((int64_t)word);

    if (nbytes == 2)
        _mm_storel_epi64((__m128i_u *)out, _mm_add_epi16(pairs, _mm_set1_epi16((short)base)));
    else if (nbytes == 4)
        _mm_storeu_si128((__m128i_u *)out,
                         _mm_add_epi32(_mm_cvtepu16_epi32(pairs), _mm_set1_epi32((int)base)));
    else
        _mm256_storeu_si256((__m256i_u *)out, _mm256_add_epi64(_mm256_cvtepu16_epi64(pairs),
                                                               _mm256_set1_epi64x((int64_t)base)));
}

TARGET_INLINE unsigned sum_8(const uint8_t *bytes, unsigned n, unsigned width, uint64_t base,
                             uint8_t *out, unsigned nbytes)
{
    uint64_t mask = 0x0101010101010101u * ((1u << width) - 1);
    unsigned i = 0;

    for (; i + 8 <= n; i += 8, bytes += width)
        put_sums_8(out + i * nbytes, deal_8(bytes, width, mask), base, nbytes);
    return i;
}

TARGET_INLINE unsigned sum_4(const uint8_t *bytes, unsigned n, unsigned width, uint64_t base,
                             uint8_t *out, unsigned nbytes)
{
    uint64_t mask = 0x0001000100010001u * ((1u << width) - 1);
    unsigned i = 0;

    for (; i + 4 <= n; i += 4)
        put_sums_4(out + i * nbytes, deal_4(bytes, i, width, mask), base, nbytes);
    return i;
}

TARGET static unsigned sum_narrow(const uint8_t *bytes, unsigned n, unsigned width, uint64_t base,
                                  uint8_t *out, unsigned nbytes)
{
    switch (nbytes) {
    case 1:
        return sum_8(bytes, n, width, base, out, 1);
    case 2:
        return sum_8(bytes, n, width, base, out, 2);
    case 4:
        return sum_8(bytes, n, width, base, out, 4);
    default:
        return sum_8(bytes, n, width, base, out, 8);
    }
}

TARGET static unsigned sum_wide(const uint8_t *bytes, unsigned n, unsigned width, uint64_t base,
                                uint8_t *out, unsigned nbytes)
{
    switch (nbytes) {
    case 1:
        return 0;
    case 2:
        return sum_4(bytes, n, width, base, out, 2);
    case 4:
        return sum_4(bytes, n, width, base, out, 4);
    default:
        return sum_4(bytes, n, width, base, out, 8);
    }
}

unsigned wharf_rle2_sum_bmi2(const uint8_t *bytes, unsigned n, unsigned width, uint64_t base,
                             uint8_t *out, size_t room, unsigned nbytes)
{
    if (width > 16 || !has_instructions())
        return 0;
    return width <= 8 ? sum_narrow(bytes, round_up(n, 8, room), width, base, out, nbytes)
                      : sum_wide(bytes, round_up(n, 4, room), width, base, out, nbytes);
}

#else

unsigned wharf_rle2_sum_bmi2(const uint8_t *bytes, unsigned n, unsigned width, uint64_t base,
                             uint8_t *out, size_t room, unsigned nbytes)
{
    (void)bytes, (void)n, (void)width, (void)base, (void)out, (void)room, (void)nbytes;
    return 0;
}

unsigned wharf_rle2_unpack_bmi2(const uint8_t *bytes, unsigned n, unsigned width, uint8_t *out,
                                size_t room, unsigned nbytes, int is_signed, uint64_t *all)
{
    (void)bytes, (void)n, (void)width, (void)out, (void)room, (void)nbytes, (void)is_signed,
        (void)all;
    return 0;
}

#endif
