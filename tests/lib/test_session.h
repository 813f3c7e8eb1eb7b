/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_session.h: the test daemon's side of one client's rings.
 */
#ifndef WHARF_TESTS_TEST_SESSION_H
#define WHARF_TESTS_TEST_SESSION_H

#include "tests/lib/test_session_state.h"

/* Makes the descriptors of C, D and the arena, as PROTOCOL.md says, or as the present misdeed
 * needs.  arena_fd is the client's own arena, or -1. */
void test_session_open(struct test_session *session, uint32_t n_entries, uint64_t arena_nbytes,
                       int arena_fd, int *ret_fds);

/* Maps a memfd as a region.  0 or -errno. */
int test_session_map(struct test_session *session, uint32_t region, int fd, uint64_t nbytes,
                     int is_read_only);

/* Takes, runs and completes some jobs.  Returns 1 if there were any, 0, or -EPROTO. */
int test_session_work(struct test_session *session);

/* Stops taking jobs, and tells the client. */
void test_session_drain(struct test_session *session);

void test_session_close(struct test_session *session);

#endif
