/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_loops.h: the forms of the quick loops, as inflate_loop.h has them for Deflate.  They are
 * what struct wharf_zstd_loops in zstd_block.h says.  All forms give the same result.
 */
#ifndef WHARF_ENCODERS_ZSTD_ZSTD_LOOPS_H
#define WHARF_ENCODERS_ZSTD_ZSTD_LOOPS_H

#include "encoders/zstd/zstd_block.h"

/* X(form): what the machine must have beyond the compiler's target is in zstd_loops.c. */
#if defined(__x86_64__)
#define WHARF_ZSTD_LOOPS_LIST(X) X(plain) X(bmi2)
#else
#define WHARF_ZSTD_LOOPS_LIST(X) X(plain)
#endif

#define X(form) extern const struct wharf_zstd_loops wharf_zstd_loops_##form;
WHARF_ZSTD_LOOPS_LIST(X)
#undef X

/* The best form for this machine, or the one that was forced. */
const struct wharf_zstd_loops *wharf_zstd_best_loops(void);

/*
 * For tests and benchmarks: forces the form called `name` on the whole process, NULL gives the
 * choice back.  Returns 0, -ENOENT (no such form) or -ENOTSUP (not on this machine).
 */
int wharf_zstd_loops_force(const char *name);

#endif
