/* SPDX-License-Identifier: Apache-2.0 */
/*
 * member_cache.h: remembers for a while in which group with settings a user is.
 *
 * A direct-mapped table: each uid has one place, which it shares with others; the latest one has
 * it.
 */
#ifndef WHARF_DAEMON_CONTROL_MEMBER_CACHE_H
#define WHARF_DAEMON_CONTROL_MEMBER_CACHE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/config.h"

#define WHARF_MEMBER_CACHE_N_ENTRIES 4096

struct wharf_member {
    uid_t uid;
    uint64_t until_ns; /* 0: the place is empty */
    char group[WHARF_CONFIG_NAME_NBYTES];
    bool is_known; /* false: the look-up failed */
};

struct wharf_member_cache {
    struct wharf_member *members;
};

/* 0 or -ENOMEM. */
int wharf_member_cache_init(struct wharf_member_cache *cache);
void wharf_member_cache_deinit(struct wharf_member_cache *cache);

/* Empties the cache. */
void wharf_member_cache_clear(struct wharf_member_cache *cache);

/* Returns NULL if the user is not in the cache, or the entry is too old. */
const struct wharf_member *wharf_member_cache_find(const struct wharf_member_cache *cache,
                                                   uid_t uid, uint64_t now_ns);

void wharf_member_cache_add(struct wharf_member_cache *cache, const struct wharf_member *member);

#endif
