/* SPDX-License-Identifier: Apache-2.0 */
/*
 * extents.h: which parts of an arena are taken.
 *
 * An allocator of offsets: it knows numbers and never touches what they stand for, so nothing
 * that a daemon writes into an arena can confuse it, and a pointer that was never handed out, or
 * is given back twice, is found out.
 *
 * The range is cut into extents, taken and free ones; free neighbours are always joined.  Free
 * extents hang in lists by size, eight lists for each power of two, and a bit map says which of
 * them hold any: taking looks at the first list of which every member is large enough, and only if
 * there is none walks the list before it.  So both calls take constant time but for that walk, and
 * a take fails only when no free extent is large enough.
 *
 * One thread at a time uses a struct here.
 */
#ifndef WHARF_CLIENT_EXTENTS_H
#define WHARF_CLIENT_EXTENTS_H

#include <stdint.h>

/* Offsets and sizes are multiples of this, so two jobs' memory never shares a cache line. */
#define WHARF_CLIENT_EXTENT_NBYTES 64u

/*
 * In units of 64 bytes: one list each for 0 to 7, then eight for each power of two from 2^3 to
 * 2^57, the last one below 2^64 bytes.
 */
#define WHARF_CLIENT_EXTENT_LISTS 448u

struct wharf_client_extent;

struct wharf_client_extents {
    struct wharf_client_extent *table; /* `capacity` members; extents are numbered by index */
    uint32_t *buckets;                 /* taken extents by a hash of their offset; as many */
    uint32_t capacity;                 /* a power of two, or 0 */
    uint32_t unused;                   /* the first of the members that are no extent */
    uint64_t nbytes;
    uint64_t taken_nbytes;
    uint32_t lists[WHARF_CLIENT_EXTENT_LISTS];
    uint64_t filled[(WHARF_CLIENT_EXTENT_LISTS + 63) / 64]; /* which lists are not empty */
};

/*
 * wharf_client_extents_init: all of [0, nbytes) is free, except a rest below 64 bytes.  Returns 0
 * or -ENOMEM.
 */
int wharf_client_extents_init(struct wharf_client_extents *extents, uint64_t nbytes);

/* Takes a zeroed struct too. */
void wharf_client_extents_deinit(struct wharf_client_extents *extents);

/*
 * wharf_client_extents_take: allocates at least nbytes (0 counts as 1), aligned to 64.  Returns 0,
 * -ENOBUFS (no free extent is large enough) or -ENOMEM (for the table itself).
 */
int wharf_client_extents_take(struct wharf_client_extents *extents, uint64_t nbytes,
                              uint64_t *ret_offset);

/* wharf_client_extents_give_back: frees an extent.  Returns 0, or -ENOENT for any other offset. */
int wharf_client_extents_give_back(struct wharf_client_extents *extents, uint64_t offset);

#endif
