/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h: a handle's own memory for jobs: region 0.
 *
 * Through a daemon it is the session's arena, which outlives the session: the descriptor is kept to
 * bring it to the next daemon.  Embedded it is plain memory.  Guarded by the handle's lock; the
 * memory itself is not.
 */
#ifndef WHARF_CLIENT_ARENA_H
#define WHARF_CLIENT_ARENA_H

#include "clientlib/extents.h"
#include "clientlib/region_table.h"

struct wharf_client_arena {
    void *address; /* NULL: none yet */
    uint64_t nbytes;
    int fd; /* -1 for plain memory */
    struct wharf_client_extents extents;
};

/* wharf_client_arena_make: plain memory.  Returns 0 or -ENOMEM. */
int wharf_client_arena_make(struct wharf_client_arena *arena, struct wharf_client_regions *regions,
                            uint64_t nbytes);

/*
 * wharf_client_arena_adopt: uses the first nbytes of a daemon's checked memfd.  On success the
 * arena owns `fd`.  Returns 0, -ENOMEM or -errno of mmap.
 */
int wharf_client_arena_adopt(struct wharf_client_arena *arena, struct wharf_client_regions *regions,
                             int fd, uint64_t nbytes);

/* Also in a forked child, where a daemon's arena is not mapped.  May be called without an arena. */
void wharf_client_arena_deinit(struct wharf_client_arena *arena, int is_forked);

/* Returns 0, -ENOBUFS or -ENOMEM. */
int wharf_client_arena_take(struct wharf_client_arena *arena, size_t nbytes, void **ret_memory);

/* Returns 0 or -EINVAL. */
int wharf_client_arena_give_back(struct wharf_client_arena *arena, const void *memory);

#endif
