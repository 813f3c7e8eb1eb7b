/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_markers.h: bytes of an unknown window, as units of 16 bits.  Internal to encoders/.
 *
 * A unit below 256 is a byte.  Unit WHARF_MARKER_FIRST + i is a marker for byte i of the window,
 * oldest first.  A wide decode (inflate.h) starts with a window of markers and copies them as it
 * copies bytes.  Once the window is known, each marker is replaced by its byte.
 */
#ifndef WHARF_ENCODERS_INFLATE_PARALLEL_INFLATE_MARKERS_H
#define WHARF_ENCODERS_INFLATE_PARALLEL_INFLATE_MARKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/deflate/deflate_format.h"

#define WHARF_MARKER_FIRST 0x8000u

/* Fills a window with markers. */
void wharf_markers_init(uint16_t window[WHARF_DEFLATE_WINDOW_NBYTES]);

bool wharf_markers_any(const uint16_t *units, size_t n_units);

/* The byte for each unit.  The caller stores the window at `window` once it is known. */
struct wharf_marker_bytes {
    uint8_t literals[256];
    uint8_t unused[WHARF_MARKER_FIRST - 256];
    uint8_t window[WHARF_DEFLATE_WINDOW_NBYTES];
};

/* Sets everything except the window. */
void wharf_marker_bytes_init(struct wharf_marker_bytes *bytes);

/* Replaces all units by bytes.  `out` may be the units' own memory, from its start. */
void wharf_markers_replace(const uint16_t *units, size_t n_units,
                           const struct wharf_marker_bytes *bytes, uint8_t *out);

#endif
