/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parallel_source.h: what a parallel decode takes from its caller, and what it counts.
 */
#ifndef WHARF_ENCODERS_INFLATE_PARALLEL_PARALLEL_SOURCE_H
#define WHARF_ENCODERS_INFLATE_PARALLEL_PARALLEL_SOURCE_H

#include <stddef.h>
#include <stdint.h>

/* Where the source comes from. */
struct wharf_parallel_source {
    /* Reads up to nbytes into buf; may block.  Returns how many, 0 at the end, or -errno.  Called
     * by workers, one at a time. */
    int64_t (*read)(void *context, void *buf, size_t nbytes);
    void *context;
};

/* A place where a later decode can start: a block's header. */
struct wharf_parallel_point {
    uint64_t bit_offset;    /* of the source */
    uint64_t member_nbytes; /* output of its member before it: as far back as matches may reach */
};

/* How many guesses were right, and how many were dropped. */
struct wharf_parallel_inflate_counts {
    uint64_t n_right;
    uint64_t n_dropped;
};

#endif
