/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_daemon.h: a small daemon for tests of clients.
 *
 * It speaks all of PROTOCOL.md, decodes with the CPU engine in one thread, and completes jobs in
 * any order.  It can die between any two of its steps, be started again by the process that
 * watches it, and do what no daemon must do.  Everything lies in memory that the test, the watcher
 * and the daemon share, so a test can turn any knob at any time.
 */
#ifndef WHARF_TESTS_TEST_DAEMON_H
#define WHARF_TESTS_TEST_DAEMON_H

#include "tests/lib/test_life.h"

/* test_daemon_new: with a socket's path in a new folder; nothing runs yet.  Ends the program when
 * there is no memory. */
struct test_daemon *test_daemon_new(void);

/* test_daemon_start: starts the watcher, which starts the daemon.  Returns when it listens. */
void test_daemon_start(struct test_daemon *daemon);

/* test_daemon_kill: SIGKILL for the running life. */
void test_daemon_kill(struct test_daemon *daemon);

/* test_daemon_stop: ends daemon and watcher, and waits for both.  They can be started again. */
void test_daemon_stop(struct test_daemon *daemon);

/* Stops it too; takes NULL. */
void test_daemon_free(struct test_daemon *daemon);

#endif
