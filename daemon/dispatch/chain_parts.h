/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain_parts.h: makes ordinary sources of a chain's parts, when its table is opened.
 *
 * All that tells of parts is in the client's memory, which can change at any time: each word is
 * copied once.  A client that lies about its parts gets other sources of its own, which are checked
 * like those of any batch.
 */
#ifndef WHARF_DAEMON_DISPATCH_CHAIN_PARTS_H
#define WHARF_DAEMON_DISPATCH_CHAIN_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/wharf_result.h"
#include "proto/wharf_ring.h"

struct wharf_region;
struct wharf_session;

struct wharf_chain_parts {
    struct wharf_chain chain; /* copied */
    const uint8_t *parts, *results, *order;
    uint64_t n_left; /* parts that chunks may still name: what a batch may have chunks */
};

/* Of parts, results and order. */
#define WHARF_CHAIN_N_TABLES 3

/* Checks the chain and finds its tables, with their regions; NULL: there is none.  Under the core
 * lock.  Returns WHARF_REASON_NONE or why not. */
uint32_t wharf_chain_find(struct wharf_session *session, struct wharf_chain_parts *parts,
                          struct wharf_region *ret_regions[WHARF_CHAIN_N_TABLES]);

/*
 * Sets a copied chunk's source to the memory of its parts, which still has to be checked.  Without
 * the lock.  False: it has none, and *ret_outcome is what the chain ends with; bit_offset is the
 * number of the part.
 */
bool wharf_chain_join(struct wharf_chain_parts *parts, struct wharf_chunk *chunk,
                      struct wharf_outcome *ret_outcome);

#endif
