/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib_steps.h: an inflater that behaves exactly as zlib's inflate(), call by call: the same return
 * codes, the same bytes consumed and produced in each call, the same messages and data_type.
 *
 * Idea: it runs zlib's own state machine (inflate.c of zlib), with the same states and numbers, and
 * its bit buffer holds what zlib's would.  So its state can be moved into a genuine zlib stream at
 * any time (clientlib/preload).  The bodies of blocks are decoded by the fast loop of
 * encoders/deflate; near an end of input or output, units are decoded one field at a time.
 *
 * INVARIANT: each call consumes what zlib would.  This holds because zlib's consumption depends on
 * the unit alone: zlib reads only the bytes that a unit needs, so that fewer than eight bits are
 * left after it, whichever of its two loops decoded the unit.
 *
 * Output is decoded into a buffer, after the last 32 KiB, and copied to the caller.  So, as with
 * zlib, nothing is written past the bytes that a call reports.
 *
 * It leaves to a genuine zlib: dictionaries, and all functions other than inflate() and resets.
 *
 * Threads: one at a time for each stream.  Nothing here blocks or allocates.
 */
#ifndef WHARF_ENCODERS_ZLIB_ZLIB_STEPS_H
#define WHARF_ENCODERS_ZLIB_ZLIB_STEPS_H

#include "encoders/zlib/zlib_state.h"

/* Prepares for a stream's first byte.  `wrap` and `wbits` are zlib's. */
void wharf_zlib_steps_init(struct wharf_zlib_steps *steps, int wrap, unsigned wbits);

/*
 * inflate(): returns what zlib would return, and leaves in *io what zlib would leave there.  It
 * takes time for the bytes consumed and produced, whatever avail_in and avail_out are.
 */
int wharf_zlib_steps_run(struct wharf_zlib_steps *steps, struct wharf_zlib_io *io, int flush);

#endif
