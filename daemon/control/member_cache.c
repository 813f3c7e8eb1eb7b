/* SPDX-License-Identifier: Apache-2.0 */
/* member_cache.c: the table of users' groups with settings. */
#include "daemon/control/member_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int wharf_member_cache_init(struct wharf_member_cache *cache)
{
    cache->members = calloc(WHARF_MEMBER_CACHE_N_ENTRIES, sizeof(*cache->members));
    return cache->members ? 0 : -ENOMEM;
}

void wharf_member_cache_deinit(struct wharf_member_cache *cache)
{
    free(cache->members);
    cache->members = NULL;
}

void wharf_member_cache_clear(struct wharf_member_cache *cache)
{
    memset(cache->members, 0, WHARF_MEMBER_CACHE_N_ENTRIES * sizeof(*cache->members));
}

/* Consecutive uids, as users mostly have, get different places. */
static struct wharf_member *place_of(const struct wharf_member_cache *cache, uid_t uid)
{
    return &cache->members[uid % WHARF_MEMBER_CACHE_N_ENTRIES];
}

const struct wharf_member *wharf_member_cache_find(const struct wharf_member_cache *cache,
                                                   uid_t uid, uint64_t now_ns)
{
    const struct wharf_member *member = place_of(cache, uid);

    return member->uid == uid && now_ns < member->until_ns ? member : NULL;
}

void wharf_member_cache_add(struct wharf_member_cache *cache, const struct wharf_member *member)
{
    *place_of(cache, member->uid) = *member;
}
