/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner_cache.h: what is known of who owns which uids, for some time.
 *
 * Ranges that do not overlap, in order, so that the range of a uid is found by halving.  Where
 * there is no room for one more, the one that was used longest ago goes.
 */
#ifndef WHARF_DAEMON_CONTROL_OWNER_CACHE_H
#define WHARF_DAEMON_CONTROL_OWNER_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define WHARF_OWNER_CACHE_N_ENTRIES 4096

/* All uids from the first to the last one have this owner. */
struct wharf_owner_range {
    uid_t first;
    uid_t last;
    uid_t owner;
    bool is_unknown; /* nobody could say */
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

/* All ranges are too old from now on.  They stay, in case a look-up gets no answer. */
void wharf_owner_cache_expire(struct wharf_owner_cache *cache);

/* The range that has the uid, however old; NULL: none.  It is there until the next one is added. */
struct wharf_owner_range *wharf_owner_cache_find(struct wharf_owner_cache *cache, uid_t uid);

/* Adds a range, in the place of all that it overlaps. */
void wharf_owner_cache_add(struct wharf_owner_cache *cache, const struct wharf_owner_range *range);

#endif
