/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.h: a priority queue of times (a leftist heap).
 *
 * Nodes are embedded in the elements, so nothing is allocated.  Inserting a node and removing any
 * node take logarithmic time in the worst case, not amortised: keys are clients' deadlines, and the
 * heap is used under the core lock.
 */
#ifndef WHARF_DAEMON_BASE_HEAP_H
#define WHARF_DAEMON_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wharf_heap_node {
    uint64_t key;
    bool is_linked;
    uint32_t rank; /* length of the right spine */
    struct wharf_heap_node *left;
    struct wharf_heap_node *right;
    struct wharf_heap_node *parent;
};

struct wharf_heap {
    struct wharf_heap_node *root; /* the node with the least key, or NULL */
};

/* Inserts a node that is in no heap.  A zeroed node is in none. */
void wharf_heap_insert(struct wharf_heap *heap, struct wharf_heap_node *node, uint64_t key);

/* Does nothing if the node is in no heap. */
void wharf_heap_remove(struct wharf_heap *heap, struct wharf_heap_node *node);

#endif
