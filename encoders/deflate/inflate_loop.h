/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_loop.h: the fast loop of the CPU inflater and its forms.  Internal to encoders/.
 *
 * The fast loop decodes literals and matches of a fixed or dynamic block while source and output
 * both have room to spare.  It stops between two units when one of them runs short, or before
 * anything but a good literal or match.  It never says why: the exact loop (inflate.c) finds that
 * out.  So it may stop at any time, and all forms give the same result.
 */
#ifndef WHARF_ENCODERS_DEFLATE_INFLATE_LOOP_H
#define WHARF_ENCODERS_DEFLATE_INFLATE_LOOP_H

#include "encoders/deflate/inflate_state.h"

/* X(form): what the machine must have beyond the compiler's target is in inflate_loop.c. */
#if defined(__x86_64__)
#define WHARF_INFLATE_LOOP_LIST(X) X(plain) X(bmi2)
#else
#define WHARF_INFLATE_LOOP_LIST(X) X(plain)
#endif

typedef void wharf_inflate_loop_fn(struct wharf_inflate *inflate);

#define X(form) wharf_inflate_loop_fn wharf_inflate_loop_##form, wharf_inflate_wide_loop_##form;
WHARF_INFLATE_LOOP_LIST(X)
#undef X

/* Runs the best form for this machine, or the one that was forced, for the width of the output's
 * units. */
void wharf_inflate_loop(struct wharf_inflate *inflate);

/*
 * For tests and benchmarks: forces the form called `name` on the whole process, NULL gives the
 * choice back.  Returns 0, -ENOENT (no such form) or -ENOTSUP (not on this machine).
 */
int wharf_inflate_loop_force(const char *name);

#endif
