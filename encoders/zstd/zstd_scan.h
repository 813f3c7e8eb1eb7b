/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_scan.h: finds where a frame ends, from its headers alone, and how much output it may have.
 * It verifies nothing: a frame that it does not follow to its end is left to the decoder.
 */
#ifndef WHARF_ENCODERS_ZSTD_ZSTD_SCAN_H
#define WHARF_ENCODERS_ZSTD_ZSTD_SCAN_H

#include "encoders/zstd/zstd_frame.h"

enum wharf_zstd_scan_state {
    WHARF_ZSTD_SCAN_GOES_ON, /* a header was read: the next one stands at scan->nbytes */
    WHARF_ZSTD_SCAN_NEEDS,   /* more bytes, of the header there */
    WHARF_ZSTD_SCAN_FRAME,   /* the frame has scan->nbytes, whether they are there or not */
    WHARF_ZSTD_SCAN_OTHER,   /* this is no frame, or not a good one, or a forbidden one */
};

/* All zero to begin with, at a frame's first byte. */
struct wharf_zstd_scan {
    bool has_header;
    struct wharf_zstd_frame frame;
    uint64_t nbytes;      /* of the frame, as far as it is known */
    uint64_t most_nbytes; /* its blocks so far have no more output */
};

/* No header has more bytes. */
enum { WHARF_ZSTD_SCAN_NBYTES = WHARF_ZSTD_FRAME_HEADER_MAX_NBYTES };

/* Looks at what stands at byte scan->nbytes of the frame, of which in_nbytes are at `in`. */
enum wharf_zstd_scan_state wharf_zstd_scan_step(struct wharf_zstd_scan *scan, const uint8_t *in,
                                                size_t in_nbytes);

/* The most output of what was scanned. */
static inline uint64_t wharf_zstd_scan_most(const struct wharf_zstd_scan *scan)
{
    return scan->frame.content_nbytes < scan->most_nbytes ? scan->frame.content_nbytes
                                                          : scan->most_nbytes;
}

#endif
