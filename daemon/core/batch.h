/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch.h: a batch's chunk table, copied and checked.
 *
 * The copy never changes; the core lock guards the members that count progress.
 */
#ifndef WHARF_DAEMON_CORE_BATCH_H
#define WHARF_DAEMON_CORE_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/wharf_result.h"
#include "proto/wharf_ring.h"

struct wharf_region;

struct wharf_batch_entry {
    struct wharf_chunk chunk;
    struct wharf_region *source;
    struct wharf_region *destination;
};

struct wharf_batch {
    uint32_t n_chunks;
    uint32_t n_handed_out; /* chunks in pieces, or done */
    uint32_t n_done;
    uint32_t first_bad;           /* lowest index of a bad chunk; n_chunks if there is none */
    struct wharf_outcome outcome; /* of the first bad chunk; else sums so far */
    uint32_t engine;              /* that ran the first bad chunk; else the last one */
    bool has_device;              /* some source or destination is in a client's GPU memory */
    bool has_file_source;         /* some source is a file; */
    bool has_file_output;         /* some destination is */
    uint64_t total_nbytes;        /* of all sources and destinations */
    uint32_t max_chunk_nbytes;    /* the largest single source or destination */
    uint64_t memory_nbytes;       /* of this struct, charged to the tenant */
    uint64_t *regions;            /* bit i: it uses the session's region i */
    uint32_t n_region_words;
    struct wharf_batch_entry entries[];
};

#endif
