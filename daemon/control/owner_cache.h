/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner_cache.h: remembers for a while who owns which uids.
 *
 * A sorted array of disjoint ranges, with binary search.  A full cache drops the least recently
 * used range.
 */
#ifndef WHARF_DAEMON_CONTROL_OWNER_CACHE_H
#define WHARF_DAEMON_CONTROL_OWNER_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WHARF_OWNER_CACHE_N_ENTRIES 4096

/* The owner of all uids from first to last. */
struct wharf_owner_range {
    uid_t first;
    uid_t last;
    uid_t owner;
    bool is_unknown; /* the look-up failed */
    uint64_t until_ns;
    uint64_t used; /* counts up */
};

struct wharf_owner_cache {
    struct wharf_owner_range *ranges;
    size_t n;
    uint64_t n_uses;
};

/* 0 or -ENOMEM. */
int wharf_owner_cache_init(struct wharf_owner_cache *cache);
void wharf_owner_cache_deinit(struct wharf_owner_cache *cache);

/* Marks all ranges as too old, but keeps them in case a look-up fails. */
void wharf_owner_cache_expire(struct wharf_owner_cache *cache);

/* The range of the uid, however old; NULL: none.  Valid until the next addition. */
struct wharf_owner_range *wharf_owner_cache_find(struct wharf_owner_cache *cache, uid_t uid);

/* Adds a range, and removes all that it overlaps. */
void wharf_owner_cache_add(struct wharf_owner_cache *cache, const struct wharf_owner_range *range);

#endif
