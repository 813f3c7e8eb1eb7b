/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work of one call on several threads.  They are made for the call and joined before it returns:
 * nothing of them is left for a fork or the interpreter's end, and they never touch a Python
 * object.
 */
#include "clientlib/python/src/pywharf.h"

#include <sched.h>
#include <signal.h>

struct crew {
    const struct pywharf_work *work;
    size_t next;        /* part that nobody has begun; atomic */
    unsigned n_members; /* that have begun; atomic */
};

static void *run(void *data)
{
    struct crew *crew = data;
    unsigned member = __atomic_fetch_add(&crew->n_members, 1, __ATOMIC_RELAXED);
    size_t i;

    while ((i = __atomic_fetch_add(&crew->next, 1, __ATOMIC_RELAXED)) < crew->work->n)
        crew->work->act(crew->work->context, i, member);
    return NULL;
}

unsigned pywharf_n_cores(void)
{
    cpu_set_t cores;

    return sched_getaffinity(0, sizeof(cores), &cores) < 0 ? 1 : (unsigned)CPU_COUNT(&cores);
}

/* Of threads that cannot be made the others do the work.  Signals are for Python's own threads. */
static unsigned begin_threads(struct crew *crew, pthread_t *threads, unsigned n)
{
    sigset_t all, before;
    unsigned i;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    for (i = 0; i < n && pthread_create(&threads[i], NULL, run, crew) == 0; i++)
        ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return i;
}

void pywharf_crew_run(const struct pywharf_work *work, unsigned n_threads)
{
    struct crew crew = {work, 0, 0};
    pthread_t threads[PYWHARF_MAX_THREADS];
    unsigned n = n_threads < PYWHARF_MAX_THREADS ? n_threads : PYWHARF_MAX_THREADS;

    n = n < work->n ? n : (unsigned)work->n;
    n = n > 1 ? begin_threads(&crew, threads, n - 1) : 0;
    run(&crew);
    for (unsigned i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
}
