/* SPDX-License-Identifier: Apache-2.0 */
#include "encoders/rans/rans_loop.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx2,bmi,bmi2,popcnt")))
#include "encoders/rans/rans_lookup.h"

struct lanes {
    __m512i half[2];
};

LANES_INLINE struct lanes lanes_load(const uint32_t *states)
{
    return (struct lanes){{_mm512_loadu_si512(states), _mm512_loadu_si512(states + 16)}};
}

LANES_INLINE void lanes_store(const struct lanes *lanes, uint32_t *states)
{
    _mm512_storeu_si512(states, lanes->half[0]);
    _mm512_storeu_si512(states + 16, lanes->half[1]);
}

/* One less than the frequency, the place in the symbol's range, and the symbol, of 16 slots. */
LANES_INLINE void look_up(const struct wharf_rans_loop_job *job, struct lookup lookup,
                          __m512i slots, uint64_t number, __m512i *less_1, __m512i *place,
                          __m512i *symbols)
{
    const struct wharf_rans_model *model = job->task.model;
    __m512i at = slots;
    __m512i ranges_at;
    __m512i ranges;

    if (lookup.is_packed) {
        __m512i packed = _mm512_i32gather_epi32(slots, job->packed, 4);

        *symbols = packed;
        *less_1 = _mm512_and_si512(_mm512_srli_epi32(packed, 8), _mm512_set1_epi32(0xfff));
        *place = _mm512_srli_epi32(packed, 20);
        return;
    }
    if (lookup.is_indexed) {
        __m512i indexes =
            _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i_u *)(job->task.indexes + number)));

        at = _mm512_add_epi32(slots, _mm512_slli_epi32(indexes, model->shape.n_bits));
        ranges_at = _mm512_mullo_epi32(indexes, _mm512_set1_epi32((int)model->shape.alphabet));
    } else {
        ranges_at = _mm512_setzero_si512();
    }
    *symbols = _mm512_and_si512(_mm512_i32gather_epi32(at, model->slot_symbols, 2),
                                _mm512_set1_epi32(0xffff));
    ranges = _mm512_i32gather_epi32(_mm512_add_epi32(ranges_at, *symbols), model->ranges, 4);
    *less_1 = _mm512_and_si512(ranges, _mm512_set1_epi32(0xffff));
    *place = _mm512_sub_epi32(slots, _mm512_srli_epi32(ranges, 16));
}

LANES_INLINE __mmask16 decode_half(const struct wharf_rans_loop_job *job, struct lookup lookup,
                                   __m512i *states, uint64_t number, uint32_t *bad)
{
    uint32_t n_bits = job->task.model->shape.n_bits;
    __m512i slots = _mm512_and_si512(*states, _mm512_set1_epi32((1 << n_bits) - 1));
    __m512i less_1;
    __m512i place;
    __m512i symbols;
    __m512i quotients = _mm512_srli_epi32(*states, n_bits);

    look_up(job, lookup, slots, number, &less_1, &place, &symbols);
    *bad |= _mm512_cmpgt_epi32_mask(place, less_1);
    *states =
        _mm512_add_epi32(_mm512_mullo_epi32(less_1, quotients), _mm512_add_epi32(quotients, place));
    if (lookup.symbol_nbytes == 1)
        _mm_storeu_si128((__m128i_u *)(job->task.out + number), _mm512_cvtepi32_epi8(symbols));
    else
        _mm256_storeu_si256((__m256i_u *)(job->task.out + 2 * number),
                            _mm512_cvtepi32_epi16(symbols));
    return _mm512_cmplt_epu32_mask(*states, _mm512_set1_epi32(WHARF_RANS_LOW));
}

LANES_INLINE uint32_t lanes_decode(const struct wharf_rans_loop_job *job, struct lookup lookup,
                                   struct lanes *lanes, uint32_t group, uint32_t *bad)
{
    uint64_t number = (uint64_t)group * WHARF_RANS_N_LANES;
    uint32_t low = decode_half(job, lookup, &lanes->half[0], number, bad);
    uint32_t high = decode_half(job, lookup, &lanes->half[1], number + 16, bad);

    return low | high << 16;
}

LANES_INLINE const uint8_t *take_half(__m512i *states, __mmask16 takes, const uint8_t *place)
{
    const __m512i downwards =
        _mm512_set_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    __m512i words = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i_u *)(place - 32)));

    words = _mm512_maskz_expand_epi32(takes, _mm512_permutexvar_epi32(downwards, words));
    *states = _mm512_mask_or_epi32(*states, takes, _mm512_slli_epi32(*states, 16), words);
    return place - 2 * __builtin_popcount(takes);
}

LANES_INLINE const uint8_t *lanes_take(struct lanes *lanes, uint32_t takes, const uint8_t *place)
{
    place = take_half(&lanes->half[0], (__mmask16)takes, place);
    return take_half(&lanes->half[1], (__mmask16)(takes >> 16), place);
}

LANES_INLINE uint32_t lanes_match(const struct lanes *lanes, const uint16_t *states)
{
    __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i_u *)states));
    __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i_u *)(states + 16)));

    return _mm512_cmpeq_epi32_mask(lanes->half[0], low) |
           (uint32_t)_mm512_cmpeq_epi32_mask(lanes->half[1], high) << 16;
}

LANES_INLINE uint32_t start_masks(const uint32_t *starts, uint32_t group, uint32_t *ret_later)
{
    __m512i now = _mm512_set1_epi32((int)group);
    __m512i low = _mm512_loadu_si512(starts);
    __m512i high = _mm512_loadu_si512(starts + 16);

    *ret_later = _mm512_cmpgt_epu32_mask(low, now) | (uint32_t)_mm512_cmpgt_epu32_mask(high, now)
                                                         << 16;
    return _mm512_cmpeq_epi32_mask(low, now) | (uint32_t)_mm512_cmpeq_epi32_mask(high, now) << 16;
}

#define LOOP_NAME wharf_rans_loop_avx512
#define N_WALKS 4
#include "encoders/rans/rans_loop_body.h"

#else
/* Nothing: the list of forms has none for this machine. */
typedef int wharf_rans_loop_avx512_unused;
#endif
