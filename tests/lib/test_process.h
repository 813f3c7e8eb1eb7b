/* SPDX-License-Identifier: Apache-2.0 */
/* test_process.h: functions that act on processes or observe them. */
#ifndef WHARF_TESTS_TEST_PROCESS_H
#define WHARF_TESTS_TEST_PROCESS_H

#include <sys/types.h>

/* Stops a process, and waits until all its threads have stopped.  They continue until the one that
 * handles the signal gets a processor. */
void test_process_stop(pid_t pid);

/* A process's open descriptors, and its resident memory in KiB, private and shared.  -1 if it is
 * gone. */
int test_process_n_fds(pid_t pid);
long test_process_kib(pid_t pid);

/* The processor time of a process and of those that it started, as long as these live. */
double test_process_tree_seconds(pid_t pid);

#endif
