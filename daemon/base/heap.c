/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/heap.h"

static uint32_t rank_of(const struct wharf_heap_node *node)
{
    return node ? node->rank : 0;
}

/* The lower child belongs on the right; returns whether the rank has changed by that. */
static bool set_rank(struct wharf_heap_node *node)
{
    uint32_t before = node->rank;

    if (rank_of(node->left) < rank_of(node->right)) {
        struct wharf_heap_node *left = node->left;
        node->left = node->right;
        node->right = left;
    }
    node->rank = rank_of(node->right) + 1;
    return node->rank != before;
}

/* Makes one tree of two, either of which may be none: along their right sides, which are as long as
 * the logarithm of their sizes at most.  The result's parent is the caller's to set. */
static struct wharf_heap_node *meld(struct wharf_heap_node *a, struct wharf_heap_node *b)
{
    if (!a || !b)
        return a ? a : b;
    if (b->key < a->key) {
        struct wharf_heap_node *swap = a;
        a = b;
        b = swap;
    }
    a->right = meld(a->right, b);
    a->right->parent = a;
    set_rank(a);
    return a;
}

static void set_root(struct wharf_heap *heap, struct wharf_heap_node *root)
{
    heap->root = root;
    if (root)
        root->parent = NULL;
}

void wharf_heap_insert(struct wharf_heap *heap, struct wharf_heap_node *node, uint64_t key)
{
    *node = (struct wharf_heap_node){.key = key, .is_linked = true, .rank = 1};
    set_root(heap, meld(heap->root, node));
}

void wharf_heap_remove(struct wharf_heap *heap, struct wharf_heap_node *node)
{
    if (!node->is_linked)
        return;
    struct wharf_heap_node *parent = node->parent;
    struct wharf_heap_node *rest = meld(node->left, node->right);
    if (!parent) {
        set_root(heap, rest);
    } else {
        if (rest)
            rest->parent = parent;
        if (parent->left == node)
            parent->left = rest;
        else
            parent->right = rest;
        /* Each rank that changes is one above that of the child before. */
        while (parent && set_rank(parent))
            parent = parent->parent;
    }
    *node = (struct wharf_heap_node){.key = 0};
}
