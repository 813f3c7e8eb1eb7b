/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_markers.h: bytes of an unknown window, as units of 16 bits.  Internal to encoders/.
 *
 * A unit below 256 is a byte.  One from WHARF_MARKER_FIRST on stands for a byte of the window, the
 * first for the oldest.  A wide decode (inflate.h) that begins with a window of markers copies them
 * like bytes; they are replaced when the window is known.
 */
#ifndef WHARF_ENCODERS_INFLATE_PARALLEL_INFLATE_MARKERS_H
#define WHARF_ENCODERS_INFLATE_PARALLEL_INFLATE_MARKERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/deflate/deflate_format.h"

#define WHARF_MARKER_FIRST 0x8000u

/* A window of which nothing is known. */
void wharf_markers_init(uint16_t window[WHARF_DEFLATE_WINDOW_NBYTES]);

bool wharf_markers_any(const uint16_t *units, size_t n_units);

/* The byte of each unit, once the window is known: it stands at `window`. */
struct wharf_marker_bytes {
    uint8_t literals[256];
    uint8_t unused[WHARF_MARKER_FIRST - 256];
    uint8_t window[WHARF_DEFLATE_WINDOW_NBYTES];
};

/* All but the window. */
void wharf_marker_bytes_init(struct wharf_marker_bytes *bytes);

/* Makes bytes of all units.  `out` may be the units' own beginning. */
void wharf_markers_replace(const uint16_t *units, size_t n_units,
                           const struct wharf_marker_bytes *bytes, uint8_t *out);

#endif
