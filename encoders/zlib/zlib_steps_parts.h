/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib_steps_parts.h: the state machine of zlib_steps.h in three parts.  Each runs for as long as
 * the stream stays in its states.  Internal to encoders/zlib.
 */
#ifndef WHARF_ENCODERS_ZLIB_ZLIB_STEPS_PARTS_H
#define WHARF_ENCODERS_ZLIB_ZLIB_STEPS_PARTS_H

#include "encoders/zlib/zlib_call.h"

/* Bodies of blocks with codes: states LEN to LIT. */
enum wharf_zstep wharf_zlib_steps_body(struct wharf_zlib_call *call);

/* Block headers and stored blocks: states TYPE to CODELENS. */
enum wharf_zstep wharf_zlib_steps_block(struct wharf_zlib_call *call);

/* Headers and trailers of the stream: all other states. */
enum wharf_zstep wharf_zlib_steps_wrap(struct wharf_zlib_call *call);

#endif
