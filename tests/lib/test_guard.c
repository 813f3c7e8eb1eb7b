/* SPDX-License-Identifier: Apache-2.0 */
/* test_guard.c: maps buffers next to inaccessible pages. */
#include "tests/lib/test_guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void check(int ok, const char *what)
{
    if (!ok) {
        perror(what);
        abort();
    }
}

struct test_guard test_guard_new(size_t nbytes, enum test_guard_side side)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t inner = (nbytes + page - 1) / page * page;
    uint8_t *mapping = mmap(NULL, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(mapping != MAP_FAILED, "mmap of a guarded buffer");
    uint8_t *first = mapping + page;
    if (inner > 0) {
        check(mprotect(first, inner, PROT_READ | PROT_WRITE) == 0, "mprotect");
        memset(first, 0xa5, inner);
    }
    return (struct test_guard){
        .data = side == TEST_GUARD_END ? first + inner - nbytes : first,
        .nbytes = nbytes,
        .mapping = mapping,
        .mapping_nbytes = inner + 2 * page,
    };
}

struct test_guard test_guard_copy(const void *from, size_t nbytes, enum test_guard_side side)
{
    struct test_guard guard = test_guard_new(nbytes, side);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (nbytes > 0) {
        memcpy(guard.data, from, nbytes);
        uint8_t *first = (uint8_t *)guard.mapping + page;
        check(mprotect(first, guard.mapping_nbytes - 2 * page, PROT_READ) == 0, "mprotect");
    }
    return guard;
}

void test_guard_free(struct test_guard *guard)
{
    if (guard->mapping)
        munmap(guard->mapping, guard->mapping_nbytes);
    *guard = (struct test_guard){0};
}
