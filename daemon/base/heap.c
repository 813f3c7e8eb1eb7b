/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heap.c: a leftist heap with parent links (Crane, 1972; Knuth, The Art of Computer Programming,
 * volume 3, section 5.2.3).
 *
 * INVARIANT: no key is less than its parent's, and a left child's rank is at least its right
 * sibling's.  So a right spine has at most logarithmic length, and all operations work along right
 * spines.
 */
#include "daemon/base/heap.h"

static uint32_t rank_of(const struct wharf_heap_node *node)
{
    return node ? node->rank : 0;
}

/* Restores the invariant for a node's children, and computes its rank.  Returns whether that
 * changed. */
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

/* Merges two trees along their right spines.  Either may be NULL.  The caller sets the result's
 * parent. */
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
        /* Ranks can change up to the root, but each changed rank is one more than its child's. */
        while (parent && set_rank(parent))
            parent = parent->parent;
    }
    *node = (struct wharf_heap_node){.key = 0};
}
