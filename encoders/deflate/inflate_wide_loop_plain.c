/* SPDX-License-Identifier: Apache-2.0 */
/* inflate_wide_loop_plain.c: the fast loop for units of 16 bits, in portable C. */
#include "encoders/deflate/inflate_copy_wide.h"
#include "encoders/deflate/inflate_loop.h"

#define LOOP wharf_inflate_wide_loop_plain
#define TARGET
#define WIDE
#define LOW_BITS(word, n) wharf_low_bits(word, (n)&63)
#include "encoders/deflate/inflate_loop_body.h"
