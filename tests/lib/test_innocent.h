/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_innocent.h: a daemon with one client that keeps the rules, for tests in which others do not.
 *
 * That client is of another tenant, on a socket of its own, and connected all the time.  Whatever
 * else happens, its jobs have to come out right, soon.  What is not so ends the program.
 */
#ifndef WHARF_TESTS_TEST_INNOCENT_H
#define WHARF_TESTS_TEST_INNOCENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/lib/test_client.h"
#include "tests/lib/test_wharfd.h"

#define TEST_INNOCENT_CHUNK 20000

struct test_innocent {
    const char *gate_timeout; /* as in the configuration; NULL: as test_wharfd_start has it */
    struct test_wharfd wharfd;
    char other_socket[128];
    struct test_client *client;
    uint8_t *plain;       /* a chunk */
    size_t packed_nbytes; /* its zlib stream is at the start of the client's arena */
    int n_fds_at_first;
};

/* `io` as in the configuration: auto, io_uring or epoll. */
void test_innocent_start(struct test_innocent *scene, const char *io);

/* A client again, after the daemon was started anew. */
void test_innocent_connect(struct test_innocent *scene);

/* Runs a job and a ping; both have to come out right, within 30 seconds. */
void test_innocent_check(struct test_innocent *scene);

/* The daemon has no more descriptors than at first, but for those of a filter. */
void test_innocent_expect_fds(struct test_innocent *scene);

/* Whether a new client, on that socket, can register memory.  Where filters have little time one
 * can be late for nothing, on a machine that does much else: then the client comes again. */
bool test_innocent_can_register(const char *socket);

/* Checks both once more, and that the daemon ends well. */
void test_innocent_finish(struct test_innocent *scene);

/* Runs a test by io_uring and by epoll, with a daemon for each. */
void test_innocent_both_ways(struct test_innocent *scene, void (*test)(void));

#endif
