/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.h: the earliest of many times (a pairing heap).
 *
 * The nodes lie in the elements, so nothing is allocated.  Inserting takes constant time, removing
 * any node logarithmic time on average.
 */
#ifndef WHARF_DAEMON_HEAP_H
#define WHARF_DAEMON_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wharf_heap_node {
    uint64_t key;
    bool is_linked;
    struct wharf_heap_node *child; /* the first one */
    struct wharf_heap_node *next;  /* sibling */
    struct wharf_heap_node *prev;  /* sibling, or the parent of a first child */
};

struct wharf_heap {
    struct wharf_heap_node *root; /* the one with the least key; NULL if the heap is empty */
};

/* The node is in no heap; a zeroed one is in none. */
void wharf_heap_insert(struct wharf_heap *heap, struct wharf_heap_node *node, uint64_t key);

/* Does nothing if the node is in no heap. */
void wharf_heap_remove(struct wharf_heap *heap, struct wharf_heap_node *node);

#endif
