/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_worker.h: the GPU worker of a daemon under test.
 */
#ifndef WHARF_TESTS_TEST_WORKER_H
#define WHARF_TESTS_TEST_WORKER_H

#include <sys/types.h>

/* The process id of the worker that a daemon has now; 0 if it has none. */
pid_t test_worker_pid(pid_t daemon);

/* Waits for a worker other than `before`, for at most 20 seconds; returns it, or 0. */
pid_t test_worker_wait(pid_t daemon, pid_t before);

/* A process's open descriptors, and its memory (resident private and shared) in KiB; -1 if it is
 * gone. */
int test_process_n_fds(pid_t pid);
long test_process_kib(pid_t pid);

#endif
