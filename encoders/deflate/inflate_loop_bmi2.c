/* SPDX-License-Identifier: Apache-2.0 */
#include "encoders/deflate/inflate_loop.h"

#if defined(__x86_64__)

#define LOOP wharf_inflate_loop_bmi2
#define TARGET __attribute__((target("bmi,bmi2")))
#include "encoders/deflate/inflate_loop_body.h"

#endif
