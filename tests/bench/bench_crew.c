/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/bench_crew.h"

#include <pthread.h>
#include <stdint.h>

#include "tests/bench/bench_row.h"

static struct {
    pthread_t threads[BENCH_MAX_THREADS];
    unsigned n_threads;
    pthread_barrier_t begin, end;
    void (*part)(void *context, unsigned thread); /* NULL: they end */
    void *context;
} crew;

static void *serve(void *number)
{
    for (;;) {
        pthread_barrier_wait(&crew.begin);
        if (!crew.part)
            return NULL;
        crew.part(crew.context, (unsigned)(uintptr_t)number);
        pthread_barrier_wait(&crew.end);
    }
}

void bench_crew_start(unsigned n_threads)
{
    crew.n_threads = n_threads;
    pthread_barrier_init(&crew.begin, NULL, n_threads);
    pthread_barrier_init(&crew.end, NULL, n_threads);
    for (unsigned i = 1; i < n_threads; i++)
        if (pthread_create(&crew.threads[i], NULL, serve, (void *)(uintptr_t)i) != 0)
            bench_die("cannot start a thread");
}

void bench_crew_run(void (*part)(void *context, unsigned thread), void *context)
{
    crew.part = part;
    crew.context = context;
    pthread_barrier_wait(&crew.begin);
    part(context, 0);
    pthread_barrier_wait(&crew.end);
}

void bench_crew_stop(void)
{
    crew.part = NULL;
    pthread_barrier_wait(&crew.begin);
    for (unsigned i = 1; i < crew.n_threads; i++)
        pthread_join(crew.threads[i], NULL);
}
