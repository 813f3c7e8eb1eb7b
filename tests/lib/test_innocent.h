/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_innocent.h: a daemon with one well-behaved client, for tests with clients that are not.
 *
 * That client belongs to another tenant, has a socket of its own, and stays connected.  Whatever
 * else happens, its jobs must soon complete correctly.  Otherwise the program ends.
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
    const char *gate_timeout; /* as in the configuration; NULL: as test_wharfd_start sets it */
    struct test_wharfd wharfd;
    char other_socket[128];
    struct test_client *client;
    uint8_t *plain;       /* a chunk's output */
    size_t packed_nbytes; /* size of its zlib stream, at the start of the client's arena */
    int n_fds_at_first;
};

/* `io` as in the configuration: auto, io_uring or epoll. */
void test_innocent_start(struct test_innocent *scene, const char *io);

/* Connects a client again, after the daemon was restarted. */
void test_innocent_connect(struct test_innocent *scene);

/* Runs a job and a ping.  Both must succeed within 30 seconds. */
void test_innocent_check(struct test_innocent *scene);

/* The daemon must have no more descriptors than at first, except those of a filter. */
void test_innocent_expect_fds(struct test_innocent *scene);

/* Whether a new client on that socket can register memory.  Tries again if it fails, since on a
 * loaded machine a filter with a short timeout may be late without a reason. */
bool test_innocent_can_register(const char *socket);

/* Checks both once more, and that the daemon ends properly. */
void test_innocent_finish(struct test_innocent *scene);

/* Runs a test with io_uring and with epoll, each with its own daemon. */
void test_innocent_both_ways(struct test_innocent *scene, void (*test)(void));

#endif
