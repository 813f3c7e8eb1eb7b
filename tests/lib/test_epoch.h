/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_epoch.h: a core and a worker around an epoch engine, in one process: the calling thread is
 * the core and one thread starts kernels and waits for them.
 *
 * Functions end the program with a message when something fails that no test is about.
 */
#ifndef WHARF_TESTS_TEST_EPOCH_H
#define WHARF_TESTS_TEST_EPOCH_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/epoch.h"
#include "kernels/work_queue_ops.h"

/* The core's own note of an item under way. */
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
    /* The core. */
    struct wharf_work_submitter submitter;
    struct wharf_work_reaper done;
    struct test_epoch_place *places;
    uint32_t n_under_way;
    uint32_t n_attempts;
    uint64_t n_wakes;
    /* The worker. */
    pthread_t starter;
    int wake_fd;
    bool stopping;      /* atomic */
    bool naps;          /* sleeps between its looks: where processors are few */
    uint64_t n_started; /* kernels, atomic */
    uint64_t n_left;    /* likewise, that have left */
};

/* config.queue is set here.  Nothing runs until something is published. */
void test_epoch_open(struct test_epoch *t, const struct wharf_epoch_ops *ops,
                     const struct wharf_epoch_config *config);
/* What is under way is lost. */
void test_epoch_close(struct test_epoch *t);

/* Whether there is a place for another item: passes by those of items under way. */
bool test_epoch_has_room(struct test_epoch *t);
/* Writes an item and returns its index; its attempt is set here.  There is room. */
uint32_t test_epoch_submit(struct test_epoch *t, const struct wharf_work_item *item);
/* Publishes, and wakes the worker if it must be. */
void test_epoch_publish(struct test_epoch *t);
/* Asks that an item not be done, and publishes.  False if there is no room for that now. */
bool test_epoch_cancel(struct test_epoch *t, uint32_t index);
/* Takes a completion if there is one.  The program ends if it is of no item under way. */
bool test_epoch_reap(struct test_epoch *t, struct wharf_work_completion *ret_completion);
/* Waits for one, but no longer than a hundred seconds. */
struct wharf_work_completion test_epoch_await(struct test_epoch *t);
/* submit, publish and await in one. */
struct wharf_work_completion test_epoch_run(struct test_epoch *t,
                                            const struct wharf_work_item *item);

/* Parks, and returns when no kernel is there; and the way back. */
void test_epoch_park(struct test_epoch *t);
void test_epoch_unpark(struct test_epoch *t);
/* Waits until the state is this enum wharf_work_state, for up to a hundred seconds.  Whether it
 * was. */
bool test_epoch_await_state(const struct test_epoch *t, uint32_t state);

#endif
