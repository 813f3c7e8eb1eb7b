/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up by gathering, for Intel's processors, which insert elements by one port alone.
 */
#include "encoders/rans/rans_loop.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,bmi2,popcnt")))
#include "encoders/rans/rans_gather_ymm.h"

LANES_INLINE __m256i load_eight(const uint32_t *table, __m256i slots)
{
    return gather_8(table, slots);
}

LANES_INLINE struct pairs load_pairs(const struct wharf_rans_bucket *table, __m256i places)
{
    __m256i at = _mm256_permute4x64_epi64(places, 0xd8);

    return (struct pairs){gather_4_wide(table, _mm256_castsi256_si128(at)),
                          gather_4_wide(table, _mm256_extracti128_si256(at, 1))};
}

#define LOOP_NAME wharf_rans_loop_avx2_gather
#define N_WALKS 2
#include "encoders/rans/rans_loop_ymm.h"

#endif
