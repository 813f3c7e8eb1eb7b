/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_stream.h: decodes files of framed blocks (LZ4 frames, framed Snappy) of any length in
 * bounded memory, as stream.h says.
 *
 * Memory: a block's input and output, and the 64 KiB before it.  It grows when a frame asks for
 * larger blocks; a stream for which there is no memory fails with WHARF_NO_MEMORY.
 */
#ifndef WHARF_ENCODERS_FRAME_STREAM_H
#define WHARF_ENCODERS_FRAME_STREAM_H

#include "encoders/frame_piece.h"
#include "encoders/stream.h"

/* A new stream at its beginning, of what the splitter takes apart; NULL when there is no memory. */
struct wharf_stream *wharf_frame_stream_new(wharf_frame_next_fn *next);

#endif
