/* SPDX-License-Identifier: Apache-2.0 */
/* blosc_frame.h: decodes the framing of bitshuffle's HDF5 filter (blosc_format.h). */
#ifndef WHARF_ENCODERS_BLOSC_BLOSC_FRAME_H
#define WHARF_ENCODERS_BLOSC_BLOSC_FRAME_H

#include "encoders/blosc/blosc_walk.h"

/* Fills *ret_outcome, or the walk's failure. */
void wharf_blosc_walk_frame(struct wharf_blosc_walk *walk, struct wharf_outcome *ret_outcome);

#endif
