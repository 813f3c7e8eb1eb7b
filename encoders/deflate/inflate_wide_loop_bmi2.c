/* SPDX-License-Identifier: Apache-2.0 */
/* inflate_wide_loop_bmi2.c: the fast loop for units of 16 bits, with BMI2 and AVX2. */
#include "encoders/deflate/inflate_loop.h"

#if defined(__x86_64__)

#include <immintrin.h>

#define WHARF_COPY_VECTOR_NBYTES 32
#include "encoders/deflate/inflate_copy_wide.h"

#define LOOP wharf_inflate_wide_loop_bmi2
#define TARGET __attribute__((target("bmi,bmi2,avx2")))
#define WIDE
#define LOW_BITS(word, n) _bzhi_u64(word, n)
#include "encoders/deflate/inflate_loop_body.h"

#endif
