/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extents.c: the allocator of the arena, a segregated-fit allocator.
 *
 * Its table is private memory, so nothing that a daemon writes to the arena can confuse it.  Free
 * extents are in lists by size, eight for each power of two, with a bit map of the lists that are
 * not empty; so taking and freeing need constant time.  Neighbours are joined when they are freed.
 * Taken extents are in a hash table by offset, so that only the result of a take can be freed.
 */
#include "clientlib/extents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* No member of the table. */
#define NONE UINT32_MAX

struct wharf_client_extent {
    uint64_t offset;
    uint64_t nbytes;
    uint32_t before; /* the neighbours by offset */
    uint32_t after;
    uint32_t previous; /* in a list of free extents, or in a bucket of taken ones */
    uint32_t next;     /* likewise; of members that are no extent, the next such */
    uint32_t is_taken;
};

/* ---- lists by size ------------------------------------------------------------------------- */

/* Units of 8 to 15 have a list each; from there on a list holds an eighth of a power of two. */
static unsigned log_of(uint64_t units)
{
    return 63 - (unsigned)__builtin_clzll(units);
}

/* The list that an extent of this size is in. */
static unsigned list_of(uint64_t nbytes)
{
    uint64_t units = nbytes / WHARF_CLIENT_EXTENT_NBYTES;

    if (units < 8)
        return (unsigned)units;
    unsigned log = log_of(units);
    return (log - 2) * 8 + (unsigned)(units >> (log - 3) & 7);
}

/* The first list of which every member has this size at least; it may be one past the last. */
static unsigned list_of_enough(uint64_t nbytes)
{
    uint64_t units = nbytes / WHARF_CLIENT_EXTENT_NBYTES;

    if (units < 16)
        return list_of(nbytes);
    uint64_t step = (uint64_t)1 << (log_of(units) - 3);
    return list_of(nbytes) + (units % step != 0);
}

static void list_add(struct wharf_client_extents *extents, uint32_t at)
{
    struct wharf_client_extent *extent = &extents->table[at];
    unsigned list = list_of(extent->nbytes);

    extent->previous = NONE;
    extent->next = extents->lists[list];
    if (extent->next != NONE)
        extents->table[extent->next].previous = at;
    extents->lists[list] = at;
    extents->filled[list / 64] |= (uint64_t)1 << list % 64;
}

static void list_remove(struct wharf_client_extents *extents, uint32_t at)
{
    struct wharf_client_extent *extent = &extents->table[at];
    unsigned list = list_of(extent->nbytes);

    if (extent->next != NONE)
        extents->table[extent->next].previous = extent->previous;
    if (extent->previous != NONE)
        extents->table[extent->previous].next = extent->next;
    else
        extents->lists[list] = extent->next;
    if (extents->lists[list] == NONE)
        extents->filled[list / 64] &= ~((uint64_t)1 << list % 64);
}

/* The first list from `list` on that holds any, or WHARF_CLIENT_EXTENT_LISTS. */
static unsigned first_filled(const struct wharf_client_extents *extents, unsigned list)
{
    while (list < WHARF_CLIENT_EXTENT_LISTS) {
        uint64_t rest = extents->filled[list / 64] >> list % 64;
        if (rest)
            return list + (unsigned)__builtin_ctzll(rest);
        list = (list / 64 + 1) * 64;
    }
    return WHARF_CLIENT_EXTENT_LISTS;
}

/* A free extent of at least nbytes, or NONE. */
static uint32_t find_free(const struct wharf_client_extents *extents, uint64_t nbytes)
{
    unsigned list = first_filled(extents, list_of_enough(nbytes));

    if (list < WHARF_CLIENT_EXTENT_LISTS)
        return extents->lists[list];
    for (uint32_t at = extents->lists[list_of(nbytes)]; at != NONE; at = extents->table[at].next)
        if (extents->table[at].nbytes >= nbytes)
            return at;
    return NONE;
}

/* ---- taken extents by offset --------------------------------------------------------------- */

/* Multiplies by 2^64 over the golden ratio, which spreads offsets in any regular steps. */
static uint32_t *bucket_of(struct wharf_client_extents *extents, uint64_t offset)
{
    uint64_t hash = offset / WHARF_CLIENT_EXTENT_NBYTES * 0x9e3779b97f4a7c15u;

    return &extents->buckets[(hash >> 32) & (extents->capacity - 1)];
}

static void bucket_add(struct wharf_client_extents *extents, uint32_t at)
{
    uint32_t *bucket = bucket_of(extents, extents->table[at].offset);

    extents->table[at].next = *bucket;
    *bucket = at;
}

/* Removes the taken extent at `offset` from its bucket and returns it; NONE if there is none. */
static uint32_t bucket_remove(struct wharf_client_extents *extents, uint64_t offset)
{
    uint32_t *link = bucket_of(extents, offset);

    while (*link != NONE && extents->table[*link].offset != offset)
        link = &extents->table[*link].next;
    uint32_t at = *link;
    if (at != NONE)
        *link = extents->table[at].next;
    return at;
}

/* ---- the table ----------------------------------------------------------------------------- */

enum { FIRST_CAPACITY = 64 };

static int grow(struct wharf_client_extents *extents)
{
    uint32_t old = extents->capacity;
    uint32_t capacity = old ? 2 * old : FIRST_CAPACITY;
    uint32_t *buckets = malloc(capacity * sizeof(*buckets));
    struct wharf_client_extent *table = realloc(extents->table, capacity * sizeof(*table));

    if (table)
        extents->table = table;
    if (!table || !buckets) {
        free(buckets);
        return -ENOMEM;
    }
    free(extents->buckets);
    extents->buckets = buckets;
    extents->capacity = capacity;
    memset(buckets, 0xff, capacity * sizeof(*buckets));
    for (uint32_t at = 0; at < old; at++)
        if (table[at].is_taken)
            bucket_add(extents, at);
    for (uint32_t at = capacity; at-- > old;) {
        table[at].is_taken = 0;
        table[at].next = extents->unused;
        extents->unused = at;
    }
    return 0;
}

/* Makes sure that one more extent can be made. */
static int reserve_one(struct wharf_client_extents *extents)
{
    return extents->unused == NONE ? grow(extents) : 0;
}

/* A new extent [offset, offset + nbytes) behind `before`; reserve_one came first. */
static uint32_t insert_after(struct wharf_client_extents *extents, uint32_t before, uint64_t offset,
                             uint64_t nbytes)
{
    uint32_t at = extents->unused;
    struct wharf_client_extent *extent = &extents->table[at];

    extents->unused = extent->next;
    *extent = (struct wharf_client_extent){.offset = offset, .nbytes = nbytes, .before = before};
    extent->after = before == NONE ? NONE : extents->table[before].after;
    if (before != NONE)
        extents->table[before].after = at;
    if (extent->after != NONE)
        extents->table[extent->after].before = at;
    return at;
}

/* Joins `at` with the free extent behind it, which goes. */
static void join_next(struct wharf_client_extents *extents, uint32_t at)
{
    struct wharf_client_extent *extent = &extents->table[at];
    uint32_t gone = extent->after;

    extent->nbytes += extents->table[gone].nbytes;
    extent->after = extents->table[gone].after;
    if (extent->after != NONE)
        extents->table[extent->after].before = at;
    extents->table[gone].next = extents->unused;
    extents->unused = gone;
}

/* ---- the calls ----------------------------------------------------------------------------- */

int wharf_client_extents_init(struct wharf_client_extents *extents, uint64_t nbytes)
{
    memset(extents, 0, sizeof(*extents));
    memset(extents->lists, 0xff, sizeof(extents->lists));
    extents->unused = NONE;
    extents->nbytes = nbytes - nbytes % WHARF_CLIENT_EXTENT_NBYTES;
    int r = grow(extents);
    if (r < 0)
        wharf_client_extents_deinit(extents);
    else if (extents->nbytes)
        list_add(extents, insert_after(extents, NONE, 0, extents->nbytes));
    return r;
}

void wharf_client_extents_deinit(struct wharf_client_extents *extents)
{
    free(extents->table);
    free(extents->buckets);
    extents->table = NULL;
    extents->buckets = NULL;
}

int wharf_client_extents_take(struct wharf_client_extents *extents, uint64_t nbytes,
                              uint64_t *ret_offset)
{
    if (nbytes > extents->nbytes)
        return -ENOBUFS;
    nbytes = nbytes ? nbytes + (-nbytes % WHARF_CLIENT_EXTENT_NBYTES) : WHARF_CLIENT_EXTENT_NBYTES;
    uint32_t at = find_free(extents, nbytes);
    if (at == NONE)
        return -ENOBUFS;
    int r = reserve_one(extents);
    if (r < 0)
        return r;
    struct wharf_client_extent *extent = &extents->table[at];
    list_remove(extents, at);
    if (extent->nbytes > nbytes) {
        list_add(extents,
                 insert_after(extents, at, extent->offset + nbytes, extent->nbytes - nbytes));
        extent->nbytes = nbytes;
    }
    extent->is_taken = 1;
    bucket_add(extents, at);
    extents->taken_nbytes += nbytes;
    *ret_offset = extent->offset;
    return 0;
}

/* Whether `at` is an extent, and a free one. */
static int is_free(const struct wharf_client_extents *extents, uint32_t at)
{
    return at != NONE && !extents->table[at].is_taken;
}

int wharf_client_extents_give_back(struct wharf_client_extents *extents, uint64_t offset)
{
    uint32_t at = bucket_remove(extents, offset);

    if (at == NONE)
        return -ENOENT;
    extents->taken_nbytes -= extents->table[at].nbytes;
    extents->table[at].is_taken = 0;
    if (is_free(extents, extents->table[at].after)) {
        list_remove(extents, extents->table[at].after);
        join_next(extents, at);
    }
    if (is_free(extents, extents->table[at].before)) {
        at = extents->table[at].before;
        list_remove(extents, at);
        join_next(extents, at);
    }
    list_add(extents, at);
    return 0;
}
