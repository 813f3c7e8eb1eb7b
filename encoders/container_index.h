/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_index.h: the shape of a container's index (FORMAT.md), while it grows.
 *
 * The index is a tree of nodes with up to 256 entries.  Entries of a node of level 1 are chunks,
 * of level 2 nodes of level 1, and so on.  A node is written as soon as it is full; at the end of
 * the member those that are not full follow, from level 1 up, until one frame is left that
 * stands above all others: the root.  So where each node stands and what it holds follows from
 * the chunks alone.
 *
 * The writer and the sequential reader both run this bookkeeping: the one to know what it has to
 * write, the other to know what it has to find.  It holds counts and a running CRC-32 instead
 * of entries, so that it stays small.
 */
#ifndef WHARF_ENCODERS_CONTAINER_INDEX_H
#define WHARF_ENCODERS_CONTAINER_INDEX_H

#include <stdint.h>

#include "encoders/container_format.h"

/* The entries gathered for the next node of one level. */
struct wharf_container_level {
    uint32_t n_entries;
    uint32_t crc;                             /* CRC-32 of the entries */
    uint64_t sequence;                        /* of the first chunk below the first entry */
    struct wharf_container_index_entry first; /* the first entry */
};

/* levels[0] is level 1's, and so on; the last can only ever hold the root's entry. */
enum { WHARF_CONTAINER_INDEX_SLOTS = WHARF_CONTAINER_LEVELS + 1 };
struct wharf_container_index {
    struct wharf_container_level levels[WHARF_CONTAINER_INDEX_SLOTS];
};

/* Adds the entry of a frame whose first chunk is number `sequence` to the next node of `level`
 * (1 to INDEX_SLOTS, not full). */
void wharf_container_index_add(struct wharf_container_index *index, uint32_t level,
                               uint64_t sequence, const struct wharf_container_index_entry *entry);

/*
 * The level of the node that has to be written now, or 0 for none: a node that is full, or, when
 * no more chunks will come, one that is not yet below another.
 */
uint32_t wharf_container_index_due(const struct wharf_container_index *index, int is_finishing);

/* Takes the node of `level` as written at `frame_offset` and empties it.  Returns the entry that
 * the caller has to add to the level above, with the node's sequence. */
struct wharf_container_index_entry
wharf_container_index_close_node(struct wharf_container_index *index, uint32_t level,
                                 uint64_t frame_offset);

/* The root's place in the member, or 0 for a member without chunks; when nothing is due any more
 * and no more chunks will come. */
uint64_t wharf_container_index_root(const struct wharf_container_index *index);

/* How many chunks a full subtree of `level` holds, 256 to its power; UINT64_MAX above level 7. */
uint64_t wharf_container_index_span(uint32_t level);

#endif
