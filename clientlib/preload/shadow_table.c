/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shadow_table.c: the table of taken streams, in sets of eight slots, indexed by the address of the
 * genuine state.  One atomic exchange claims a slot, and plain loads search a set, so no thread
 * waits.  A full set takes no more streams.
 *
 * By zlib's rules, only one thread at a time uses a stream, so only that thread searches for it or
 * drops it.  An entry's shadow therefore needs no memory ordering.  A few unused shadows are kept
 * for later streams.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "clientlib/preload/preload.h"

enum { N_SETS = 256, N_WAYS = 8, N_SPARE = 32 };

struct set {
    _Atomic(uintptr_t) keys[N_WAYS];
    _Atomic(struct wharf_shadow *) shadows[N_WAYS];
};

static struct set sets[N_SETS];
static _Atomic(struct wharf_shadow *) spare[N_SPARE];

static struct set *set_of(uintptr_t key)
{
    return &sets[key * 0x9e3779b97f4a7c15u >> 56];
}

struct wharf_shadow *wharf_preload_find(z_streamp strm)
{
    const uintptr_t key = strm ? (uintptr_t)strm->state : 0;
    struct set *set = set_of(key);

    if (!key)
        return NULL;
    for (unsigned i = 0; i < N_WAYS; i++) {
        if (atomic_load_explicit(&set->keys[i], memory_order_relaxed) != key)
            continue;
        struct wharf_shadow *shadow = atomic_load_explicit(&set->shadows[i], memory_order_relaxed);
        return shadow && shadow->owner == strm ? shadow : NULL;
    }
    return NULL;
}

static struct wharf_shadow *shadow_new(void)
{
    for (unsigned i = 0; i < N_SPARE; i++) {
        struct wharf_shadow *shadow = atomic_load_explicit(&spare[i], memory_order_relaxed);
        if (shadow &&
            (shadow = atomic_exchange_explicit(&spare[i], NULL, memory_order_acquire)) != NULL)
            return shadow;
    }
    return malloc(sizeof(struct wharf_shadow));
}

static void shadow_free(struct wharf_shadow *shadow)
{
    for (unsigned i = 0; i < N_SPARE; i++) {
        struct wharf_shadow *none = NULL;
        if (atomic_compare_exchange_strong_explicit(&spare[i], &none, shadow, memory_order_release,
                                                    memory_order_relaxed))
            return;
    }
    free(shadow);
}

static int claim(struct set *set, uintptr_t key)
{
    /* An existing entry belongs to an earlier stream that ended without a call to us. */
    for (int i = 0; i < N_WAYS; i++)
        if (atomic_load_explicit(&set->keys[i], memory_order_relaxed) == key)
            return i;
    for (int i = 0; i < N_WAYS; i++) {
        uintptr_t none = 0;
        if (atomic_compare_exchange_strong_explicit(&set->keys[i], &none, key, memory_order_acquire,
                                                    memory_order_relaxed))
            return i;
    }
    return -1;
}

bool wharf_preload_take(z_streamp strm)
{
    const uintptr_t key = (uintptr_t)strm->state;
    struct set *set = set_of(key);
    const int i = claim(set, key);

    if (i < 0)
        return false;
    struct wharf_shadow *shadow = atomic_load_explicit(&set->shadows[i], memory_order_relaxed);
    if (!shadow)
        shadow = shadow_new();
    atomic_store_explicit(&set->shadows[i], shadow, memory_order_relaxed);
    if (!shadow) {
        atomic_store_explicit(&set->keys[i], 0, memory_order_release);
        return false;
    }
    shadow->owner = strm;
    return true;
}

void wharf_preload_drop(z_streamp strm)
{
    const uintptr_t key = (uintptr_t)strm->state;
    struct set *set = set_of(key);

    for (unsigned i = 0; i < N_WAYS; i++) {
        if (atomic_load_explicit(&set->keys[i], memory_order_relaxed) != key)
            continue;
        shadow_free(atomic_exchange_explicit(&set->shadows[i], NULL, memory_order_relaxed));
        atomic_store_explicit(&set->keys[i], 0, memory_order_release);
        return;
    }
}
