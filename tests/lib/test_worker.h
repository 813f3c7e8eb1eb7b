/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_worker.h: the GPU worker of a daemon under test.
 */
#ifndef WHARF_TESTS_TEST_WORKER_H
#define WHARF_TESTS_TEST_WORKER_H

#include <stdint.h>
#include <sys/types.h>

#include "tests/lib/test_process.h"
#include "tests/lib/test_random.h"

struct test_storm;
struct test_wharfd;

/* The worker program of this build that runs device code on the CPU. */
const char *test_worker_program(void);

/* The process id of the daemon's present worker; 0 if it has none. */
pid_t test_worker_pid(pid_t daemon);

/* The same for the GPU of that name, as in wharfd.conf. */
pid_t test_worker_of_gpu(pid_t daemon, const char *gpu);

/* Waits for a worker other than `before`, for as long as TEST_WAIT() does.  Returns it, or 0. */
pid_t test_worker_wait(pid_t daemon, pid_t before);

/* Kills each worker within `within_ns` after it was first seen, in whatever state it is. */
struct test_worker_killer {
    struct test_random random;
    const struct test_wharfd *wharfd;
    const char *gpu; /* only this GPU's; NULL: the only GPU */
    uint64_t within_ns;
    unsigned most_kills; /* in all; 0: no limit */
    pid_t victim;        /* the next one; 0: none was seen yet */
    uint64_t kill_at_ns;
    unsigned n_kills;
    int was_early; /* the last one was not ready yet */
};

/* The tick of a storm whose tick_data is a killer. */
void test_worker_kill(const struct test_storm *storm);

/* The same, but within that time after the worker was first seen ready.  If none gets ready three
 * times in a row, the daemon does without a GPU, and jobs that need one fail. */
void test_worker_kill_ready(const struct test_storm *storm);

#endif
