/* SPDX-License-Identifier: Apache-2.0 */
/* owner_cache.c: the table of owners of ranges of uids. */
#include "daemon/control/owner_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int wharf_owner_cache_init(struct wharf_owner_cache *cache)
{
    *cache = (struct wharf_owner_cache){.n = 0};
    cache->ranges = calloc(WHARF_OWNER_CACHE_N_ENTRIES, sizeof(*cache->ranges));
    return cache->ranges ? 0 : -ENOMEM;
}

void wharf_owner_cache_deinit(struct wharf_owner_cache *cache)
{
    free(cache->ranges);
    cache->ranges = NULL;
    cache->n = 0;
}

void wharf_owner_cache_expire(struct wharf_owner_cache *cache)
{
    for (size_t i = 0; i < cache->n; i++)
        cache->ranges[i].until_ns = 0;
}

/* The place of the first range that does not end before the uid. */
static size_t place_of(const struct wharf_owner_cache *cache, uid_t uid)
{
    size_t from = 0, to = cache->n;

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (cache->ranges[middle].last < uid)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

struct wharf_owner_range *wharf_owner_cache_find(struct wharf_owner_cache *cache, uid_t uid)
{
    size_t at = place_of(cache, uid);

    if (at == cache->n || cache->ranges[at].first > uid)
        return NULL;
    cache->ranges[at].used = ++cache->n_uses;
    return &cache->ranges[at];
}

static void remove_ranges(struct wharf_owner_cache *cache, size_t at, size_t n)
{
    memmove(&cache->ranges[at], &cache->ranges[at + n],
            (cache->n - at - n) * sizeof(cache->ranges[0]));
    cache->n -= n;
}

static void remove_oldest(struct wharf_owner_cache *cache)
{
    size_t oldest = 0;

    for (size_t i = 1; i < cache->n; i++)
        if (cache->ranges[i].used < cache->ranges[oldest].used)
            oldest = i;
    remove_ranges(cache, oldest, 1);
}

void wharf_owner_cache_add(struct wharf_owner_cache *cache, const struct wharf_owner_range *range)
{
    size_t at = place_of(cache, range->first), n = 0;

    while (at + n < cache->n && cache->ranges[at + n].first <= range->last)
        n++;
    remove_ranges(cache, at, n);
    if (cache->n == WHARF_OWNER_CACHE_N_ENTRIES) {
        remove_oldest(cache);
        at = place_of(cache, range->first);
    }
    memmove(&cache->ranges[at + 1], &cache->ranges[at], (cache->n - at) * sizeof(cache->ranges[0]));
    cache->ranges[at] = *range;
    cache->ranges[at].used = ++cache->n_uses;
    cache->n++;
}
