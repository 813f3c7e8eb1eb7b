/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/worker/worker_populate.h"

#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

/* Of Linux 5.14; older headers lack them, and older systems refuse them. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

/* Threads take slices in turn; each thread is to have some.  More threads gain little, since they
 * wait for one another in the system. */
#define SLICE_NBYTES ((size_t)2 << 20)
#define SLICES_A_THREAD 2u
#define MOST_THREADS 8u

struct population {
    uint8_t *address;
    size_t nbytes;
    size_t n_taken; /* slices */
    int advice;
};

static void *populate(void *context)
{
    struct population *p = context;
    size_t at;

    while ((at = __atomic_fetch_add(&p->n_taken, 1, __ATOMIC_RELAXED) * SLICE_NBYTES) < p->nbytes) {
        size_t n = p->nbytes - at < SLICE_NBYTES ? p->nbytes - at : SLICE_NBYTES;
        /* Where a page is not to be had, the next slice's are not either. */
        if (madvise(p->address + at, n, p->advice) < 0)
            break;
    }
    return NULL;
}

/* The caller is one of them. */
static unsigned count_threads(size_t nbytes)
{
    size_t n = nbytes / SLICE_NBYTES / SLICES_A_THREAD;
    /* Others want processors too. */
    size_t most = (size_t)get_nprocs() / 2;

    most = most < MOST_THREADS ? most : MOST_THREADS;
    n = n < most ? n : most;
    return n > 1 ? (unsigned)n : 1;
}

void wharf_worker_populate(void *address, size_t nbytes, bool read_only)
{
    struct population p = {
        .address = address,
        .nbytes = nbytes,
        .advice = read_only ? MADV_POPULATE_READ : MADV_POPULATE_WRITE,
    };
    pthread_t threads[MOST_THREADS];
    unsigned n = 0, n_wanted = count_threads(nbytes) - 1;

    if (nbytes < WHARF_POPULATE_LEAST_NBYTES)
        return;
    while (n < n_wanted && pthread_create(&threads[n], NULL, populate, &p) == 0)
        n++;
    populate(&p);
    while (n > 0)
        (void)pthread_join(threads[--n], NULL);
}
