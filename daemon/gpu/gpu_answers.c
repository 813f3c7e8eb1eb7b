/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_answers.c: handles a worker's answers to requests to register and release memory, which come
 * in the order of the requests, and their time limits.
 */
#include <errno.h>
#include <stdio.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/residency.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/placement/gpu_memory.h"

/* The time limit to register or release a GiB, in addition to the time after which a worker counts
 * as hung: ten times what fresh pages take. */
#define GIB_NS (10 * (uint64_t)WHARF_NS_PER_S)

/* ---- answers ------------------------------------------------------------------------------- */

/* Removes and returns the hold whose answer is due.  NULL: the answer is to no request, or out of
 * order. */
static struct wharf_gpu_hold *take_answered(struct wharf_list *told, uint32_t number)
{
    struct wharf_gpu_hold *hold = WHARF_LIST_FIRST(told, struct wharf_gpu_hold, answer_link);

    if (!hold || hold->memory->number != number)
        return NULL;
    wharf_list_remove(&hold->answer_link);
    return hold;
}

/* Keeps the most informative error: "memory of another GPU" yields to what that GPU's own worker
 * finds. */
static void keep_error(struct wharf_gpu_memory *memory, const struct wharf_worker_message *message)
{
    if (memory->error && memory->error != EXDEV)
        return;
    memory->error = message->error;
    snprintf(memory->text, sizeof(memory->text), "%.*s", (int)sizeof(memory->text) - 1,
             message->text);
}

/* Returns a descriptor to be closed without the lock, or -1. */
static int take_registered(struct wharf_gpu_backend *backend, struct wharf_gpu_hold *hold,
                           const struct wharf_worker_message *message)
{
    struct wharf_core *core = backend->core;
    struct wharf_gpu_memory *memory = hold->memory;

    backend->told.n_asked--;
    backend->told.registering_ns = 0;
    wharf_gpu_pins_await(backend, wharf_now_ns());
    backend->told.pass.is_stale = true;
    hold->address = message->address;
    hold->gone_ns = 0;
    hold->is_over_budget = false;
    if (!message->error) {
        if (memory->is_device)
            memory->owner = backend->gpu;
        hold->used_ns = wharf_now_ns();
        /* It may be that it makes room for other memory by now. */
        wharf_gpu_memory_set(core, backend->gpu, memory,
                             memory->is_leaving ? WHARF_GPU_MEMORY_LEAVING
                                                : WHARF_GPU_MEMORY_READY);
        wharf_gpu_pins_tell(core, memory);
        return -1;
    }
    keep_error(memory, message);
    if (wharf_gpu_memory_is_dead(memory))
        return wharf_gpu_pins_drop(backend, hold);
    wharf_gpu_pins_refuse(backend, hold);
    /* It is the next one's to be asked. */
    if (memory->is_device)
        core->fleet.gpus_wanted |= ~(1u << backend->gpu);
    return -1;
}

void wharf_gpu_answers_registered(struct wharf_gpu_backend *backend,
                                  const struct wharf_worker_message *message)
{
    WHARF_CLEANUP_FD int fd = -1;

    wharf_core_enter(backend->core);
    struct wharf_gpu_hold *hold = take_answered(&backend->told.asked, message->number);
    if (hold)
        fd = take_registered(backend, hold, message);
    wharf_core_leave(backend->core);
    if (!hold)
        wharf_gpu_worker_kill(backend, "it registered what it was not told to");
}

void wharf_gpu_answers_begun(struct wharf_gpu_backend *backend,
                             const struct wharf_worker_message *message, uint64_t now_ns)
{
    wharf_core_enter(backend->core);
    const struct wharf_gpu_hold *first =
        WHARF_LIST_FIRST(&backend->told.asked, struct wharf_gpu_hold, answer_link);
    bool is_first = first && first->memory->number == message->number;
    wharf_core_leave(backend->core);
    if (is_first)
        backend->told.registering_ns = now_ns;
    else
        wharf_gpu_worker_kill(backend, "it registers what it was not told to");
}

void wharf_gpu_answers_forgotten(struct wharf_gpu_backend *backend,
                                 const struct wharf_worker_message *message)
{
    WHARF_CLEANUP_FD int fd = -1;

    wharf_core_enter(backend->core);
    struct wharf_gpu_hold *hold = take_answered(&backend->told.forgotten, message->number);
    if (hold) {
        fd = wharf_gpu_pins_drop(backend, hold);
        wharf_gpu_pins_await(backend, wharf_now_ns());
    }
    backend->told.pass.is_stale = true;
    wharf_core_leave(backend->core);
    if (!hold)
        wharf_gpu_worker_kill(backend, "it let go of what it was not told to");
}

/* ---- workers that hang --------------------------------------------------------------------- */

/* Blames the tenant whose memory blocks the worker. */
static void blame(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_gpu_hold *hold =
        WHARF_LIST_FIRST(&backend->told.asked, struct wharf_gpu_hold, answer_link);

    hold->memory->n_stalls++;
    if (hold->memory->tenant)
        wharf_gpu_recovery_blame_stall(backend, hold->memory->tenant, now_ns);
}

/* The time limit for the first unanswered request of a list. */
static uint64_t step_ns(const struct wharf_list *told)
{
    const struct wharf_gpu_hold *hold = WHARF_LIST_FIRST(told, struct wharf_gpu_hold, answer_link);

    return hold ? (hold->memory->nbytes >> 20) * (GIB_NS >> 10) : 0;
}

/* The time in which the worker finishes what it decodes: it does so before a release. */
static uint64_t piece_ns(struct wharf_gpu_backend *backend)
{
    const struct wharf_gpu_piece *oldest =
        WHARF_LIST_FIRST(&backend->under_way, struct wharf_gpu_piece, link);

    if (oldest && oldest->patience_ns > backend->told.patience_ns)
        backend->told.patience_ns = oldest->patience_ns;
    return backend->told.patience_ns;
}

/* The time by which the worker must answer.  Under the lock. */
static uint64_t stalled_from_ns(struct wharf_gpu_backend *backend)
{
    uint64_t hang_ns = backend->core->config.gpu_hang_timeout_ns;

    if (backend->told.registering_ns)
        return backend->told.registering_ns + hang_ns + step_ns(&backend->told.asked);
    return backend->told.silent_ns + hang_ns + piece_ns(backend) +
           step_ns(&backend->told.forgotten);
}

uint64_t wharf_gpu_answers_see_to_stalls(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    bool is_registering = backend->told.registering_ns != 0;

    if (backend->told.silent_ns == 0 || backend->state != WHARF_GPU_UP)
        return WHARF_NEVER;
    wharf_core_enter(backend->core);
    uint64_t until_ns = stalled_from_ns(backend);
    bool is_stalled = now_ns >= until_ns;
    if (is_stalled && is_registering)
        blame(backend, now_ns);
    wharf_core_leave(backend->core);
    if (!is_stalled)
        return until_ns;
    wharf_gpu_worker_kill(backend, is_registering
                                       ? "a client's memory keeps it from registering that"
                                       : "it has not answered for too long");
    /* No item of anybody's has done it. */
    backend->life.was_killed = false;
    return now_ns;
}
