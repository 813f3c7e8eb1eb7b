/* SPDX-License-Identifier: Apache-2.0 */
/* zstd_loops_bmi2.c: the fast loops with BMI2. */
#include "encoders/zstd/zstd_loops.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define LOOPS wharf_zstd_loops_bmi2
#define TARGET __attribute__((target("bmi,bmi2")))
#define LOW_BITS(word, n) _bzhi_u64(word, n)
#include "encoders/zstd/zstd_loops_body.h"

#endif
