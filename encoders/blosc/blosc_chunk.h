/* SPDX-License-Identifier: Apache-2.0 */
/* blosc_chunk.h: decodes a chunk of Blosc 1 or 2 (blosc_format.h). */
#ifndef WHARF_ENCODERS_BLOSC_BLOSC_CHUNK_H
#define WHARF_ENCODERS_BLOSC_BLOSC_CHUNK_H

#include "encoders/blosc/blosc_walk.h"

/* Fills *ret_outcome, or the walk's failure. */
void wharf_blosc_walk_chunk(struct wharf_blosc_walk *walk, struct wharf_outcome *ret_outcome);

#endif
