/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The form for BMI2 and AVX2.  It decodes many varints of equal size at a time, mixtures of one and
 * two bytes in groups of eight, and others one by one, without a branch that depends on a size.
 */
#include "encoders/rle1/rle1.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include "encoders/rle_fill.h"
#include "encoders/rle_values.h"

#define TARGET __attribute__((target("bmi,bmi2,avx2")))
#define TARGET_INLINE TARGET __attribute__((always_inline)) static inline

/* Bit i is set if byte i of the 32 at `in` is not the last of its number. */
TARGET_INLINE uint32_t continuations(const uint8_t *in)
{
    return (uint32_t)_mm256_movemask_epi8(_mm256_loadu_si256((const __m256i_u *)in));
}

/* ---- storing values ----------------------------------------------------------------------- */

TARGET_INLINE __m128i unzigzag(__m128i numbers, int is_signed)
{
    __m128i ones = _mm_and_si128(numbers, _mm_set1_epi16(1));

    return is_signed
               ? _mm_xor_si128(_mm_srli_epi16(numbers, 1), _mm_sub_epi16(_mm_setzero_si128(), ones))
               : numbers;
}

/* Stores eight numbers below 2^14, held in 16 bits each, as values. */
TARGET_INLINE void put_numbers(uint8_t *out, __m128i numbers, unsigned nbytes, int is_signed)
{
    __m128i values = unzigzag(numbers, is_signed);

    if (nbytes == 1) {
        __m128i narrow = _mm_and_si128(values, _mm_set1_epi16(0xff));
        _mm_storel_epi64((__m128i *)out, _mm_packus_epi16(narrow, narrow));
    } else if (nbytes == 2) {
        _mm_storeu_si128((__m128i_u *)out, values);
    } else if (nbytes == 4) {
        _mm256_storeu_si256((__m256i_u *)out, _mm256_cvtepi16_epi32(values));
    } else {
        _mm256_storeu_si256((__m256i_u *)out, _mm256_cvtepi16_epi64(values));
        _mm256_storeu_si256((__m256i_u *)(out + 32),
                            _mm256_cvtepi16_epi64(_mm_unpackhi_epi64(values, values)));
    }
}

/* Stores eight numbers of one byte. */
TARGET_INLINE void put_bytes(uint8_t *out, const uint8_t *in, unsigned nbytes, int is_signed)
{
    put_numbers(out, _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i_u *)in)), nbytes, is_signed);
}

/* Stores eight numbers of two bytes. */
TARGET_INLINE void put_pairs(uint8_t *out, __m128i pairs, unsigned nbytes, int is_signed)
{
    __m128i low = _mm_and_si128(pairs, _mm_set1_epi16(0x7f));
    __m128i high = _mm_srli_epi16(_mm_and_si128(pairs, _mm_set1_epi16(0x7f00)), 1);

    put_numbers(out, _mm_or_si128(low, high), nbytes, is_signed);
}

/* ---- eight numbers of one and two bytes --------------------------------------------------- */

/* Spreads four numbers of one or two bytes at `in`, undecoded, to pairs of bytes.  Bit k of
 * `are_pairs`: number k has two bytes. */
TARGET_INLINE uint64_t deal_four(const uint8_t *in, uint32_t are_pairs)
{
    const uint64_t lower = 0x00ff00ff00ff00ffu;
    /* 0xff where a number has a second byte. */
    uint64_t upper = _pdep_u64(are_pairs, 0x0100010001000100u) * 0xff;

    return _pdep_u64(wharf_rle_load_word(in), lower | upper);
}

/* Decodes the first m numbers at `in`, 1 to 8; `more` has their continuation bits.  Returns their
 * size in bytes; 0, and stores nothing, if one has more than two bytes. */
TARGET_INLINE unsigned take_eight(const uint8_t *in, uint32_t more, uint8_t *out, unsigned m,
                                  unsigned nbytes, int is_signed)
{
    uint32_t ends = ~more & 0xffff;
    unsigned size = (unsigned)_tzcnt_u32(_pdep_u32(1u << (m - 1), ends)) + 1;
    unsigned half = (unsigned)_tzcnt_u32(_pdep_u32(8, ends)) + 1;

    /* Two consecutive bits: a number of three bytes.  Checks only the first m numbers. */
    if (_bzhi_u32(more & more << 1, size))
        return 0;
    uint32_t are_pairs = _pext_u32(more << 1, ends);
    half = half < 8 ? half : 8;
    put_pairs(out,
              _mm_set_epi64x((int64_t)deal_four(in + half, are_pairs >> 4),
                             (int64_t)deal_four(in, are_pairs & 15)),
              nbytes, is_signed);
    return size;
}

/* Decodes n numbers in groups of eight, until one has more than two bytes.  Returns their count. */
TARGET_INLINE unsigned take_eights(struct wharf_rle_input *in, uint8_t *out, const uint8_t *out_end,
                                   unsigned n, unsigned nbytes, int is_signed)
{
    const uint8_t *next = in->next;
    unsigned i = 0;

    while (i < n && in->end - next >= 16 && (size_t)(out_end - out) >= 8 * nbytes) {
        uint32_t more = (uint32_t)_mm_movemask_epi8(_mm_loadu_si128((const __m128i_u *)next));
        unsigned m = n - i < 8 ? n - i : 8;
        unsigned size = take_eight(next, more, out, m, nbytes, is_signed);
        if (size == 0)
            break;
        next += size;
        out += (size_t)m * nbytes;
        i += m;
    }
    in->next = next;
    return i;
}

/* ---- numbers of any length ---------------------------------------------------------------- */

/* Bytes that are examined together.  Up to a word behind them may be read. */
enum { BLOCK_NBYTES = 64, BLOCK_READ_NBYTES = BLOCK_NBYTES + 8 };

/* Decodes those of n numbers that end in the block at `in`; none if one has more than 8 bytes.
 * Returns their number and their size. */
TARGET_INLINE unsigned take_block(const uint8_t *in, uint8_t *out, unsigned n, unsigned nbytes,
                                  int is_signed, uint64_t *all, unsigned *ret_size)
{
    uint64_t more = continuations(in) | (uint64_t)continuations(in + 32) << 32;
    uint64_t ends = ~more;
    uint64_t rows = more & more >> 1;
    unsigned m = (unsigned)__builtin_popcountll(ends);
    unsigned begin = 0;

    rows &= rows >> 2;
    rows &= rows >> 4;
    if (rows)
        return 0;
    m = m < n ? m : n;
    for (unsigned i = 0; i < m; i++) {
        unsigned end = (unsigned)_tzcnt_u64(ends) + 1;
        uint64_t u = _pext_u64(wharf_rle_load_word(in + begin), ~WHARF_RLE_TOPS);

        u = _bzhi_u64(u, 7 * (end - begin));
        *all |= u;
        wharf_rle_store(out + (size_t)i * nbytes, wharf_rle_value(u, is_signed), nbytes);
        ends = _blsr_u64(ends);
        begin = end;
    }
    *ret_size = begin;
    return m;
}

/* ---- literals ----------------------------------------------------------------------------- */

/* Decodes some of n numbers; needs BLOCK_READ_NBYTES of input and room for 32 values.  Returns how
 * many. */
TARGET_INLINE unsigned take_some(struct wharf_rle_input *in, uint8_t *out, const uint8_t *out_end,
                                 unsigned n, unsigned nbytes, int is_signed, uint64_t *all)
{
    const uint8_t *next = in->next;
    uint32_t more = continuations(next);
    unsigned m = n < 32 ? n : 32;
    unsigned size = 0;

    if (_bzhi_u32(more, m) == 0) {
        for (unsigned i = 0; i < 32; i += 8)
            put_bytes(out + i * nbytes, next + i, nbytes, is_signed);
        in->next = next + m;
        return m;
    }
    /* One byte alone may be too short for more. */
    if (nbytes > 1) {
        m = n < 16 ? n : 16;
        if (_bzhi_u32(more ^ 0x55555555, 2 * m) == 0) {
            for (unsigned i = 0; i < 16; i += 8)
                put_pairs(out + i * nbytes, _mm_loadu_si128((const __m128i_u *)(next + 2 * i)),
                          nbytes, is_signed);
            in->next = next + 2 * m;
            return m;
        }
        m = take_eights(in, out, out_end, n, nbytes, is_signed);
        if (m > 0)
            return m;
    }
    m = take_block(next, out, n, nbytes, is_signed, all, &size);
    in->next = next + size;
    return m;
}

TARGET_INLINE unsigned take_quickly(struct wharf_rle_input *in, uint8_t *out,
                                    const uint8_t *out_end, unsigned n, unsigned nbytes,
                                    int is_signed, uint64_t *all)
{
    /* Few of one byte each are what stands between runs. */
    if (n <= 8 && in->end - in->next >= 8 && (size_t)(out_end - out) >= 8 * nbytes &&
        _bzhi_u64(wharf_rle_load_word(in->next) & WHARF_RLE_TOPS, 8 * n) == 0) {
        put_bytes(out, in->next, nbytes, is_signed);
        in->next += n;
        return 0;
    }
    while (n > 0 && in->end - in->next >= BLOCK_READ_NBYTES &&
           (size_t)(out_end - out) >= 32 * nbytes) {
        unsigned m = take_some(in, out, out_end, n, nbytes, is_signed, all);
        if (m == 0)
            break;
        out += (size_t)m * nbytes;
        n -= m;
    }
    return n;
}

/* ---- runs --------------------------------------------------------------------------------- */

/* A run is written in blocks of this size: a branch on its exact length would be mispredicted. */
TARGET_INLINE size_t fill_nbytes(unsigned nbytes)
{
    return nbytes == 8 ? 256 : 128;
}

/* Steps 0, 1, 2 ... of a run, as many as a register has. */
TARGET_INLINE __m256i make_steps(uint64_t delta, unsigned nbytes)
{
    const __m256i numbers = _mm256_set_epi16(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    __m256i words = _mm256_mullo_epi16(numbers, _mm256_set1_epi16((short)delta));

    if (nbytes == 2)
        return words;
    /* Of 16 bits, since |delta| is at most 128. */
    if (nbytes == 4)
        return _mm256_cvtepi16_epi32(_mm256_castsi256_si128(words));
    return _mm256_cvtepi16_epi64(_mm256_castsi256_si128(words));
}

TARGET_INLINE __m256i add(__m256i a, __m256i b, unsigned nbytes)
{
    if (nbytes == 2)
        return _mm256_add_epi16(a, b);
    return nbytes == 4 ? _mm256_add_epi32(a, b) : _mm256_add_epi64(a, b);
}

TARGET_INLINE __m256i broadcast(uint64_t v, unsigned nbytes)
{
    if (nbytes == 2)
        return _mm256_set1_epi16((short)v);
    return nbytes == 4 ? _mm256_set1_epi32((int)v) : _mm256_set1_epi64x((int64_t)v);
}

TARGET_INLINE void fill(uint8_t *out, const uint8_t *out_end, uint64_t base, uint64_t delta,
                        unsigned n, unsigned nbytes)
{
    const uint8_t *end = out + (size_t)n * nbytes;
    __m256i values, step;

    if (nbytes == 1 || (size_t)(out_end - out) < (size_t)n * nbytes + fill_nbytes(nbytes)) {
        wharf_rle_fill(out, out_end, base, delta, n, nbytes);
        return;
    }
    values = add(broadcast(base, nbytes), make_steps(delta, nbytes), nbytes);
    step = broadcast(delta * (32 / nbytes), nbytes);
    do {
        for (unsigned i = 0; i < fill_nbytes(nbytes); i += 32) {
            _mm256_storeu_si256((__m256i_u *)(out + i), values);
            values = add(values, step, nbytes);
        }
        out += fill_nbytes(nbytes);
    } while (out < end);
}

#define LOOP_NAME wharf_rle1_decode_bmi2
#define LOOP_TARGET TARGET
#include "encoders/rle1/rle1_loop_body.h"

#endif
