/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_epoch.h: a core and a worker around an epoch engine, in one process.  The calling thread is
 * the core; another thread starts kernels and waits for them.
 *
 * Failures that no test is about end the program with a message.
 */
#ifndef WHARF_TESTS_TEST_EPOCH_H
#define WHARF_TESTS_TEST_EPOCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/epoch.h"
#include "kernels/work_queue_ops.h"

/* The core's record of an item in flight. */
struct test_epoch_place {
    struct wharf_work_item item;
    uint32_t index;
    bool busy;
};

struct test_epoch {
    const struct wharf_epoch_ops *ops;
    struct wharf_epoch *epoch;
    struct wharf_epoch_config config;
    struct wharf_work_queue queue;
    /* The core's members. */
    struct wharf_work_submitter submitter;
    struct wharf_work_reaper done;
    struct test_epoch_place *places;
    uint32_t n_under_way;
    uint32_t n_attempts;
    uint64_t n_wakes;
    /* The worker's members. */
    pthread_t starter;
    int wake_fd;
    bool stopping;      /* atomic */
    bool naps;          /* sleeps between polls, if processors are few */
    uint64_t n_started; /* kernels; atomic */
    uint64_t n_left;    /* kernels that have left; atomic */
};

/* Sets config.queue.  Nothing runs until something is published. */
void test_epoch_open(struct test_epoch *t, const struct wharf_epoch_ops *ops,
                     const struct wharf_epoch_config *config);
/* Loses items in flight. */
void test_epoch_close(struct test_epoch *t);

/* Whether another item fits.  Skips slots of items in flight. */
bool test_epoch_has_room(struct test_epoch *t);
/* Writes an item, for which there is room, and sets its attempt.  Returns its index. */
uint32_t test_epoch_submit(struct test_epoch *t, const struct wharf_work_item *item);
/* Publishes, and wakes the worker if it sleeps. */
void test_epoch_publish(struct test_epoch *t);
/* Cancels an item, and publishes.  False if there is no room for that now. */
bool test_epoch_cancel(struct test_epoch *t, uint32_t index);
/* Takes a completion, if any.  Ends the program if it is not of an item in flight. */
bool test_epoch_reap(struct test_epoch *t, struct wharf_work_completion *ret_completion);
/* Waits for a completion, for at most a hundred seconds. */
struct wharf_work_completion test_epoch_await(struct test_epoch *t);
/* Submits, publishes and awaits. */
struct wharf_work_completion test_epoch_run(struct test_epoch *t,
                                            const struct wharf_work_item *item);

/* Parks, and returns when no kernel runs; and ends that. */
void test_epoch_park(struct test_epoch *t);
void test_epoch_unpark(struct test_epoch *t);
/* Waits for up to a hundred seconds for this enum wharf_work_state.  Whether it came. */
bool test_epoch_await_state(const struct test_epoch *t, uint32_t state);

#endif
