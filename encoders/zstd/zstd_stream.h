/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_stream.h: decodes zstd frames of any length in bounded memory, as stream.h says.
 *
 * Memory: 640 KiB for input and tables, and for output as much as the frame asks for: its window
 * twice or, of windows below 4 MiB, once and 4 MiB; less for a frame whose header says that it is
 * shorter.  So it is 257 MiB at most, which the system gives as it is written to.  It grows when a
 * frame asks for more; a stream for which there is no memory fails with WHARF_NO_MEMORY.
 */
#ifndef WHARF_ENCODERS_ZSTD_ZSTD_STREAM_H
#define WHARF_ENCODERS_ZSTD_ZSTD_STREAM_H

#include "encoders/stream.h"

enum wharf_zstd_extent {
    WHARF_ZSTD_ALL_FRAMES, /* to the end of the source, where nothing else may stand */
    WHARF_ZSTD_ONE_FRAME,  /* to the end of the first frame that is not skippable */
};

/* A new stream at its beginning; NULL when there is no memory. */
struct wharf_stream *wharf_zstd_stream_new(enum wharf_zstd_extent extent);

#endif
