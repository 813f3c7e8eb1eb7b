/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_scan.h: finds where runs begin in a stream of ORC's run lengths by their headers alone, so
 * that a long stream can be decoded in pieces, at the same time.
 *
 * Of rle1, byterle (groups) and rle2 (runs).  Nothing is decoded or verified: pieces of a bad
 * stream are such that the first of them that does not decode fails as the whole stream would.
 */
#ifndef WHARF_ENCODERS_RUN_SCAN_H
#define WHARF_ENCODERS_RUN_SCAN_H

#include <stddef.h>
#include <stdint.h>

/* Where a run begins, and how many values are before it. */
struct wharf_run_place {
    size_t in_offset;
    uint64_t n_values;
};

enum wharf_run_scan_state {
    WHARF_RUN_SCAN_MORE,  /* a run begins here */
    WHARF_RUN_SCAN_END,   /* the stream ends here */
    WHARF_RUN_SCAN_BROKEN /* the stream ends in the run that begins here */
};

/* How much a piece is to have at most, of both; a run alone may have more. */
struct wharf_run_limits {
    uint64_t n_values;
    size_t in_nbytes;
};

/* No run has so many bytes, headers and all, unless it is a bad one. */
enum { WHARF_RUN_SCAN_MOST_NBYTES = 8192 };

/* Whether a codec's streams can be scanned. */
int wharf_run_scan_knows(uint32_t codec);

/*
 * Moves *place, where a run begins or the stream ends, behind as many runs as are within the
 * limits, at least one; it stays at one that is broken.  The codec is one that _knows.  Takes time
 * linear in the bytes that it passes, and reads no others but a run's worth.
 */
enum wharf_run_scan_state wharf_run_scan_pass(uint32_t codec, const uint8_t *in, size_t in_nbytes,
                                              const struct wharf_run_limits *limits,
                                              struct wharf_run_place *place);

#endif
