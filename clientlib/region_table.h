/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_table.h: memory that jobs may use, and how the ring names it.
 *
 * Programs name memory by its address, the ring by a region's number and an offset.  Region 0 is
 * the arena, which is the first to be added; the others are what was registered.  Guarded by the
 * handle's lock.
 */
#ifndef WHARF_CLIENT_REGION_TABLE_H
#define WHARF_CLIENT_REGION_TABLE_H

#include <stddef.h>
#include <stdint.h>

enum wharf_client_region_state {
    WHARF_CLIENT_REGION_ADDING,   /* the daemon has not answered yet: no jobs */
    WHARF_CLIENT_REGION_READY,    /* jobs may use it */
    WHARF_CLIENT_REGION_REMOVING, /* no new jobs */
    /* The daemon did not answer, and nobody knows whether it has a region of this number: the
     * number is not used again with it. */
    WHARF_CLIENT_REGION_UNKNOWN,
};

/*
 * A file is a region at addresses where no processor that wharf supports has user memory.  Each
 * file has this many.
 */
enum { WHARF_CLIENT_FILE = 3 };
#define WHARF_CLIENT_FILE_NBYTES ((uintptr_t)1 << 50)
#define WHARF_CLIENT_FILES_BEGIN ((uintptr_t)1 << 62)

struct wharf_client_region {
    uintptr_t address;
    size_t nbytes;
    uint32_t number;
    uint32_t kind; /* enum wharf_memory_kind, or WHARF_CLIENT_FILE */
    uint32_t is_read_only;
    uint32_t is_write_only; /* GPU memory of a daemon without sources there, or a file that is not
                               open for reading */
    uint32_t is_own;        /* start words: the library's mapping, which goes with the region */
    uint32_t n_uses;        /* by jobs in flight: a source, a destination, a chunk of a batch */
    int fd;                 /* owned; -1 for none */
    enum wharf_client_region_state state;
};

/* The arena plus the most registered regions of wharf.h. */
enum { WHARF_CLIENT_MAX_REGIONS = 1024 };

/* The tables never move, so running jobs can be looked up without the lock. */
struct wharf_client_regions {
    uint32_t n_numbers; /* all used numbers are below */
    uint32_t n_addresses;
    struct wharf_client_region *by_number[WHARF_CLIENT_MAX_REGIONS]; /* NULL: free */
    /* Sorted, without overlaps, without UNKNOWN ones. */
    struct wharf_client_region *by_address[WHARF_CLIENT_MAX_REGIONS];
};

/* All regions and their descriptors.  Takes a zeroed struct too. */
void wharf_client_regions_deinit(struct wharf_client_regions *regions);

/*
 * wharf_client_regions_add: adds a region in state ADDING with the lowest free number.  On success
 * it owns `fd`.  Returns 0, -EEXIST (it overlaps another one), -EINVAL (it wraps around the end of
 * the address space), -ENOSPC (no number is free) or -ENOMEM.
 */
int wharf_client_regions_add(struct wharf_client_regions *regions, void *address, size_t nbytes,
                             int fd, struct wharf_client_region **ret_region);

/* The same for a file, at addresses of its own. */
int wharf_client_regions_add_file(struct wharf_client_regions *regions, int fd,
                                  struct wharf_client_region **ret_region);

/* Frees the region, its number and its descriptor. */
void wharf_client_regions_remove(struct wharf_client_regions *regions,
                                 struct wharf_client_region *region);

/* Makes it UNKNOWN: its memory can be registered again, its number stays reserved. */
void wharf_client_regions_forget(struct wharf_client_regions *regions,
                                 struct wharf_client_region *region);

/* For a new daemon: removes UNKNOWN regions, which ended with the last one. */
void wharf_client_regions_drop_unknown(struct wharf_client_regions *regions);

/* The READY region at `address`, but not the arena; or NULL. */
struct wharf_client_region *wharf_client_regions_find(const struct wharf_client_regions *regions,
                                                      const void *address);

/*
 * wharf_client_regions_locate: the READY region and offset of nbytes at `memory`; for no bytes,
 * offset 0 of the arena.  Returns 0, or -EFAULT if they are not within one region, or the region is
 * read-only for an output or write-only for a source.
 */
int wharf_client_regions_locate(const struct wharf_client_regions *regions, const void *memory,
                                size_t nbytes, int is_output, uint16_t *ret_number,
                                uint64_t *ret_offset);

/* Whether any of nbytes at `memory` is registered GPU memory or a file, in any state, which the
 * processor cannot access. */
int wharf_client_regions_touch_distant(const struct wharf_client_regions *regions,
                                       const void *memory, size_t nbytes);

/* The address of a located range. */
static inline void *wharf_client_regions_address(const struct wharf_client_regions *regions,
                                                 uint16_t number, uint64_t offset)
{
    return (void *)(regions->by_number[number]->address + offset);
}

#endif
