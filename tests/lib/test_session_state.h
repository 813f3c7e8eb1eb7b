/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_session_state.h: what the test daemon keeps of one client.
 */
#ifndef WHARF_TESTS_TEST_SESSION_STATE_H
#define WHARF_TESTS_TEST_SESSION_STATE_H

#include "proto/ring_ops.h"
#include "tests/lib/test_life.h"

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
    struct wharf_submission_words *taken_words;
    uint32_t n_taken;
    int has_marks; /* agreed on */
    int has_words; /* likewise */
    uint64_t n_completed;
    int is_draining;
    int arena_fd; /* of an arena made here: emptied when the client ends the session; or -1 */
};

#endif
