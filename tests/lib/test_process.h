/* SPDX-License-Identifier: Apache-2.0 */
/* test_process.h: what tests do to processes, and see of them. */
#ifndef WHARF_TESTS_TEST_PROCESS_H
#define WHARF_TESTS_TEST_PROCESS_H

#include <sys/types.h>

/* Stops a process, and waits until all of its threads stand still: the others go on until the one
 * that takes the signal has its turn on a processor. */
void test_process_stop(pid_t pid);

/* A process's open descriptors, and its memory (resident private and shared) in KiB; -1 if it is
 * gone. */
int test_process_n_fds(pid_t pid);
long test_process_kib(pid_t pid);

#endif
