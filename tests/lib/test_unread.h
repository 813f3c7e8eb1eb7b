/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_unread.h: clients that leave the daemon's replies unread, and die so that what they have
 * sent keeps their sockets open: nothing else tells the daemon that they are gone.
 */
#ifndef WHARF_TESTS_TEST_UNREAD_H
#define WHARF_TESTS_TEST_UNREAD_H

#include <stdint.h>

struct test_client;

/* Sends more pings than the daemon has room for replies, and leaves room behind them.  Failures end
 * the program. */
void test_unread_fill(struct test_client *client);

/* A client that is kept by its own socket, which it has sent; two that have sent each other's; one
 * in whose queue a socket is that has the client's in its own.  They are gone at return. */
void test_unread_keep_itself(const char *path, uint64_t arena_nbytes);
void test_unread_keep_each_other(const char *path, uint64_t arena_nbytes);
void test_unread_keep_in_another(const char *path, uint64_t arena_nbytes);

#endif
