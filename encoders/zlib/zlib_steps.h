/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib_steps.h: an inflater that behaves as zlib's inflate() does, call by call: the same return
 * codes, the same bytes taken and given in each call, the same messages and data_type.
 *
 * It has zlib's own states, by zlib's own numbers, and a bit buffer that holds what zlib's would
 * hold: so its state can be moved into a genuine zlib's at any time.  Whole bodies of blocks are
 * decoded by the quick loop of encoders/deflate; what is near an end of input or output goes one
 * field at a time.  That gives zlib's consumption because zlib's is a function of the unit alone:
 * a unit is begun only with the bytes that it needs, so fewer than eight bits are left behind it,
 * whichever of zlib's two loops decoded it.
 *
 * Output is decoded into a buffer behind the last 32 KiB and copied to the caller's: nothing is
 * written behind the bytes that a call reports, as with zlib.
 *
 * What it leaves to a genuine zlib: dictionaries, and everything but inflate() and resets.
 *
 * Threads: one at a time for each stream.  Nothing here blocks or allocates.
 */
#ifndef WHARF_ENCODERS_ZLIB_ZLIB_STEPS_H
#define WHARF_ENCODERS_ZLIB_ZLIB_STEPS_H

#include "encoders/zlib/zlib_state.h"

/* Ready for a stream's first byte.  `wrap` and `wbits` are zlib's own. */
void wharf_zlib_steps_init(struct wharf_zlib_steps *steps, int wrap, unsigned wbits);

/*
 * inflate(): returns what zlib's would return, and leaves in *io what zlib's would leave.  The
 * time is that of the bytes taken and given, whatever avail_in and avail_out are.
 */
int wharf_zlib_steps_run(struct wharf_zlib_steps *steps, struct wharf_zlib_io *io, int flush);

#endif
