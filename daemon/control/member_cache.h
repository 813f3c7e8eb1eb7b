/* SPDX-License-Identifier: Apache-2.0 */
/*
 * member_cache.h: in which group with settings a user is, for some time.
 *
 * A table in which each uid has one place, with that of others: who comes later takes it.
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
    uint64_t until_ns; /* 0: nobody has this place */
    char group[WHARF_CONFIG_NAME_NBYTES];
    bool is_known; /* else nobody could say */
};

struct wharf_member_cache {
    struct wharf_member *members;
};

/* 0 or -ENOMEM. */
int wharf_member_cache_init(struct wharf_member_cache *cache);
void wharf_member_cache_deinit(struct wharf_member_cache *cache);

/* Forgets everybody. */
void wharf_member_cache_clear(struct wharf_member_cache *cache);

/* Returns NULL if the user is not there, or was entered too long ago. */
const struct wharf_member *wharf_member_cache_find(const struct wharf_member_cache *cache,
                                                   uid_t uid, uint64_t now_ns);

void wharf_member_cache_add(struct wharf_member_cache *cache, const struct wharf_member *member);

#endif
