/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blosc_filter.h: undoes the filters of one block, which lies in the output or in scratch.
 */
#ifndef WHARF_ENCODERS_BLOSC_BLOSC_FILTER_H
#define WHARF_ENCODERS_BLOSC_BLOSC_FILTER_H

#include "encoders/blosc/blosc_walk.h"

/* A shuffle of a block. */
struct wharf_blosc_shuffle {
    wharf_blosc_order_fn *order;
    unsigned element_nbytes;
    size_t n_planes;
    size_t plane_nbytes; /* 0: it changes nothing */
};

struct wharf_blosc_shuffle wharf_blosc_shuffle_of(const struct wharf_blosc_parts *parts,
                                                  bool is_of_bits, unsigned element_nbytes,
                                                  size_t nbytes);

/* From scratch to the output: a block of at most WHARF_BLOSC_SCRATCH_NBYTES. */
void wharf_blosc_unshuffle(const struct wharf_blosc_walk *walk,
                           const struct wharf_blosc_shuffle *shuffle, uint8_t *out, size_t nbytes);

/* In the output, of any size.  False: it has stopped. */
bool wharf_blosc_unshuffle_there(struct wharf_blosc_walk *walk,
                                 const struct wharf_blosc_shuffle *shuffle, uint8_t *out);

/* `first` is the output of the chunk's first block; `out` is it itself for that block. */
bool wharf_blosc_undo_delta(struct wharf_blosc_walk *walk, unsigned element_nbytes,
                            const uint8_t *first, uint8_t *out, size_t nbytes);

#endif
