/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_guard.c: maps buffers next to inaccessible pages.
 *
 * Of a few freed buffers the pages are kept, out of everybody's reach, for the next one of that
 * size: to have the system clear pages anew takes most of the time of a decoder that fails soon.
 */
#include "tests/lib/test_guard.h"

#include <pthread.h>
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

enum { MAX_KEPT = 4, MAX_KEPT_NBYTES = 4 << 20 };

static struct {
    pthread_mutex_t lock;
    unsigned next;
    struct {
        uint8_t *mapping;
        size_t nbytes;
    } at[MAX_KEPT];
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Returns one that is kept, or NULL. */
static uint8_t *take_kept(size_t nbytes)
{
    uint8_t *mapping = NULL;

    pthread_mutex_lock(&kept.lock);
    for (unsigned i = 0; i < MAX_KEPT && !mapping; i++) {
        if (kept.at[i].nbytes == nbytes) {
            mapping = kept.at[i].mapping;
            kept.at[i].mapping = NULL;
            kept.at[i].nbytes = 0;
        }
    }
    pthread_mutex_unlock(&kept.lock);
    return mapping;
}

/* Keeps one in the place of another, which is unmapped. */
static void keep(uint8_t *mapping, size_t nbytes)
{
    pthread_mutex_lock(&kept.lock);
    unsigned i = kept.next++ % MAX_KEPT;
    uint8_t *old = kept.at[i].mapping;
    size_t old_nbytes = kept.at[i].nbytes;
    kept.at[i].mapping = mapping;
    kept.at[i].nbytes = nbytes;
    pthread_mutex_unlock(&kept.lock);
    if (old)
        munmap(old, old_nbytes);
}

struct test_guard test_guard_new(size_t nbytes, enum test_guard_side side)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t inner = (nbytes + page - 1) / page * page;
    uint8_t *mapping = take_kept(inner + 2 * page);
    if (!mapping)
        mapping = mmap(NULL, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
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
    size_t page = (size_t)sysconf(_SC_PAGESIZE), nbytes = guard->mapping_nbytes;

    if (guard->mapping && nbytes > 2 * page && nbytes <= MAX_KEPT_NBYTES) {
        uint8_t *first = (uint8_t *)guard->mapping + page;
        check(mprotect(first, nbytes - 2 * page, PROT_NONE) == 0, "mprotect");
        keep(guard->mapping, nbytes);
    } else if (guard->mapping) {
        munmap(guard->mapping, nbytes);
    }
    *guard = (struct test_guard){0};
}
