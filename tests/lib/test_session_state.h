/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_session_state.h: the test daemon's state of one client.
 */
#ifndef WHARF_TESTS_TEST_SESSION_STATE_H
#define WHARF_TESTS_TEST_SESSION_STATE_H

#include "proto/ring_ops.h"
#include "tests/lib/test_life.h"

enum { TEST_N_REGIONS = 1024 };

struct test_region {
    uint8_t *data; /* NULL: none; GPU memory is never accessed */
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
    struct wharf_submission *taken; /* n_entries places, for jobs in flight */
    uint64_t *taken_ns;
    uint32_t *taken_index; /* in the ring */
    struct wharf_submission_words *taken_words;
    uint32_t n_taken;
    int has_marks; /* negotiated */
    int has_words; /* negotiated */
    uint64_t n_completed;
    int is_draining;
    int arena_fd; /* of an arena made here, which is emptied when the session ends; or -1 */
};

#endif
