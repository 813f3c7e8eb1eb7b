/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_pins.c: which memory of clients a GPU's worker has.  For a GPU that means pinned pages: up to
 * the budget, never on the path of a job.
 */
#include <stdio.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/front/front.h"
#include "daemon/gpu/gpu_memory.h"
#include "daemon/gpu/gpu_models.h"
#include "daemon/gpu/gpu_state.h"

/* Registrations that are asked for at a time.  Each takes the worker 50 ms for a GiB, and 0.7 s
 * more if its pages are fresh. */
#define MOST_ASKED 4
/* Entries that are looked at under one hold of the front lock. */
#define MOST_LOOKS 1024
/* Letting go of memory makes the kernel leave the GPU for a moment: not more often than this,
 * unless a part of the budget is lost to memory that nobody uses any more. */
#define FORGET_NS (200 * (uint64_t)WHARF_NS_PER_MS)
#define FORGET_PART 8

/* Jobs that waited for it go on, and so does who registered it. */
static void tell_session(struct wharf_front *front, const struct wharf_gpu_memory *memory)
{
    struct wharf_session *session = memory->session;

    if (!session || session->state == WHARF_SESSION_DEAD)
        return;
    wharf_place_waiting(front, session);
    if (memory->is_device)
        wharf_front_tell_settled(front, session);
}

static bool is_dead(const struct wharf_gpu_memory *memory)
{
    return !memory->session && !memory->is_spare;
}

/* The worker does not have it any more.  Under the lock; returns a descriptor to be closed without
 * it if nobody has, or -1. */
static int drop_hold(struct wharf_gpu_backend *backend, struct wharf_gpu_hold *hold)
{
    struct wharf_gpu_memory *memory = hold->memory;

    hold->is_forgotten = false;
    wharf_gpu_memory_set(backend->front, backend->gpu, memory, WHARF_GPU_MEMORY_ABSENT);
    return is_dead(memory) && !wharf_gpu_memory_holders(memory) ? wharf_gpu_memory_free(memory)
                                                                : -1;
}

/* ---- registering --------------------------------------------------------------------------- */

/* Whether jobs can have no other engine: outputs in GPU memory have none either. */
static bool wants_gpu_alone(const struct wharf_gpu_backend *backend,
                            const struct wharf_gpu_memory *memory)
{
    return memory->session &&
           (memory->session->engine == backend->engine || memory->session->n_device_regions > 0);
}

/* GPU memory is its owner's; while that is not known, one after the other is asked. */
static bool may_ask_for(const struct wharf_gpu_backend *backend,
                        const struct wharf_gpu_memory *memory)
{
    return memory->owner == backend->gpu ||
           (memory->owner == WHARF_MAX_GPUS && !wharf_gpu_memory_holders(memory));
}

/* What another worker has is counted already. */
static bool fits(const struct wharf_front *front, const struct wharf_gpu_memory *memory)
{
    uint64_t budget = front->config.gpu_memory_nbytes;

    if (memory->is_device || memory->is_counted)
        return true;
    return front->pinned_nbytes <= budget && memory->nbytes <= budget - front->pinned_nbytes;
}

/* When it is due to be pinned: WHARF_NEVER for who will not use it. */
static uint64_t due_ns(const struct wharf_gpu_backend *backend, const struct wharf_gpu_hold *hold)
{
    const struct wharf_gpu_memory *memory = hold->memory;

    if (is_dead(memory))
        return WHARF_NEVER;
    if (hold->gone_ns)
        return wharf_gpu_models_due_ns(hold);
    if (hold->state == WHARF_GPU_MEMORY_REFUSED && hold->is_over_budget)
        return fits(backend->front, memory) ? 0 : WHARF_NEVER;
    if (hold->state != WHARF_GPU_MEMORY_ABSENT)
        return WHARF_NEVER;
    if (memory->is_spare)
        return 0;
    if (memory->is_device)
        return may_ask_for(backend, memory) ? 0 : WHARF_NEVER;
    if (wants_gpu_alone(backend, memory))
        return 0;
    if (memory->session->engine != WHARF_ENGINE_AUTO)
        return WHARF_NEVER;
    return memory->since_ns + backend->front->config.gpu_pin_after_ns;
}

static void forget(struct wharf_gpu_backend *backend, struct wharf_gpu_hold *hold)
{
    struct wharf_worker_message message = {
        .kind = WHARF_WORKER_FORGET,
        .number = hold->memory->number,
    };

    if (wharf_worker_link_send(&backend->link, &message, -1) == 0)
        hold->is_forgotten = true;
}

/* It is not to be had, for now. */
static void refuse(struct wharf_gpu_backend *backend, struct wharf_gpu_hold *hold)
{
    struct wharf_gpu_memory *memory = hold->memory;

    wharf_gpu_memory_set(backend->front, backend->gpu, memory, WHARF_GPU_MEMORY_REFUSED);
    hold->gone_ns = memory->is_model ? wharf_now_ns() : 0;
    tell_session(backend->front, memory);
}

/* There is no place for a model, or no memory.  If somebody wants it another one makes room. */
static void make_room(struct wharf_gpu_backend *backend, struct wharf_gpu_hold *hold,
                      uint64_t now_ns)
{
    struct wharf_gpu_pass *pass = &backend->pass;

    if (hold->memory->wanted_ns <= hold->gone_ns) {
        hold->gone_ns = now_ns;
        return;
    }
    if (hold->is_promised && backend->view->n_leaving_models > 0)
        return;
    hold->is_promised = false;
    /* Not until it may be let go, which pass->has_dead sees to; nor looked for too often. */
    if (!pass->may_forget || pass->has_searched) {
        pass->has_dead = true;
        return;
    }
    struct wharf_gpu_hold *victim =
        wharf_gpu_models_victim(backend->view, backend->gpu, hold->memory, now_ns);
    if (!victim) {
        pass->has_searched = true;
        refuse(backend, hold);
        return;
    }
    forget(backend, victim);
    if (!victim->is_forgotten)
        return;
    victim->gone_ns = now_ns;
    wharf_gpu_memory_set(backend->front, backend->gpu, victim->memory, WHARF_GPU_MEMORY_LEAVING);
    hold->is_promised = true;
}

static void ask(struct wharf_gpu_backend *backend, struct wharf_gpu_hold *hold, uint64_t now_ns)
{
    struct wharf_front *front = backend->front;
    struct wharf_gpu_memory *memory = hold->memory;
    struct wharf_worker_message message = {
        .kind = memory->is_device  ? WHARF_WORKER_IMPORT
                : memory->is_model ? WHARF_WORKER_MODEL
                                   : WHARF_WORKER_REGISTER,
        .number = memory->number,
        .nbytes = memory->nbytes,
        .read_only = memory->read_only,
    };

    if (memory->is_model && (!fits(front, memory) ||
                             !wharf_gpu_models_have_place(backend->view, backend->gpu, memory))) {
        make_room(backend, hold, now_ns);
        return;
    }
    if (!fits(front, memory)) {
        /* Who wants nothing but a GPU is told, unless there will be room soon, when the worker has
         * let go of what nobody uses; others do without until then. */
        if (wants_gpu_alone(backend, memory) && front->dead_nbytes == 0) {
            refuse(backend, hold);
            hold->is_over_budget = true;
        }
        return;
    }
    if (wharf_worker_link_send(&backend->link, &message, memory->fd) < 0)
        return;
    wharf_gpu_memory_set(front, backend->gpu, memory, WHARF_GPU_MEMORY_ASKED);
    hold->is_promised = false;
    backend->n_asked++;
}

static struct wharf_gpu_hold *find(struct wharf_gpu_backend *backend, uint32_t number)
{
    WHARF_LIST_FOR(link, &backend->view->memories)
    {
        struct wharf_gpu_hold *hold = WHARF_LIST_ENTRY(link, struct wharf_gpu_hold, link);
        if (hold->memory->number == number)
            return hold;
    }
    return NULL;
}

/* That memory is another GPU's says less than what its own worker finds wrong with it. */
static void keep_error(struct wharf_gpu_memory *memory, const struct wharf_worker_message *message)
{
    if (memory->error && memory->error != EXDEV)
        return;
    memory->error = message->error;
    snprintf(memory->text, sizeof(memory->text), "%.*s", (int)sizeof(memory->text) - 1,
             message->text);
}

void wharf_gpu_pins_registered(struct wharf_gpu_backend *backend,
                               const struct wharf_worker_message *message)
{
    struct wharf_front *front = backend->front;
    WHARF_CLEANUP_FD int fd = -1;

    wharf_front_enter(front);
    struct wharf_gpu_hold *hold = find(backend, message->number);
    if (hold && hold->state == WHARF_GPU_MEMORY_ASKED) {
        struct wharf_gpu_memory *memory = hold->memory;
        backend->n_asked--;
        backend->pass.is_stale = true;
        hold->address = message->address;
        if (!message->error && memory->is_device)
            memory->owner = backend->gpu;
        if (message->error)
            keep_error(memory, message);
        hold->gone_ns = 0;
        hold->is_over_budget = false;
        if (message->error && is_dead(memory)) {
            fd = drop_hold(backend, hold);
        } else if (message->error) {
            refuse(backend, hold);
        } else {
            hold->used_ns = wharf_now_ns();
            wharf_gpu_memory_set(front, backend->gpu, memory, WHARF_GPU_MEMORY_READY);
            tell_session(front, memory);
        }
        /* It is the next one's to be asked. */
        if (message->error && fd < 0 && memory->is_device)
            front->gpus_wanted |= ~(1u << backend->gpu);
    }
    wharf_front_leave(front);
}

/* ---- letting go ---------------------------------------------------------------------------- */

void wharf_gpu_pins_forgotten(struct wharf_gpu_backend *backend,
                              const struct wharf_worker_message *message)
{
    struct wharf_front *front = backend->front;
    WHARF_CLEANUP_FD int fd = -1;

    wharf_front_enter(front);
    struct wharf_gpu_hold *hold = find(backend, message->number);
    if (hold && hold->is_forgotten)
        fd = drop_hold(backend, hold);
    backend->pass.is_stale = true;
    wharf_front_leave(front);
}

/* ---- both ---------------------------------------------------------------------------------- */

static void tend_one(struct wharf_gpu_backend *backend, struct wharf_gpu_hold *hold,
                     uint64_t now_ns)
{
    struct wharf_gpu_pass *pass = &backend->pass;
    const struct wharf_gpu_memory *memory = hold->memory;
    uint64_t at_ns = due_ns(backend, hold);

    if (is_dead(memory) && !hold->is_forgotten && hold->state == WHARF_GPU_MEMORY_READY) {
        if (pass->may_forget)
            forget(backend, hold);
        pass->has_dead |= !pass->may_forget;
        pass->dead_nbytes += pass->may_forget || memory->is_device ? 0 : memory->nbytes;
    } else if (at_ns <= now_ns && backend->n_asked < MOST_ASKED) {
        ask(backend, hold, now_ns);
    } else if (at_ns > now_ns && at_ns < pass->next_ns) {
        pass->next_ns = at_ns;
    }
}

static void begin_pass(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_gpu_pass *pass = &backend->pass;
    uint64_t budget = backend->front->config.gpu_memory_nbytes;
    bool may_forget =
        now_ns - backend->forgotten_at_ns >= FORGET_NS || pass->dead_nbytes > budget / FORGET_PART;

    if (may_forget)
        backend->forgotten_at_ns = now_ns;
    *pass = (struct wharf_gpu_pass){
        .number = pass->number + 1,
        .is_under_way = true,
        .may_forget = may_forget,
        .next_ns = WHARF_NEVER,
    };
}

/* Goes on with a pass for a while, under the lock. */
static void look_at_some(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_gpu_pass *pass = &backend->pass;
    struct wharf_list *memories = &backend->view->memories;

    for (unsigned n = 0; n < MOST_LOOKS; n++) {
        struct wharf_gpu_hold *hold = WHARF_LIST_FIRST(memories, struct wharf_gpu_hold, link);
        /* What comes meanwhile makes the pass stale. */
        if (!hold || hold->pass == pass->number) {
            pass->is_under_way = false;
            return;
        }
        hold->pass = pass->number;
        wharf_list_rotate(memories);
        tend_one(backend, hold, now_ns);
    }
}

uint64_t wharf_gpu_pins_tend(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_gpu_pass *pass = &backend->pass;

    wharf_front_enter_first(backend->front);
    if (!pass->is_under_way)
        begin_pass(backend, now_ns);
    look_at_some(backend, now_ns);
    wharf_front_leave(backend->front);
    if (pass->is_under_way || pass->is_stale)
        return now_ns;
    if (pass->has_dead && backend->forgotten_at_ns + FORGET_NS < pass->next_ns)
        return backend->forgotten_at_ns + FORGET_NS;
    return pass->next_ns;
}

/* A device's descriptor may be the last one of its memory: closed without the lock. */
void wharf_gpu_pins_bury(struct wharf_gpu_backend *backend)
{
    struct wharf_front *front = backend->front;
    bool is_more = true;

    while (is_more) {
        WHARF_CLEANUP_FD int fd = -1;
        is_more = false;
        wharf_front_enter(front);
        WHARF_LIST_FOR(link, &front->memories)
        {
            struct wharf_gpu_memory *memory = WHARF_LIST_ENTRY(link, struct wharf_gpu_memory, link);
            if (memory->is_device && !memory->session && !wharf_gpu_memory_holders(memory)) {
                fd = wharf_gpu_memory_free(memory);
                is_more = true;
                break;
            }
        }
        wharf_front_leave(front);
    }
}

void wharf_gpu_pins_lost(struct wharf_gpu_backend *backend)
{
    struct wharf_front *front = backend->front;
    bool is_more = true;

    while (is_more) {
        WHARF_CLEANUP_FD int fd = -1;
        is_more = false;
        wharf_front_enter(front);
        WHARF_LIST_FOR(link, &backend->view->memories)
        {
            struct wharf_gpu_hold *hold = WHARF_LIST_ENTRY(link, struct wharf_gpu_hold, link);
            hold->gone_ns = 0;
            hold->is_promised = false;
            fd = drop_hold(backend, hold);
            is_more = fd >= 0;
            if (is_more)
                break;
        }
        wharf_front_leave(front);
    }
    wharf_front_enter(front);
    /* GPU memory that it was asked for may be another one's. */
    front->gpus_wanted |= ~(1u << backend->gpu);
    wharf_front_leave(front);
    backend->n_asked = 0;
    backend->pass = (struct wharf_gpu_pass){.number = backend->pass.number};
}
