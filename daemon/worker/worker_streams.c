/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_streams.c: serves the queue of large streams in a kernel's place: its thread takes one
 * item after the other, and has the whole GPU decode it (kernels/epoch_streams.h).
 *
 * Meanwhile the main kernel has part of the GPU.  A kernel on all of it would keep the streams'
 * kernels waiting for as long as it stays, between any two of them anew.
 */
#include <errno.h>

#include "daemon/base/clock.h"
#include "daemon/worker/worker.h"
#include "encoders/decode_job.h"
#include "kernels/epoch_streams.h"
#include "proto/wharf_job.h"

/* Percent of the GPU that other jobs have beside a large stream. */
#define OTHERS_PART 25u

/* ---- room on the GPU ----------------------------------------------------------------------- */

/* Waits until no kernel has the whole GPU; until streams end, none gets it. */
static void make_room(struct wharf_worker *worker)
{
    if (!worker->ops->set_part)
        return;
    pthread_mutex_lock(&worker->lock);
    worker->main.part = OTHERS_PART;
    while (worker->main.has_kernel && worker->main.kernel_part > OTHERS_PART) {
        wharf_work_park(&worker->main.queue, 1);
        pthread_cond_wait(&worker->changed, &worker->lock);
    }
    pthread_mutex_unlock(&worker->lock);
}

static void give_room_back(struct wharf_worker *worker)
{
    if (!worker->ops->set_part)
        return;
    pthread_mutex_lock(&worker->lock);
    worker->main.part = 100;
    if (worker->main.has_kernel && worker->main.kernel_part < 100)
        wharf_work_park(&worker->main.queue, 1);
    pthread_mutex_unlock(&worker->lock);
}

/* ---- items --------------------------------------------------------------------------------- */

/* The item that is decoded. */
struct item_at_work {
    struct wharf_worker_streams *streams;
    uint32_t index;
    struct wharf_work_item item;
};

static void take_cancels(struct wharf_worker_streams *streams)
{
    const struct wharf_work_queue *queue = &streams->kernels.queue;
    uint32_t tail = __atomic_load_n(&queue->core->cancel_tail, __ATOMIC_ACQUIRE);

    for (; streams->cancel_head != tail; streams->cancel_head++) {
        uint32_t place = streams->cancel_head & (WHARF_WORK_N_CANCELS - 1);
        struct wharf_work_cancel cancel = {
            .item = __atomic_load_n(&queue->core->cancels[place].item, __ATOMIC_RELAXED),
            .attempt = __atomic_load_n(&queue->core->cancels[place].attempt, __ATOMIC_RELAXED),
        };
        streams->cancelled[cancel.item & (WHARF_WORKER_STREAM_ENTRIES - 1)] = cancel;
    }
    __atomic_store_n(&queue->kernel->cancel_head, streams->cancel_head, __ATOMIC_RELEASE);
}

static int is_withdrawn(void *context)
{
    const struct item_at_work *work = context;
    struct wharf_worker_streams *streams = work->streams;
    const struct wharf_work_cancel *cancel =
        &streams->cancelled[work->index & (WHARF_WORKER_STREAM_ENTRIES - 1)];

    take_cancels(streams);
    return cancel->item == work->index && cancel->attempt == work->item.attempt;
}

static void settle(const struct wharf_work_item *item, uint32_t crc, struct wharf_outcome *outcome)
{
    const struct wharf_decode_job job = {
        .flags = item->flags,
        .checksum = item->checksum,
        .in_nbytes = item->src_nbytes,
        .out_avail = item->dst_nbytes,
    };

    wharf_decode_job_settle(&job, crc, outcome);
}

static struct wharf_outcome decode(struct item_at_work *work)
{
    struct wharf_worker_streams *streams = work->streams;
    struct wharf_worker *worker = streams->kernels.worker;
    const struct wharf_work_item *item = &work->item;
    struct wharf_outcome outcome = {.result = WHARF_CANCELLED};
    uint32_t crc = 0;
    struct wharf_stream_task task = {
        .src = item->src,
        .dst = item->dst,
        .staging = item->staging,
        .src_nbytes = item->src_nbytes,
        .dst_nbytes = item->dst_nbytes,
        .codec = item->codec,
        .output = item->output,
        .wants_crc = item->flags & WHARF_JOB_CHECKSUM,
        .is_stopped = is_withdrawn,
        .context = work,
    };

    if (is_withdrawn(work))
        return outcome;
    make_room(worker);
    int r = wharf_worker_stream_engine->decode(streams->engine, &task, streams->most_nbytes,
                                               &outcome, &crc);
    if (r == -ENOMEM)
        return (struct wharf_outcome){.result = WHARF_NO_MEMORY};
    if (r < 0)
        wharf_worker_fail(WHARF_WORKER_EXIT_FAILED, -r, "decoding a large stream",
                          worker->ops->error_text());
    settle(item, crc, &outcome);
    return outcome;
}

/* The next one. */
static void run_item(struct wharf_worker_streams *streams)
{
    const struct wharf_work_queue *queue = &streams->kernels.queue;
    struct item_at_work work = {
        .streams = streams,
        .index = streams->head,
        .item = wharf_work_item_at(queue, streams->head),
    };
    uint64_t begun_ns = wharf_now_ns();

    __atomic_store_n(&queue->kernel->head, ++streams->head, __ATOMIC_RELEASE);
    if (work.item.opcode == WHARF_WORK_PASS)
        return;
    struct wharf_outcome outcome = decode(&work);
    uint64_t took_ns = wharf_now_ns() - begun_ns;
    struct wharf_work_completion completion = {
        .item = work.index,
        .attempt = work.item.attempt,
        .bit_offset = (uint32_t)outcome.bit_offset,
        .in_nbytes = (uint32_t)outcome.in_nbytes,
        .out_nbytes = (uint32_t)outcome.out_nbytes,
        .result = (uint16_t)outcome.result,
        .reason = (uint16_t)outcome.reason,
        .decode_ns = took_ns < UINT32_MAX ? (uint32_t)took_ns : UINT32_MAX,
    };
    wharf_work_post(&streams->done, &completion);
}

/* ---- the queue ----------------------------------------------------------------------------- */

/* Decodes what there is; false: the worker parks. */
static bool run_all(struct wharf_worker_streams *streams)
{
    const struct wharf_work_queue *queue = &streams->kernels.queue;

    take_cancels(streams);
    while (streams->head != __atomic_load_n(&queue->core->tail, __ATOMIC_ACQUIRE)) {
        if (__atomic_load_n(&queue->worker->park, __ATOMIC_ACQUIRE))
            return false;
        run_item(streams);
    }
    return true;
}

static void say(const struct wharf_work_queue *queue, uint32_t number, uint32_t state)
{
    __atomic_store_n(&queue->kernel->state, WHARF_WORK_STATE(number, state), __ATOMIC_SEQ_CST);
}

void wharf_worker_serve_streams(struct wharf_worker_streams *streams)
{
    const struct wharf_work_queue *queue = &streams->kernels.queue;
    uint32_t number = wharf_work_begin_epoch(queue), left;

    do {
        say(queue, number, WHARF_WORK_RUNNING);
        if (!run_all(streams)) {
            left = WHARF_WORK_OUT_MORE;
            break;
        }
        left = WHARF_WORK_OUT;
        say(queue, number, WHARF_WORK_LEAVING);
        /* Orders the store of the state before the loads of the tails. */
        __sync_synchronize();
    } while (wharf_work_pending(queue));
    give_room_back(streams->kernels.worker);
    say(queue, number, left);
}

uint32_t wharf_worker_open_streams(struct wharf_worker *worker)
{
    struct wharf_worker_streams *streams = &worker->streams;
    uint64_t most = worker->setup.large_nbytes;
    uint32_t least;

    if (!worker->large.epoch || !wharf_worker_stream_engine ||
        wharf_worker_stream_engine->open(worker->main.epoch, &streams->engine, &least) < 0)
        return 0;
    streams->most_nbytes = most < WHARF_STREAM_MAX_SRC_NBYTES ? most : WHARF_STREAM_MAX_SRC_NBYTES;
    streams->is_open = true;
    wharf_work_poster_init(&streams->done, streams->kernels.queue.core,
                           WHARF_WORKER_STREAM_ENTRIES);
    return least;
}
