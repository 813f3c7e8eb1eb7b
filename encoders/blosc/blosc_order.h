/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_order.h: unshuffles bytes and bits, in one form for each instruction set (compare
 * inflate_loop.h).  All forms give the same bytes.
 *
 * Shuffled data consists of planes.  Of bytes there is one plane for each byte of an element: plane
 * k has byte k of every element.  Of bits there are eight times as many: each byte of plane k has
 * bit k of eight elements, the first one in its lowest bit.
 */
#ifndef WHARF_ENCODERS_BLOSC_BLOSC_ORDER_H
#define WHARF_ENCODERS_BLOSC_BLOSC_ORDER_H

#include <stddef.h>
#include <stdint.h>

/*
 * `in` has the planes, of plane_nbytes each, one after the other.  `out`, of the same size, gets
 * the elements.  They do not overlap.  element_nbytes is 1 to 255.
 */
typedef void wharf_blosc_order_fn(const uint8_t *in, size_t plane_nbytes, unsigned element_nbytes,
                                  uint8_t *out);

struct wharf_blosc_order {
    wharf_blosc_order_fn *bytes;
    wharf_blosc_order_fn *bits;
};

/* X(form), from the least to the most demanding; blosc_order.c checks what each demands. */
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
 * For tests and benchmarks: forces the form called `name` on the whole process; NULL ends this.
 * Returns 0, -ENOENT (no such form) or -ENOTSUP (not on this machine).
 */
int wharf_blosc_order_force(const char *name);

#endif
