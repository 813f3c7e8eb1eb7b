/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c: memory for a handle's own jobs (arena.h). */
#include "clientlib/arena.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clientlib/sealed_memory.h"
#include "clientlib/wharf.h"

/* Gives the mapping its books and its number. */
static int add_books(struct wharf_client_arena *arena, struct wharf_client_regions *regions,
                     void *address, uint64_t nbytes)
{
    struct wharf_client_region *region;
    int r = wharf_client_extents_init(&arena->extents, nbytes);

    if (r < 0)
        return r;
    r = wharf_client_regions_add(regions, address, nbytes, -1, &region);
    if (r < 0) {
        wharf_client_extents_deinit(&arena->extents);
        return r;
    }
    region->state = WHARF_CLIENT_REGION_READY;
    region->kind = WHARF_MEMORY_MEMFD;
    arena->address = address;
    arena->nbytes = nbytes;
    return 0;
}

int wharf_client_arena_make(struct wharf_client_arena *arena, struct wharf_client_regions *regions,
                            uint64_t nbytes)
{
    void *address = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (address == MAP_FAILED)
        return -ENOMEM;
    int r = add_books(arena, regions, address, nbytes);
    if (r < 0)
        munmap(address, nbytes);
    return r;
}

int wharf_client_arena_adopt(struct wharf_client_arena *arena, struct wharf_client_regions *regions,
                             int fd, uint64_t nbytes)
{
    void *address;
    int r = wharf_client_map(fd, nbytes, PROT_READ | PROT_WRITE, &address);

    if (r < 0)
        return r;
    r = add_books(arena, regions, address, nbytes);
    if (r < 0)
        munmap(address, nbytes);
    else
        arena->fd = fd;
    return r;
}

void wharf_client_arena_deinit(struct wharf_client_arena *arena, int is_forked)
{
    /* Where the parent's mapping was, the child may have something else by now. */
    if (arena->address && !(is_forked && arena->fd >= 0))
        munmap(arena->address, arena->nbytes);
    if (arena->fd >= 0)
        close(arena->fd);
    wharf_client_extents_deinit(&arena->extents);
    arena->address = NULL;
    arena->fd = -1;
}

int wharf_client_arena_take(struct wharf_client_arena *arena, size_t nbytes, void **ret_memory)
{
    uint64_t offset;
    int r = wharf_client_extents_take(&arena->extents, nbytes, &offset);

    if (r == 0)
        *ret_memory = (char *)arena->address + offset;
    return r;
}

int wharf_client_arena_give_back(struct wharf_client_arena *arena, const void *memory)
{
    uintptr_t offset = (uintptr_t)memory - (uintptr_t)arena->address;

    return wharf_client_extents_give_back(&arena->extents, offset) < 0 ? -EINVAL : 0;
}
