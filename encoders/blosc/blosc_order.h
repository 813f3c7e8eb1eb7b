/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_order.h: puts shuffled bytes and bits back in order, in the forms that machines have, as
 * inflate_loop.h has them for Deflate.  All forms give the same bytes.
 *
 * Shuffled data is planes: of bytes, as many as an element has, of which each has the same byte of
 * every element; of bits, eight times as many, of which each byte has the same bit of eight
 * elements, the lowest that of the first.
 */
#ifndef WHARF_ENCODERS_BLOSC_BLOSC_ORDER_H
#define WHARF_ENCODERS_BLOSC_BLOSC_ORDER_H

#include <stddef.h>
#include <stdint.h>

/*
 * `in` has planes of plane_nbytes one behind the other; `out`, of the same size, gets the elements.
 * They do not overlap.  element_nbytes is 1 to 255.
 */
typedef void wharf_blosc_order_fn(const uint8_t *in, size_t plane_nbytes, unsigned element_nbytes,
                                  uint8_t *out);

struct wharf_blosc_order {
    wharf_blosc_order_fn *bytes;
    wharf_blosc_order_fn *bits;
};

/* X(form): what the machine must have beyond the compiler's target is in blosc_order.c. */
#if defined(__x86_64__)
#define WHARF_BLOSC_ORDER_LIST(X) X(plain) X(avx2)
#else
#define WHARF_BLOSC_ORDER_LIST(X) X(plain)
#endif

#define X(form) extern const struct wharf_blosc_order wharf_blosc_order_##form;
WHARF_BLOSC_ORDER_LIST(X)
#undef X

/* The best form for this machine, or the one that was forced. */
const struct wharf_blosc_order *wharf_blosc_best_order(void);

/*
 * For tests and benchmarks: forces the form called `name` on the whole process, NULL gives the
 * choice back.  Returns 0, -ENOENT (no such form) or -ENOTSUP (not on this machine).
 */
int wharf_blosc_order_force(const char *name);

#endif
