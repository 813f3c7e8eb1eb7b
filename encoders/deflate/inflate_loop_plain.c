/* SPDX-License-Identifier: Apache-2.0 */
#include "encoders/deflate/inflate_loop.h"

#define LOOP wharf_inflate_loop_plain
#define TARGET
#include "encoders/deflate/inflate_loop_body.h"
