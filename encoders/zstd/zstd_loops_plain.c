/* SPDX-License-Identifier: Apache-2.0 */
/* zstd_loops_plain.c: the fast loops in portable C. */
#include "encoders/zstd/zstd_loops.h"

#define LOOPS wharf_zstd_loops_plain
#define TARGET
#define LOW_BITS(word, n) ((word) & ((UINT64_C(1) << (n)) - 1))
#include "encoders/zstd/zstd_loops_body.h"
