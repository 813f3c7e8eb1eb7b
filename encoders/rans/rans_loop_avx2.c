/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up one by one, which AMD's processors do sooner than gather where a look-up is of 8 bytes.
 */
#include "encoders/rans/rans_loop.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2,popcnt")))
#include "encoders/rans/rans_gather_ymm.h"

/* Four of a table's entries. */
LANES_INLINE __m128i load_four(const uint32_t *table, const uint32_t *at)
{
    return _mm_set_epi32((int)table[at[3]], (int)table[at[2]], (int)table[at[1]],
                         (int)table[at[0]]);
}

LANES_INLINE __m256i load_eight(const uint32_t *table, __m256i slots)
{
    uint32_t at[8] __attribute__((aligned(32)));

    _mm256_store_si256((__m256i *)at, slots);
    return _mm256_set_m128i(load_four(table, at + 4), load_four(table, at));
}

LANES_INLINE int64_t load_bucket(const struct wharf_rans_bucket *bucket)
{
    int64_t both;

    memcpy(&both, bucket, sizeof(both));
    return both;
}

LANES_INLINE struct pairs load_pairs(const struct wharf_rans_bucket *table, __m256i places)
{
    uint32_t at[8] __attribute__((aligned(32)));

    _mm256_store_si256((__m256i *)at, places);
    return (struct pairs){_mm256_set_epi64x(load_bucket(table + at[5]), load_bucket(table + at[4]),
                                            load_bucket(table + at[1]), load_bucket(table + at[0])),
                          _mm256_set_epi64x(load_bucket(table + at[7]), load_bucket(table + at[6]),
                                            load_bucket(table + at[3]),
                                            load_bucket(table + at[2]))};
}

#define LOOP_NAME wharf_rans_loop_avx2
#define N_WALKS 2
#include "encoders/rans/rans_loop_ymm.h"

#endif
