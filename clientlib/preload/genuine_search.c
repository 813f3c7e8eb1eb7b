/* SPDX-License-Identifier: Apache-2.0 */
/*
 * genuine_search.c: finds genuine functions by name.
 *
 * A symbol is found in the global scope first, behind this library.  If no copy is there, the
 * caller or what it was linked with has one: modules of Python bring their own copies, which are
 * loaded outside the global scope.  Last, any loaded copy will do: a caller that jumped into the
 * function is not the one that the return address tells.
 *
 * Answers are kept, so that a call takes no lock but the first time.  What was found is never
 * unloaded.
 */
#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "clientlib/preload/preload.h"

enum { N_SLOTS = 256 };

/* One answer.  key is 0: free; BUSY: being filled; otherwise the slot does not change any more. */
enum { BUSY = 1 };
static struct {
    atomic_uintptr_t key;
    const char *name;
    void *found;
} slots[N_SLOTS];

/* What the loaded library of that name, or what it was linked with, has.  It stays loaded. */
static void *find_in(const char *library, const char *name)
{
    void *handle = *library ? dlopen(library, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    void *found = handle ? dlsym(handle, name) : NULL;

    if (handle && !found)
        dlclose(handle);
    return found;
}

/* The name of the n-th loaded library. */
struct nth {
    unsigned n;
    char name[PATH_MAX];
};

static int take_nth(struct dl_phdr_info *info, size_t nbytes, void *context)
{
    struct nth *nth = context;

    (void)nbytes;
    if (nth->n-- != 0)
        return 0;
    snprintf(nth->name, sizeof(nth->name), "%s", info->dlpi_name ? info->dlpi_name : "");
    return 1;
}

static struct link_map *map_of(const void *address)
{
    struct link_map *map = NULL;
    Dl_info info;

    return dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) ? map : NULL;
}

static void *search(const char *name, const void *caller)
{
    const struct link_map *self = map_of(slots), *map = map_of(caller);
    void *found = dlsym(RTLD_NEXT, name);

    if (!found && map && map != self)
        found = find_in(map->l_name, name);
    for (unsigned n = 0; !found; n++) {
        struct nth nth = {.n = n};
        if (!dl_iterate_phdr(take_nth, &nth))
            break;
        if (self && strcmp(nth.name, self->l_name) != 0)
            found = find_in(nth.name, name);
    }
    return found;
}

void *wharf_preload_search(const char *name, const void *caller)
{
    const uintptr_t key = (uintptr_t)caller;
    const uintptr_t first = (key ^ (uintptr_t)name) * 0x9e3779b97f4a7c15u >> 56;

    for (uintptr_t i = 0; i < 4; i++) {
        uintptr_t slot = (first + i) % N_SLOTS;
        uintptr_t seen = atomic_load_explicit(&slots[slot].key, memory_order_acquire);
        if (seen == key && slots[slot].name == name)
            return slots[slot].found;
        if (seen != 0 ||
            !atomic_compare_exchange_strong_explicit(&slots[slot].key, &seen, BUSY,
                                                     memory_order_relaxed, memory_order_relaxed))
            continue;
        void *found = search(name, caller);
        slots[slot].name = name;
        slots[slot].found = found;
        /* Publishes name and found to the load above.  What is not there yet may be loaded
         * later. */
        atomic_store_explicit(&slots[slot].key, found ? key : 0, memory_order_release);
        return found;
    }
    return search(name, caller);
}
