/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/heap.h"

/* Makes one tree of two, either of which may be none.  Both are roots without siblings. */
static struct wharf_heap_node *meld(struct wharf_heap_node *a, struct wharf_heap_node *b)
{
    if (!a || !b)
        return a ? a : b;
    if (b->key < a->key) {
        struct wharf_heap_node *swap = a;
        a = b;
        b = swap;
    }
    b->next = a->child;
    if (a->child)
        a->child->prev = b;
    b->prev = a;
    a->child = b;
    return a;
}

/* Makes one tree of a list of siblings: melds them by twos, then all from the end. */
static struct wharf_heap_node *meld_siblings(struct wharf_heap_node *first)
{
    struct wharf_heap_node *pairs = NULL, *root = NULL;

    while (first) {
        struct wharf_heap_node *a = first, *b = a->next;
        first = b ? b->next : NULL;
        a->next = NULL;
        if (b)
            b->next = NULL;
        a = meld(a, b);
        a->next = pairs;
        pairs = a;
    }
    while (pairs) {
        struct wharf_heap_node *rest = pairs->next;
        pairs->next = NULL;
        root = meld(root, pairs);
        pairs = rest;
    }
    if (root)
        root->prev = NULL;
    return root;
}

void wharf_heap_insert(struct wharf_heap *heap, struct wharf_heap_node *node, uint64_t key)
{
    *node = (struct wharf_heap_node){.key = key, .is_linked = true};
    heap->root = meld(heap->root, node);
}

/* Takes a tree that is not the root out of its siblings. */
static void cut(struct wharf_heap_node *node)
{
    if (node->prev->child == node)
        node->prev->child = node->next;
    else
        node->prev->next = node->next;
    if (node->next)
        node->next->prev = node->prev;
}

void wharf_heap_remove(struct wharf_heap *heap, struct wharf_heap_node *node)
{
    if (!node->is_linked)
        return;
    struct wharf_heap_node *children = meld_siblings(node->child);
    if (heap->root == node) {
        heap->root = children;
    } else {
        cut(node);
        heap->root = meld(heap->root, children);
    }
    *node = (struct wharf_heap_node){.key = 0};
}
