/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_daemon.h: a small daemon for tests of clients.
 *
 * It implements all of PROTOCOL.md, decodes with the CPU engine in one thread, and completes jobs
 * in any order.  It can die between any two of its steps, is then restarted by a process that
 * watches it, and can misbehave in ways that no daemon should.  Its settings are in memory that the
 * test, the watcher and the daemon share, so that a test can change them at any time.
 */
#ifndef WHARF_TESTS_TEST_DAEMON_H
#define WHARF_TESTS_TEST_DAEMON_H

#include "tests/lib/test_life.h"

/* test_daemon_new: makes a daemon's settings, and a path for its socket in a new folder.  Starts
 * nothing.  Ends the program if out of memory. */
struct test_daemon *test_daemon_new(void);

/* test_daemon_start: starts the watcher, which starts the daemon.  Returns once the daemon
 * listens. */
void test_daemon_start(struct test_daemon *daemon);

/* test_daemon_kill: kills the running daemon by SIGKILL. */
void test_daemon_kill(struct test_daemon *daemon);

/* test_daemon_stop: ends daemon and watcher, and waits for both.  They can be started again. */
void test_daemon_stop(struct test_daemon *daemon);

/* Also stops it.  NULL is allowed. */
void test_daemon_free(struct test_daemon *daemon);

#endif
