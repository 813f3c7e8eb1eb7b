/* SPDX-License-Identifier: Apache-2.0 */
/*
 * region_table.c: registered memory, by address and by number.
 *
 * Addresses are sorted for binary search.  A number is reused only after a daemon has released it,
 * since jobs in flight may still name it.
 */
#include "clientlib/region_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clientlib/wharf.h"

static void region_free(struct wharf_client_region *region)
{
    if (region && region->is_own)
        munmap((void *)region->address, region->nbytes);
    if (region && region->fd >= 0)
        close(region->fd);
    free(region);
}

void wharf_client_regions_deinit(struct wharf_client_regions *regions)
{
    for (uint32_t i = 0; i < regions->n_numbers; i++)
        region_free(regions->by_number[i]);
    memset(regions, 0, sizeof(*regions));
}

/* How many regions begin at or before `address`. */
static uint32_t count_up_to(const struct wharf_client_regions *regions, uintptr_t address)
{
    uint32_t low = 0, high = regions->n_addresses;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (regions->by_address[middle]->address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first region that has any of these bytes, by its place in by_address; or n_addresses. */
static uint32_t find_overlap(const struct wharf_client_regions *regions, uintptr_t address,
                             size_t nbytes)
{
    uint32_t n = count_up_to(regions, address);

    if (n > 0 && address - regions->by_address[n - 1]->address < regions->by_address[n - 1]->nbytes)
        return n - 1;
    return n < regions->n_addresses && regions->by_address[n]->address - address < nbytes
               ? n
               : regions->n_addresses;
}

/* The lowest number that is free, or WHARF_CLIENT_MAX_REGIONS. */
static uint32_t find_number(const struct wharf_client_regions *regions)
{
    uint32_t number = 0;

    while (number < regions->n_numbers && regions->by_number[number])
        number++;
    return number;
}

static void add_address(struct wharf_client_regions *regions, struct wharf_client_region *region)
{
    uint32_t at = count_up_to(regions, region->address);
    struct wharf_client_region **place = &regions->by_address[at];

    memmove(place + 1, place, (regions->n_addresses - at) * sizeof(*place));
    *place = region;
    regions->n_addresses++;
}

static void remove_address(struct wharf_client_regions *regions,
                           const struct wharf_client_region *region)
{
    uint32_t at = count_up_to(regions, region->address) - 1;
    struct wharf_client_region **place = &regions->by_address[at];

    regions->n_addresses--;
    memmove(place, place + 1, (regions->n_addresses - at) * sizeof(*place));
}

int wharf_client_regions_add(struct wharf_client_regions *regions, void *address, size_t nbytes,
                             int fd, struct wharf_client_region **ret_region)
{
    uint32_t number = find_number(regions);

    if (nbytes == 0 || nbytes - 1 > UINTPTR_MAX - (uintptr_t)address)
        return -EINVAL;
    if (find_overlap(regions, (uintptr_t)address, nbytes) < regions->n_addresses)
        return -EEXIST;
    if (number == WHARF_CLIENT_MAX_REGIONS)
        return -ENOSPC;
    struct wharf_client_region *region = calloc(1, sizeof(*region));
    if (!region)
        return -ENOMEM;
    region->address = (uintptr_t)address;
    region->nbytes = nbytes;
    region->number = number;
    region->fd = fd;
    region->state = WHARF_CLIENT_REGION_ADDING;
    regions->by_number[number] = region;
    if (number == regions->n_numbers)
        regions->n_numbers++;
    add_address(regions, region);
    *ret_region = region;
    return 0;
}

int wharf_client_regions_add_file(struct wharf_client_regions *regions, int fd,
                                  struct wharf_client_region **ret_region)
{
    uintptr_t place = find_number(regions);
    void *address = (void *)(WHARF_CLIENT_FILES_BEGIN + place * WHARF_CLIENT_FILE_NBYTES);
    int r = wharf_client_regions_add(regions, address, WHARF_CLIENT_FILE_NBYTES, fd, ret_region);

    if (r == 0)
        (*ret_region)->kind = WHARF_CLIENT_FILE;
    return r;
}

void wharf_client_regions_remove(struct wharf_client_regions *regions,
                                 struct wharf_client_region *region)
{
    if (region->state != WHARF_CLIENT_REGION_UNKNOWN)
        remove_address(regions, region);
    regions->by_number[region->number] = NULL;
    region_free(region);
}

void wharf_client_regions_forget(struct wharf_client_regions *regions,
                                 struct wharf_client_region *region)
{
    remove_address(regions, region);
    region->state = WHARF_CLIENT_REGION_UNKNOWN;
}

void wharf_client_regions_drop_unknown(struct wharf_client_regions *regions)
{
    for (uint32_t i = 0; i < regions->n_numbers; i++) {
        struct wharf_client_region *region = regions->by_number[i];
        if (region && region->state == WHARF_CLIENT_REGION_UNKNOWN)
            wharf_client_regions_remove(regions, region);
    }
}

struct wharf_client_region *wharf_client_regions_find(const struct wharf_client_regions *regions,
                                                      const void *address)
{
    uint32_t n = count_up_to(regions, (uintptr_t)address);
    struct wharf_client_region *region = n ? regions->by_address[n - 1] : NULL;

    if (!region || region->address != (uintptr_t)address || region->number == 0 ||
        region->state != WHARF_CLIENT_REGION_READY)
        return NULL;
    return region;
}

int wharf_client_regions_locate(const struct wharf_client_regions *regions, const void *memory,
                                size_t nbytes, int is_output, uint16_t *ret_number,
                                uint64_t *ret_offset)
{
    uint32_t n = count_up_to(regions, (uintptr_t)memory);
    const struct wharf_client_region *region = n ? regions->by_address[n - 1] : NULL;

    if (nbytes == 0) {
        *ret_number = 0;
        *ret_offset = 0;
        return 0;
    }
    if (!region || region->state != WHARF_CLIENT_REGION_READY ||
        (is_output ? region->is_read_only : region->is_write_only))
        return -EFAULT;
    size_t offset = (uintptr_t)memory - region->address;
    if (offset > region->nbytes || nbytes > region->nbytes - offset)
        return -EFAULT;
    *ret_number = (uint16_t)region->number;
    *ret_offset = offset;
    return 0;
}

int wharf_client_regions_touch_distant(const struct wharf_client_regions *regions,
                                       const void *memory, size_t nbytes)
{
    uintptr_t address = (uintptr_t)memory;

    for (uint32_t i = find_overlap(regions, address, nbytes);
         nbytes && i < regions->n_addresses &&
         (regions->by_address[i]->address <= address ||
          regions->by_address[i]->address - address < nbytes);
         i++)
        if (regions->by_address[i]->kind == WHARF_MEMORY_GPU ||
            regions->by_address[i]->kind == WHARF_CLIENT_FILE)
            return 1;
    return 0;
}
