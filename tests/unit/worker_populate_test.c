/* SPDX-License-Identifier: Apache-2.0 */
/* The pages of memory that is going to be registered. */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/worker/worker_populate.h"

enum { MIB = 1 << 20, NBYTES = 21 * MIB + 4096, PAGE_NBYTES = 4096 };

static size_t n_resident(void *address, size_t nbytes)
{
    size_t n_pages = nbytes / PAGE_NBYTES, n = 0;
    unsigned char *is_there = malloc(n_pages);

    cr_assert(is_there);
    cr_assert_eq(mincore(address, nbytes, is_there), 0);
    for (size_t i = 0; i < n_pages; i++)
        n += is_there[i] & 1;
    free(is_there);
    return n;
}

/* Fresh pages, and holes; what was there stays. */
Test(worker_populate, all_pages_are_there)
{
    for (unsigned read_only = 0; read_only < 2; read_only++) {
        int fd = memfd_create("populate", MFD_CLOEXEC);
        cr_assert_eq(ftruncate(fd, NBYTES), 0);
        uint8_t byte = 0x5a;
        cr_assert_eq(pwrite(fd, &byte, 1, 5 * MIB), 1);
        uint8_t *address =
            mmap(NULL, NBYTES, read_only ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        cr_assert_neq(address, MAP_FAILED);
        cr_assert_eq(n_resident(address, NBYTES), 1);
        wharf_worker_populate(address, NBYTES, read_only);
        cr_expect_eq(n_resident(address, NBYTES), NBYTES / PAGE_NBYTES);
        cr_expect_eq(address[5 * MIB], 0x5a);
        cr_expect_eq(address[5 * MIB + 1], 0);
        munmap(address, NBYTES);
        close(fd);
    }
}

/* Of memory that ends before its mapping does, what there is; the rest is the driver's to refuse.
 */
Test(worker_populate, what_is_not_to_be_had_stops_nothing)
{
    int fd = memfd_create("populate", MFD_CLOEXEC);

    cr_assert_eq(ftruncate(fd, 4 * MIB), 0);
    uint8_t *address = mmap(NULL, NBYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert_neq(address, MAP_FAILED);
    wharf_worker_populate(address, NBYTES, false);
    cr_expect_eq(n_resident(address, 4 * MIB), 4 * MIB / PAGE_NBYTES);
    munmap(address, NBYTES);
    close(fd);
}

Test(worker_populate, short_memory_is_the_drivers)
{
    int fd = memfd_create("populate", MFD_CLOEXEC);

    cr_assert_eq(ftruncate(fd, NBYTES), 0);
    void *address = mmap(NULL, NBYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    cr_assert_neq(address, MAP_FAILED);
    wharf_worker_populate(address, WHARF_POPULATE_LEAST_NBYTES - PAGE_NBYTES, false);
    cr_expect_eq(n_resident(address, NBYTES), 0);
    munmap(address, NBYTES);
    close(fd);
}
