/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_host.c: a worker's engine that is as quick as a processor: items are decoded by the CPU's
 * decoders, one after the other, by the thread that would wait for a kernel.
 *
 * It calls itself a GPU, so the core treats it as one: for measuring and profiling all that is
 * between a client and a device on machines without any, where the SIMT layer, a thousand times
 * slower than a GPU, hides it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/worker/worker.h"
#include "encoders/decode_job.h"
#include "proto/wharf_job.h"

/* As many as an H100 has: what the core does with this number it does here. */
#define N_WARPS 4224u
/* Chunks of up to this many bytes. */
#define MOST_NBYTES ((size_t)1 << 20)

struct wharf_epoch {
    struct wharf_epoch_config config;
    struct wharf_work_queue queue;
    struct wharf_work_poster done;
    uint32_t head; /* items taken */
    uint8_t *copy; /* of an item's input */
};

static void host_close(struct wharf_epoch *epoch)
{
    if (!epoch)
        return;
    free(epoch->copy);
    free(epoch);
}

/* As many as are named. */
static int host_find_device(const char *name, int *ret_device)
{
    *ret_device = atoi(name);
    return *name >= '0' && *name <= '9' ? 0 : -ENODEV;
}

static int host_count_devices(int *ret_n_devices)
{
    *ret_n_devices = 1;
    return 0;
}

static int host_open(const struct wharf_epoch_config *config, struct wharf_epoch **ret_epoch)
{
    struct wharf_epoch *epoch = calloc(1, sizeof(*epoch));

    if (!epoch || !(epoch->copy = malloc(MOST_NBYTES))) {
        host_close(epoch);
        return -ENOMEM;
    }
    epoch->config = *config;
    epoch->queue = wharf_work_queue_at(config->queue, config->n_entries);
    wharf_work_poster_init(&epoch->done, config->queue, config->n_entries);
    *ret_epoch = epoch;
    return 0;
}

static const char *host_error_text(void)
{
    return "";
}

static void host_info(const struct wharf_epoch *epoch, struct wharf_epoch_info *ret_info)
{
    (void)epoch;
    *ret_info = (struct wharf_epoch_info){.device_name = "this processor", .n_warps = N_WARPS + 1};
}

static int host_map(struct wharf_epoch *epoch, void *at, size_t nbytes, int read_only,
                    uint64_t *ret_address)
{
    (void)epoch, (void)nbytes, (void)read_only;
    *ret_address = (uintptr_t)at;
    return 0;
}

static int host_unmap(struct wharf_epoch *epoch, void *at, size_t nbytes)
{
    (void)epoch, (void)at, (void)nbytes;
    return 0;
}

/* There is no memory of the device, which large chunks would need. */
static int host_alloc(struct wharf_epoch *epoch, size_t nbytes, uint64_t *ret_address)
{
    (void)epoch, (void)nbytes, (void)ret_address;
    return -EOPNOTSUPP;
}

/* It stays for as long as there is work. */
static void host_set_stay(struct wharf_epoch *epoch, uint32_t stay_us)
{
    (void)epoch, (void)stay_us;
}

static int host_start(struct wharf_epoch *epoch)
{
    wharf_work_begin_epoch(&epoch->queue);
    return 0;
}

/* ---- items --------------------------------------------------------------------------------- */

static void decode(struct wharf_epoch *epoch, const struct wharf_work_item *item,
                   struct wharf_outcome *ret_outcome)
{
    struct wharf_decode_job job = {
        .codec = item->codec,
        .flags = item->flags,
        .checksum = item->checksum,
        .setting.parameter = item->parameter,
        .in = epoch->copy,
        .in_nbytes = item->src_nbytes,
        .out = (uint8_t *)(uintptr_t)item->dst,
        .out_avail = item->dst_nbytes,
    };

    *ret_outcome = (struct wharf_outcome){.result = WHARF_OK};
    if (item->opcode != WHARF_WORK_DECODE)
        return;
    if (item->src_nbytes > MOST_NBYTES) {
        ret_outcome->result = WHARF_BAD_REQUEST;
        return;
    }
    memcpy(epoch->copy, (const void *)(uintptr_t)item->src, item->src_nbytes);
    wharf_decode_job_run(&job, 0, ret_outcome);
}

static void run_item(struct wharf_epoch *epoch, uint32_t index)
{
    struct wharf_work_item item = wharf_work_item_at(&epoch->queue, index);
    struct wharf_outcome outcome;
    uint64_t begun_ns = wharf_now_ns();

    decode(epoch, &item, &outcome);
    struct wharf_work_completion completion = {
        .item = index,
        .attempt = item.attempt,
        .bit_offset = (uint32_t)outcome.bit_offset,
        .in_nbytes = (uint32_t)outcome.in_nbytes,
        .out_nbytes = (uint32_t)outcome.out_nbytes,
        .result = (uint16_t)outcome.result,
        .reason = (uint16_t)outcome.reason,
        .decode_ns = (uint32_t)(wharf_now_ns() - begun_ns),
    };
    wharf_work_post(&epoch->done, &completion);
}

/* Takes what there is; whether there was anything. */
static bool take(struct wharf_epoch *epoch)
{
    uint32_t tail = __atomic_load_n(&epoch->queue.core->tail, __ATOMIC_ACQUIRE);
    uint32_t cancel_tail = __atomic_load_n(&epoch->queue.core->cancel_tail, __ATOMIC_ACQUIRE);
    bool is_any = epoch->head != tail;

    for (; epoch->head != tail; epoch->head++)
        run_item(epoch, epoch->head);
    __atomic_store_n(&epoch->queue.kernel->head, epoch->head, __ATOMIC_RELEASE);
    /* All items before them are done already. */
    __atomic_store_n(&epoch->queue.kernel->cancel_head, cancel_tail, __ATOMIC_RELEASE);
    return is_any;
}

static void say(struct wharf_epoch *epoch, uint32_t state)
{
    uint32_t word = __atomic_load_n(&epoch->queue.kernel->state, __ATOMIC_RELAXED);

    __atomic_store_n(&epoch->queue.kernel->state,
                     WHARF_WORK_STATE(WHARF_WORK_EPOCH_OF(word), state), __ATOMIC_SEQ_CST);
}

/* As a kernel does: stays while there is work and for a while after it. */
static int host_wait(struct wharf_epoch *epoch)
{
    const struct wharf_work_worker *orders = epoch->queue.worker;
    uint64_t active_ns = wharf_now_ns();

    for (;;) {
        if (take(epoch))
            active_ns = wharf_now_ns();
        if (__atomic_load_n(&orders->quit, __ATOMIC_ACQUIRE) ||
            __atomic_load_n(&orders->park, __ATOMIC_ACQUIRE)) {
            say(epoch, WHARF_WORK_OUT_MORE);
            return 0;
        }
        if (wharf_now_ns() - active_ns < (uint64_t)epoch->config.idle_us * 1000)
            continue;
        say(epoch, WHARF_WORK_LEAVING);
        /* Orders the store of the state before the loads of the tails. */
        __sync_synchronize();
        if (!wharf_work_pending(&epoch->queue)) {
            say(epoch, WHARF_WORK_OUT);
            return 0;
        }
        say(epoch, WHARF_WORK_RUNNING);
    }
}

/* ---- the engine ---------------------------------------------------------------------------- */

static const struct wharf_epoch_ops host_epoch = {
    .name = "host",
    .find_device = host_find_device,
    .count_devices = host_count_devices,
    .open = host_open,
    .close = host_close,
    .error_text = host_error_text,
    .info = host_info,
    .map_host = host_map,
    .unmap_host = host_unmap,
    .alloc = host_alloc,
    .start = host_start,
    .wait = host_wait,
    .set_stay = host_set_stay,
};

const struct wharf_epoch_ops *const wharf_worker_engine = &host_epoch;
const struct wharf_stream_ops *const wharf_worker_stream_engine = NULL;
const uint32_t wharf_worker_engine_number = WHARF_ENGINE_GPU;
