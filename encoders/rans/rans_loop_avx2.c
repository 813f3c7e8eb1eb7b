/* SPDX-License-Identifier: Apache-2.0 */
#include "encoders/rans/rans_loop.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2,popcnt")))
#include "encoders/rans/rans_lookup.h"

struct lanes {
    __m256i quarter[4];
};

/* For a mask of 8 coders, in byte i the word that coder i takes: 7 is the first one that is read,
 * since words are read downwards. */
static const uint64_t takers[256] = {
#define RANK(m, i) ((uint64_t)(7 - __builtin_popcount((m) & ((1u << (i)) - 1))) << 8 * (i))
#define ROW(m)                                                                                     \
    RANK(m, 0) | RANK(m, 1) | RANK(m, 2) | RANK(m, 3) | RANK(m, 4) | RANK(m, 5) | RANK(m, 6) |     \
        RANK(m, 7)
#define ROWS4(m) ROW(m), ROW((m) + 1), ROW((m) + 2), ROW((m) + 3)
#define ROWS16(m) ROWS4(m), ROWS4((m) + 4), ROWS4((m) + 8), ROWS4((m) + 12)
#define ROWS64(m) ROWS16(m), ROWS16((m) + 16), ROWS16((m) + 32), ROWS16((m) + 48)
    ROWS64(0), ROWS64(64), ROWS64(128), ROWS64(192)};

LANES_INLINE __m256i load_256(const void *p)
{
    return _mm256_loadu_si256((const __m256i_u *)p);
}

LANES_INLINE struct lanes lanes_load(const uint32_t *states)
{
    return (struct lanes){
        {load_256(states), load_256(states + 8), load_256(states + 16), load_256(states + 24)}};
}

LANES_INLINE void lanes_store(const struct lanes *lanes, uint32_t *states)
{
    for (int i = 0; i < 4; i++)
        _mm256_storeu_si256((__m256i_u *)(states + 8 * i), lanes->quarter[i]);
}

/* The mask of the elements that are all ones; the others are zero. */
LANES_INLINE uint32_t mask_of(__m256i ones)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(ones));
}

/* Four of a table's entries. */
LANES_INLINE __m128i load_four(const uint32_t *table, const uint32_t *at)
{
    return _mm_set_epi32((int)table[at[3]], (int)table[at[2]], (int)table[at[1]],
                         (int)table[at[0]]);
}

/* Eight of them, one by one: where AVX2 is the best there is, that is a tenth faster than gathering
 * (1.47 and 1.32 GB/s on a Zen 4; by 16 of AVX-512 it is slower, 1.29 and 1.61). */
LANES_INLINE __m256i load_eight(const uint32_t *table, __m256i slots)
{
    uint32_t at[8] __attribute__((aligned(32)));

    _mm256_store_si256((__m256i *)at, slots);
    return _mm256_set_m128i(load_four(table, at + 4), load_four(table, at));
}

/* One less than the frequency, the place in the symbol's range, and the symbol, of 8 slots. */
LANES_INLINE void look_up(const struct wharf_rans_loop_job *job, struct lookup lookup,
                          __m256i slots, uint64_t number, __m256i *less_1, __m256i *place,
                          __m256i *symbols)
{
    const struct wharf_rans_model *model = job->task.model;
    __m256i at = slots;
    __m256i ranges_at = _mm256_setzero_si256();
    __m256i ranges;

    if (lookup.is_packed) {
        __m256i packed = load_eight(job->packed, slots);

        *symbols = _mm256_and_si256(packed, _mm256_set1_epi32(0xff));
        *less_1 = _mm256_and_si256(_mm256_srli_epi32(packed, 8), _mm256_set1_epi32(0xfff));
        *place = _mm256_srli_epi32(packed, 20);
        return;
    }
    if (lookup.is_indexed) {
        __m256i indexes =
            _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i_u *)(job->task.indexes + number)));

        at = _mm256_add_epi32(slots, _mm256_slli_epi32(indexes, (int)model->shape.n_bits));
        ranges_at = _mm256_mullo_epi32(indexes, _mm256_set1_epi32((int)model->shape.alphabet));
    }
    *symbols = _mm256_and_si256(_mm256_i32gather_epi32((const int *)model->slot_symbols, at, 2),
                                _mm256_set1_epi32(0xffff));
    ranges = _mm256_i32gather_epi32((const int *)model->ranges,
                                    _mm256_add_epi32(ranges_at, *symbols), 4);
    *less_1 = _mm256_and_si256(ranges, _mm256_set1_epi32(0xffff));
    *place = _mm256_sub_epi32(slots, _mm256_srli_epi32(ranges, 16));
}

LANES_INLINE __m256i decode_quarter(const struct wharf_rans_loop_job *job, struct lookup lookup,
                                    __m256i *states, uint64_t number, __m256i *bad)
{
    int n_bits = (int)job->task.model->shape.n_bits;
    __m256i slots = _mm256_and_si256(*states, _mm256_set1_epi32((1 << n_bits) - 1));
    __m256i quotients = _mm256_srli_epi32(*states, n_bits);
    __m256i less_1;
    __m256i place;
    __m256i symbols;

    look_up(job, lookup, slots, number, &less_1, &place, &symbols);
    *bad = _mm256_or_si256(*bad, _mm256_cmpgt_epi32(place, less_1));
    *states =
        _mm256_add_epi32(_mm256_mullo_epi32(less_1, quotients), _mm256_add_epi32(quotients, place));
    return symbols;
}

/* 32 symbols, in order, to their 1 or 2 bytes each. */
LANES_INLINE void store_symbols(const __m256i *symbols, struct lookup lookup, uint8_t *out)
{
    __m256i low = _mm256_packus_epi32(symbols[0], symbols[1]);
    __m256i high = _mm256_packus_epi32(symbols[2], symbols[3]);

    if (lookup.symbol_nbytes == 2) {
        _mm256_storeu_si256((__m256i_u *)out, _mm256_permute4x64_epi64(low, 0xd8));
        _mm256_storeu_si256((__m256i_u *)(out + 32), _mm256_permute4x64_epi64(high, 0xd8));
    } else {
        /* Packing works in halves of 128 bits: the fours of symbols come out as 0 2 4 6 1 3 5 7. */
        __m256i order = _mm256_set_epi32(7, 3, 6, 2, 5, 1, 4, 0);

        _mm256_storeu_si256((__m256i_u *)out,
                            _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order));
    }
}

LANES_INLINE uint32_t lanes_decode(const struct wharf_rans_loop_job *job, struct lookup lookup,
                                   struct lanes *lanes, uint32_t group, uint32_t *bad)
{
    uint64_t number = (uint64_t)group * WHARF_RANS_N_LANES;
    __m256i symbols[4];
    __m256i any_bad = _mm256_setzero_si256();
    uint32_t takes = 0;

    for (int i = 0; i < 4; i++) {
        __m256i *states = &lanes->quarter[i];

        symbols[i] = decode_quarter(job, lookup, states, number + 8 * (uint32_t)i, &any_bad);
        takes |= mask_of(_mm256_cmpeq_epi32(_mm256_srli_epi32(*states, 16), _mm256_setzero_si256()))
                 << 8 * i;
    }
    store_symbols(symbols, lookup, job->task.out + number * lookup.symbol_nbytes);
    *bad |= mask_of(any_bad);
    return takes;
}

LANES_INLINE const uint8_t *lanes_take(struct lanes *lanes, uint32_t takes, const uint8_t *place)
{
    for (int i = 0; i < 4; i++) {
        __m256i *states = &lanes->quarter[i];
        uint32_t mask = takes >> 8 * i & 0xff;
        __m256i order = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i_u *)&takers[mask]));
        __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i_u *)(place - 16)));
        __m256i lacks = _mm256_cmpeq_epi32(_mm256_srli_epi32(*states, 16), _mm256_setzero_si256());
        __m256i taken = _mm256_or_si256(_mm256_slli_epi32(*states, 16),
                                        _mm256_permutevar8x32_epi32(words, order));

        *states = _mm256_blendv_epi8(*states, taken, lacks);
        place -= 2 * __builtin_popcount(mask);
    }
    return place;
}

LANES_INLINE uint32_t lanes_match(const struct lanes *lanes, const uint16_t *states)
{
    uint32_t matches = 0;

    for (int i = 0; i < 4; i++) {
        __m256i wanted =
            _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i_u *)(states + 8 * i)));

        matches |= mask_of(_mm256_cmpeq_epi32(lanes->quarter[i], wanted)) << 8 * i;
    }
    return matches;
}

LANES_INLINE uint32_t start_masks(const uint32_t *starts, uint32_t group, uint32_t *ret_later)
{
    uint32_t now = 0;
    uint32_t later = 0;

    /* Groups are below 2^26, so comparing them as signed does no harm. */
    for (int i = 0; i < 4; i++) {
        __m256i start = load_256(starts + 8 * i);
        __m256i this = _mm256_set1_epi32((int)group);

        now |= mask_of(_mm256_cmpeq_epi32(start, this)) << 8 * i;
        later |= mask_of(_mm256_cmpgt_epi32(start, this)) << 8 * i;
    }
    *ret_later = later;
    return now;
}

#define LOOP_NAME wharf_rans_loop_avx2
#define N_WALKS 2
#include "encoders/rans/rans_loop_body.h"

#else
/* Nothing: the list of forms has none for this machine. */
typedef int wharf_rans_loop_avx2_unused;
#endif
