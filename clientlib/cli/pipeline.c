/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.c: one thread reads, many work, and one writes in order (pipeline.h). */
#include "clientlib/cli/pipeline.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>

/*
 * Slot number s stands in place s % n_slots.  Always
 *     n_drained <= n_taken <= n_filled <= n_drained + n_slots,
 * and a slot between n_drained and n_taken is finished when its `done` is true.
 */
struct pipeline {
    const struct wharf_cli_stages *stages;
    uint8_t *slots;
    size_t slot_nbytes;
    unsigned n_slots;
    bool *done;

    pthread_mutex_t lock; /* for all that follows */
    pthread_cond_t can_fill;
    pthread_cond_t can_take;
    pthread_cond_t can_drain;
    uint64_t n_filled;
    uint64_t n_taken;
    uint64_t n_drained;
    bool all_filled; /* there will be no more */
    bool stopped;    /* drain said false */
};

struct worker {
    struct pipeline *pipeline;
    pthread_t thread;
    unsigned number;
};

static void *slot_at(const struct pipeline *pipeline, uint64_t sequence)
{
    return pipeline->slots + sequence % pipeline->n_slots * pipeline->slot_nbytes;
}

/* Waits for a free slot; false if none is wanted any more. */
static bool wait_free(struct pipeline *pipeline)
{
    bool go_on;

    pthread_mutex_lock(&pipeline->lock);
    while (!pipeline->stopped && pipeline->n_filled - pipeline->n_drained == pipeline->n_slots)
        pthread_cond_wait(&pipeline->can_fill, &pipeline->lock);
    go_on = !pipeline->stopped;
    pthread_mutex_unlock(&pipeline->lock);
    return go_on;
}

static void put_filled(struct pipeline *pipeline, bool was_filled)
{
    pthread_mutex_lock(&pipeline->lock);
    if (was_filled && !pipeline->stages->work) {
        pipeline->done[pipeline->n_filled++ % pipeline->n_slots] = true;
        pipeline->n_taken++;
        pthread_cond_signal(&pipeline->can_drain);
    } else if (was_filled) {
        pipeline->done[pipeline->n_filled++ % pipeline->n_slots] = false;
        pthread_cond_signal(&pipeline->can_take);
    } else {
        pipeline->all_filled = true;
        pthread_cond_broadcast(&pipeline->can_take);
        pthread_cond_signal(&pipeline->can_drain);
    }
    pthread_mutex_unlock(&pipeline->lock);
}

static void *run_reader(void *argument)
{
    struct pipeline *pipeline = argument;
    const struct wharf_cli_stages *stages = pipeline->stages;
    bool was_filled = true;

    while (was_filled) {
        /* Only this thread moves n_filled, so it may look at it unlocked. */
        was_filled = wait_free(pipeline) &&
                     stages->fill(stages->context, slot_at(pipeline, pipeline->n_filled));
        put_filled(pipeline, was_filled);
    }
    return NULL;
}

/* Takes the next slot to work on; false when there is no more. */
static bool take(struct pipeline *pipeline, uint64_t *ret_sequence)
{
    bool is_there;

    pthread_mutex_lock(&pipeline->lock);
    while (!pipeline->stopped && !pipeline->all_filled && pipeline->n_taken == pipeline->n_filled)
        pthread_cond_wait(&pipeline->can_take, &pipeline->lock);
    is_there = !pipeline->stopped && pipeline->n_taken < pipeline->n_filled;
    if (is_there)
        *ret_sequence = pipeline->n_taken++;
    pthread_mutex_unlock(&pipeline->lock);
    return is_there;
}

static void put_done(struct pipeline *pipeline, uint64_t sequence)
{
    pthread_mutex_lock(&pipeline->lock);
    pipeline->done[sequence % pipeline->n_slots] = true;
    if (sequence == pipeline->n_drained)
        pthread_cond_signal(&pipeline->can_drain);
    pthread_mutex_unlock(&pipeline->lock);
}

static void *run_worker(void *argument)
{
    struct worker *worker = argument;
    struct pipeline *pipeline = worker->pipeline;
    const struct wharf_cli_stages *stages = pipeline->stages;
    uint64_t sequence;

    while (take(pipeline, &sequence)) {
        stages->work(stages->context, slot_at(pipeline, sequence), worker->number);
        put_done(pipeline, sequence);
    }
    return NULL;
}

/* Waits for the next slot in order; false when all were drained. */
static bool wait_done(struct pipeline *pipeline)
{
    bool is_there;

    pthread_mutex_lock(&pipeline->lock);
    for (;;) {
        is_there = pipeline->n_drained < pipeline->n_taken &&
                   pipeline->done[pipeline->n_drained % pipeline->n_slots];
        if (is_there || (pipeline->all_filled && pipeline->n_drained == pipeline->n_filled))
            break;
        pthread_cond_wait(&pipeline->can_drain, &pipeline->lock);
    }
    pthread_mutex_unlock(&pipeline->lock);
    return is_there;
}

static void put_free(struct pipeline *pipeline)
{
    pthread_mutex_lock(&pipeline->lock);
    pipeline->n_drained++;
    pthread_cond_signal(&pipeline->can_fill);
    pthread_mutex_unlock(&pipeline->lock);
}

static void stop(struct pipeline *pipeline)
{
    pthread_mutex_lock(&pipeline->lock);
    pipeline->stopped = true;
    pthread_cond_broadcast(&pipeline->can_fill);
    pthread_cond_broadcast(&pipeline->can_take);
    pthread_mutex_unlock(&pipeline->lock);
    pipeline->stages->stop(pipeline->stages->context);
}

static void drain_all(struct pipeline *pipeline)
{
    const struct wharf_cli_stages *stages = pipeline->stages;

    while (wait_done(pipeline)) {
        if (!stages->drain(stages->context, slot_at(pipeline, pipeline->n_drained))) {
            stop(pipeline);
            return;
        }
        put_free(pipeline);
    }
}

/* Starts up to n_workers; returns how many could be, *ret_error if not all. */
static unsigned start_workers(struct pipeline *pipeline, struct worker *workers, unsigned n_workers,
                              int *ret_error)
{
    unsigned n = 0;

    for (; n < n_workers; n++) {
        int error;

        workers[n].pipeline = pipeline;
        workers[n].number = n;
        error = pthread_create(&workers[n].thread, NULL, run_worker, &workers[n]);
        if (error) {
            *ret_error = -error;
            break;
        }
    }
    return n;
}

static void end_workers(struct pipeline *pipeline, struct worker *workers, unsigned n_workers)
{
    if (n_workers == 0)
        return;
    put_filled(pipeline, false);
    for (unsigned i = 0; i < n_workers; i++)
        pthread_join(workers[i].thread, NULL);
}

/* Runs with as many workers as can be had: one is enough, if any are wanted. */
static int run_threads(struct pipeline *pipeline, struct worker *workers, unsigned n_workers)
{
    pthread_t reader;
    int r = 0;

    n_workers = start_workers(pipeline, workers, n_workers, &r);
    if (r < 0 && n_workers == 0)
        return r;
    r = -pthread_create(&reader, NULL, run_reader, pipeline);
    if (r == 0) {
        drain_all(pipeline);
        pthread_join(reader, NULL);
    }
    end_workers(pipeline, workers, n_workers);
    return r;
}

int wharf_cli_pipeline_run(const struct wharf_cli_stages *stages, void *slots, size_t slot_nbytes,
                           unsigned n_slots, unsigned n_workers)
{
    struct pipeline pipeline = {
        .stages = stages,
        .slots = slots,
        .slot_nbytes = slot_nbytes,
        .n_slots = n_slots,
        .done = calloc(n_slots, sizeof(bool)),
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .can_fill = PTHREAD_COND_INITIALIZER,
        .can_take = PTHREAD_COND_INITIALIZER,
        .can_drain = PTHREAD_COND_INITIALIZER,
    };
    struct worker *workers = calloc(n_workers + 1, sizeof(*workers));
    int r = -ENOMEM;

    if (pipeline.done && workers)
        r = run_threads(&pipeline, workers, n_workers);
    free(workers);
    free(pipeline.done);
    return r;
}
