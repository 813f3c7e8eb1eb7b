/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_service.h: a daemon as systemd runs it: with sockets handed over, a notify socket, a
 * watchdog and a runtime folder; but without systemd.
 */
#ifndef WHARF_TESTS_TEST_SERVICE_H
#define WHARF_TESTS_TEST_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/lib/test_wharfd.h"

struct test_service {
    struct test_wharfd daemon; /* its socket is the first one that is handed over */
    int listen_fds[2];         /* -1: there is none */
    const char *names;         /* LISTEN_FDNAMES, or NULL */
    const char *listen_pid;    /* LISTEN_PID; NULL: the daemon's */
    const char *watchdog_pid;  /* WATCHDOG_PID; NULL: the daemon's */
    uint64_t watchdog_us;      /* WATCHDOG_USEC; 0: none */
    bool is_in_journal;        /* JOURNAL_STREAM says that of the log */
    int notify_fd;
    char *heard; /* all that came, as lines */
};

/* Makes folder, configuration and sockets; runs nothing.  Ends the program when that fails. */
void test_service_init(struct test_service *service, const char *config);

/* One more socket, of this type, at daemon.socket with a 2 behind it. */
void test_service_add_socket(struct test_service *service, int type);

/* Fills the notify socket: who sends one more message waits until one was heard. */
void test_service_fill(struct test_service *service);

/* Runs the daemon. */
void test_service_spawn(struct test_service *service);

/* Whether such a line comes (or has come) within `wait_ms`. */
bool test_service_hears(struct test_service *service, const char *line, unsigned wait_ms);

/* How many lines that begin so came until `wait_ms` have passed. */
unsigned test_service_count(struct test_service *service, const char *begin, unsigned wait_ms);

/* Forgets what was heard. */
void test_service_forget(struct test_service *service);

/* Ends it in any state and removes everything. */
void test_service_deinit(struct test_service *service);

#endif
