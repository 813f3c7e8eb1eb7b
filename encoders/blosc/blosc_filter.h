/* SPDX-License-Identifier: Apache-2.0 */
/* blosc_filter.h: undoes the filters of one block, which is in scratch or in the output. */
#ifndef WHARF_ENCODERS_BLOSC_BLOSC_FILTER_H
#define WHARF_ENCODERS_BLOSC_BLOSC_FILTER_H

#include "encoders/blosc/blosc_walk.h"

/* A shuffle of a block, as planes (blosc_order.h). */
struct wharf_blosc_shuffle {
    wharf_blosc_order_fn *order;
    unsigned element_nbytes;
    size_t n_planes;
    size_t plane_nbytes; /* 0: the shuffle changes nothing */
};

struct wharf_blosc_shuffle wharf_blosc_shuffle_of(const struct wharf_blosc_parts *parts,
                                                  bool is_of_bits, unsigned element_nbytes,
                                                  size_t nbytes);

/* Unshuffles a block of at most WHARF_BLOSC_SCRATCH_NBYTES from scratch to `out`. */
void wharf_blosc_unshuffle(const struct wharf_blosc_walk *walk,
                           const struct wharf_blosc_shuffle *shuffle, uint8_t *out, size_t nbytes);

/* Unshuffles a block of any size in place.  False: the walk has stopped. */
bool wharf_blosc_unshuffle_there(struct wharf_blosc_walk *walk,
                                 const struct wharf_blosc_shuffle *shuffle, uint8_t *out);

/* Undoes the delta.  `first` is the output of the chunk's first block, and equals `out` for that
 * block. */
bool wharf_blosc_undo_delta(struct wharf_blosc_walk *walk, unsigned element_nbytes,
                            const uint8_t *first, uint8_t *out, size_t nbytes);

#endif
