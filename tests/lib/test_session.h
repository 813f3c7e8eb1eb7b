/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_session.h: the test daemon's side of one client's rings.
 */
#ifndef WHARF_TESTS_TEST_SESSION_H
#define WHARF_TESTS_TEST_SESSION_H

#include "proto/ring_ops.h"
#include "tests/lib/test_daemon.h"

enum { TEST_N_REGIONS = 1024 };

struct test_region {
    uint8_t *data; /* NULL: there is none; GPU memory is never looked at */
    uint64_t nbytes;
    int is_read_only;
};

struct test_session {
    struct test_daemon *daemon;
    int socket;
    uint32_t n_entries; /* 0 before the queue is open */
    struct wharf_ring_daemon ring;
    void *c;
    void *d;
    struct test_region regions[TEST_N_REGIONS];
    struct wharf_submission *taken; /* of n_entries: not completed yet */
    uint64_t *taken_ns;
    uint32_t *taken_index; /* in the ring */
    uint32_t n_taken;
    int has_marks; /* agreed on */
    uint64_t n_completed;
    int is_draining;
    int arena_fd; /* of an arena made here: emptied when the client ends the session; or -1 */
};

/* The descriptors of C, D and the arena, as PROTOCOL.md has them, or as the misdeed of the moment
 * wants them.  arena_fd is a brought one, or -1. */
void test_session_open(struct test_session *session, uint32_t n_entries, uint64_t arena_nbytes,
                       int arena_fd, int *ret_fds);

/* Maps a memfd as a region.  Returns 0 or -errno. */
int test_session_map(struct test_session *session, uint32_t region, int fd, uint64_t nbytes,
                     int is_read_only);

/* Takes, runs and completes a little.  Returns 1 if there was anything to do, 0, or -EPROTO. */
int test_session_work(struct test_session *session);

/* Takes no more, and says so. */
void test_session_drain(struct test_session *session);

void test_session_close(struct test_session *session);

#endif
