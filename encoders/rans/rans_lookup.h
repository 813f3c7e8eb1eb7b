/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_lookup.h: how a form of the tuned decoder or coder looks up symbols.
 */
#ifndef WHARF_ENCODERS_RANS_RANS_LOOKUP_H
#define WHARF_ENCODERS_RANS_RANS_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>

/* TARGET, which the form defines, names its instructions. */
#define LANES_INLINE static inline TARGET __attribute__((always_inline))

/* Constants wherever a form uses them, so that the compiler makes code for each. */
struct lookup {
    bool is_packed;         /* in the job's packed table; else slot, symbol, range */
    bool is_indexed;        /* each symbol has a number of its distribution */
    uint32_t symbol_nbytes; /* 1 or 2 */
};

#endif
