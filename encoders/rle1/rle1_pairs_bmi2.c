/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Varints of one and two bytes, eight at a time: one instruction finds where the eighth ends,
 * another deals the bytes out to pairs.
 */
#include "encoders/rle1/rle1_pairs.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define TARGET __attribute__((target("bmi,bmi2,avx2")))
#define TARGET_INLINE TARGET __attribute__((always_inline)) static inline

/* Bit i: byte i of the 16 at `in` is not a number's last. */
TARGET_INLINE uint32_t continuations(const uint8_t *in)
{
    return (uint32_t)_mm_movemask_epi8(_mm_loadu_si128((const __m128i *)in));
}

/* The bytes at `in` of four numbers as they stand there, each in a pair of its own; bit k of
 * `are_pairs`: number k has two. */
TARGET_INLINE uint64_t deal_four(const uint8_t *in, uint32_t are_pairs)
{
    const uint64_t lower = 0x00ff00ff00ff00ffu;
    uint64_t word;

    memcpy(&word, in, 8);
    /* 0xff where a number has a second byte. */
    uint64_t upper = _pdep_u64(are_pairs, 0x0100010001000100u) * 0xff;
    return _pdep_u64(word, lower | upper);
}

TARGET_INLINE void put_numbers(uint8_t *out, __m128i values, unsigned nbytes)
{
    if (nbytes == 1) {
        __m128i narrow = _mm_and_si128(values, _mm_set1_epi16(0xff));
        _mm_storel_epi64((__m128i *)out, _mm_packus_epi16(narrow, narrow));
    } else if (nbytes == 2) {
        _mm_storeu_si128((__m128i *)out, values);
    } else if (nbytes == 4) {
        _mm256_storeu_si256((__m256i *)out, _mm256_cvtepi16_epi32(values));
    } else {
        _mm256_storeu_si256((__m256i *)out, _mm256_cvtepi16_epi64(values));
        _mm256_storeu_si256((__m256i *)(out + 32),
                            _mm256_cvtepi16_epi64(_mm_unpackhi_epi64(values, values)));
    }
}

/* All that one look needs: m of the eight numbers at `next`, 1 to 8, or none if one is longer. */
struct eight {
    unsigned nbytes; /* of the m numbers; 0: none */
    __m128i numbers;
};

TARGET_INLINE struct eight look(const uint8_t *next, unsigned m)
{
    struct eight eight = {0, _mm_setzero_si128()};
    uint32_t more = continuations(next);
    uint32_t ends = ~more;
    unsigned nbytes = (unsigned)_tzcnt_u32(_pdep_u32(1u << (m - 1), ends)) + 1;
    unsigned half = (unsigned)_tzcnt_u32(_pdep_u32(8, ends)) + 1;

    /* Two in a row: a number of three bytes.  Of numbers behind the m-th nothing is known. */
    if (_bzhi_u32(more & more << 1, nbytes))
        return eight;
    uint32_t are_pairs = _pext_u32(more << 1, ends);
    half = half < 8 ? half : 8;
    __m128i pairs = _mm_set_epi64x((int64_t)deal_four(next + half, are_pairs >> 4),
                                   (int64_t)deal_four(next, are_pairs & 15));
    eight.nbytes = nbytes;
    eight.numbers = _mm_or_si128(_mm_and_si128(pairs, _mm_set1_epi16(0x7f)),
                                 _mm_srli_epi16(_mm_and_si128(pairs, _mm_set1_epi16(0x7f00)), 1));
    return eight;
}

/* The first m of eight numbers, the others as zeros. */
TARGET_INLINE __m128i first_of(__m128i numbers, unsigned m)
{
    const __m128i places = _mm_set_epi16(7, 6, 5, 4, 3, 2, 1, 0);

    return _mm_and_si128(numbers, _mm_cmpgt_epi16(_mm_set1_epi16((short)m), places));
}

/* Numbers have 14 bits: none is negative before it is unzigzagged, and bytes alone may be too short
 * for them. */
TARGET_INLINE unsigned take_pairs(struct wharf_rle_input *in, uint8_t *out, const uint8_t *out_end,
                                  unsigned n, unsigned nbytes, int is_signed, uint64_t *all)
{
    const uint8_t *next = in->next;
    __m128i every = _mm_setzero_si128();
    unsigned i = 0;

    while (i < n && in->end - next >= WHARF_RLE1_PAIRS_NBYTES &&
           (size_t)(out_end - out) >= 8 * nbytes) {
        unsigned m = n - i < 8 ? n - i : 8;
        struct eight eight = look(next, m);
        __m128i values = eight.numbers;
        if (eight.nbytes == 0)
            break;
        if (nbytes == 1)
            every = _mm_or_si128(every, first_of(values, m));
        if (is_signed)
            values = _mm_xor_si128(
                _mm_srli_epi16(values, 1),
                _mm_sub_epi16(_mm_setzero_si128(), _mm_and_si128(values, _mm_set1_epi16(1))));
        put_numbers(out, values, nbytes);
        next += eight.nbytes;
        out += (size_t)m * nbytes;
        i += m;
    }
    if (nbytes == 1)
        *all |= (uint64_t)!_mm_testz_si128(every, _mm_set1_epi16(0x7f00)) << 8;
    in->next = next;
    return i;
}

#define CALL(nbytes, is_signed) return take_pairs(in, out, out_end, n, nbytes, is_signed, all)

TARGET static unsigned take_by_type(struct wharf_rle_input *in, uint8_t *out,
                                    const uint8_t *out_end, unsigned n, unsigned nbytes,
                                    int is_signed, uint64_t *all)
{
    switch (2 * nbytes + (is_signed != 0)) {
    case 2:
        CALL(1, 0);
    case 3:
        CALL(1, 1);
    case 4:
        CALL(2, 0);
    case 5:
        CALL(2, 1);
    case 8:
        CALL(4, 0);
    case 9:
        CALL(4, 1);
    case 16:
        CALL(8, 0);
    default:
        CALL(8, 1);
    }
}

unsigned wharf_rle1_take_pairs(struct wharf_rle_input *in, uint8_t *out, const uint8_t *out_end,
                               unsigned n, unsigned nbytes, int is_signed, uint64_t *all)
{
    if (!__builtin_cpu_supports("bmi2") || !__builtin_cpu_supports("avx2"))
        return 0;
    return take_by_type(in, out, out_end, n, nbytes, is_signed, all);
}

#else

unsigned wharf_rle1_take_pairs(struct wharf_rle_input *in, uint8_t *out, const uint8_t *out_end,
                               unsigned n, unsigned nbytes, int is_signed, uint64_t *all)
{
    (void)in, (void)out, (void)out_end, (void)n, (void)nbytes, (void)is_signed, (void)all;
    return 0;
}

#endif
