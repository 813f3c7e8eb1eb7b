/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_service.h: a daemon that runs as under systemd, with inherited sockets, a notify socket, a
 * watchdog and a runtime folder, but without systemd.
 */
#ifndef WHARF_TESTS_TEST_SERVICE_H
#define WHARF_TESTS_TEST_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/lib/test_wharfd.h"

struct test_service {
    struct test_wharfd daemon; /* its socket is the first inherited one */
    int listen_fds[2];         /* -1: none */
    const char *names;         /* LISTEN_FDNAMES, or NULL */
    const char *listen_pid;    /* LISTEN_PID; NULL: the daemon's */
    const char *watchdog_pid;  /* WATCHDOG_PID; NULL: the daemon's */
    uint64_t watchdog_us;      /* WATCHDOG_USEC; 0: none */
    bool is_in_journal;        /* JOURNAL_STREAM names the log */
    int notify_fd;
    char *heard; /* all notifications, as lines */
};

/* Makes folder, configuration and sockets.  Runs nothing.  Failures end the program. */
void test_service_init(struct test_service *service, const char *config);

/* Adds a socket of this type, at daemon.socket with "2" appended. */
void test_service_add_socket(struct test_service *service, int type);

/* Fills the notify socket: another message blocks until one is read. */
void test_service_fill(struct test_service *service);

/* Starts the daemon. */
void test_service_spawn(struct test_service *service);

/* Whether such a line has come, or comes within wait_ms. */
bool test_service_hears(struct test_service *service, const char *line, unsigned wait_ms);

/* The number of lines with this beginning that came until wait_ms have passed. */
unsigned test_service_count(struct test_service *service, const char *begin, unsigned wait_ms);

/* Discards what was heard. */
void test_service_forget(struct test_service *service);

/* Ends the daemon in any state, and removes everything. */
void test_service_deinit(struct test_service *service);

#endif
