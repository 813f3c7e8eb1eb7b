/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_pins.c: tells the worker which memory to register and to release.
 *
 * A pass visits all memory that the GPU could use, a bounded number of entries under each hold of
 * the core lock. It sends requests, at most MOST_ASKED at a time, and finds when the next pass is
 * due; every change makes the pass stale, so that another one follows.  Releasing needs the kernel
 * to leave the GPU, so it happens rarely and for many entries together.
 */
#include <errno.h>
#include <stdio.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/residency.h"
#include "daemon/core/session.h"
#include "daemon/core/session_events.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/gpu/gpu_state.h"
#include "daemon/gpu/worker_link.h"
#include "daemon/gpu/worker_message.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/gpu_models.h"
#include "daemon/placement/gpu_room.h"
#include "daemon/placement/pin_account.h"
#include "daemon/placement/place.h"

/* Unanswered registrations at a time.  Each takes the worker 50 ms for a GiB, and 0.7 s more if its
 * pages are fresh. */
#define MOST_ASKED 4
/* Entries that are visited under one hold of the core lock. */
#define MOST_LOOKS 1024
/* Releasing memory makes the kernel leave the GPU for a moment.  This is the least time between two
 * releases, unless unused memory takes a part of the budget. */
#define FORGET_NS (200 * (uint64_t)WHARF_NS_PER_MS)
#define FORGET_PART 8

/* Memory without room is tried again after this time, if it is still wanted. */
#define RETRY_NS ((uint64_t)WHARF_NS_PER_S)
/* How often to look for victims while all are within their minimum time. */
#define LATER_NS (100 * (uint64_t)WHARF_NS_PER_MS)

/* The next worker registers memory that hung the last one this long after all other memory. */
#define OTHERS_FIRST_NS ((uint64_t)WHARF_NS_PER_S)

void wharf_gpu_pins_await(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    bool is_told = backend->told.n_asked > 0 || !wharf_list_is_empty(&backend->told.forgotten);

    backend->told.silent_ns = is_told ? now_ns : 0;
    backend->told.patience_ns = 0;
}

void wharf_gpu_pins_tell(struct wharf_core *core, const struct wharf_gpu_memory *memory)
{
    struct wharf_session *session = memory->session;

    if (!session || session->state == WHARF_SESSION_DEAD)
        return;
    wharf_place_look_again(core, session);
    if (memory->is_device)
        wharf_core_tell_decided(core, session);
}

int wharf_gpu_pins_drop(struct wharf_gpu_backend *backend, struct wharf_gpu_hold *hold)
{
    struct wharf_gpu_memory *memory = hold->memory;

    hold->is_forgotten = false;
    wharf_list_remove(&hold->answer_link);
    wharf_gpu_memory_set(backend->core, backend->gpu, memory, WHARF_GPU_MEMORY_ABSENT);
    return wharf_gpu_memory_is_dead(memory) && !wharf_gpu_memory_holders(memory)
               ? wharf_gpu_memory_free(memory)
               : -1;
}

/* ---- registering --------------------------------------------------------------------------- */

/* Whether the memory's jobs can run only on the GPU, as those in clients' GPU memory. */
static bool wants_gpu_alone(const struct wharf_gpu_backend *backend,
                            const struct wharf_gpu_memory *memory)
{
    return memory->session &&
           (memory->session->engine == backend->engine || memory->session->n_device_regions > 0);
}

/* GPU memory belongs to one GPU.  Until it is known, workers are asked one after the other. */
static bool may_ask_for(const struct wharf_gpu_backend *backend,
                        const struct wharf_gpu_memory *memory)
{
    return memory->owner == backend->gpu ||
           (memory->owner == WHARF_MAX_GPUS && !wharf_gpu_memory_holders(memory));
}

/* When to try memory again that found no room. */
static uint64_t refused_due_ns(const struct wharf_core *core, const struct wharf_gpu_hold *hold)
{
    const struct wharf_gpu_memory *memory = hold->memory;

    if (wharf_gpu_room_fits(core, memory))
        return 0;
    return memory->wanted_ns > hold->refused_ns ? hold->refused_ns + RETRY_NS : WHARF_NEVER;
}

/* When a tenant's memory may be registered again, after it hung a worker. */
static uint64_t trusted_from_ns(const struct wharf_gpu_backend *backend,
                                const struct wharf_gpu_memory *memory)
{
    if (memory->n_stalls >= WHARF_GPU_MOST_STALLS)
        return 0; /* to be refused */
    uint64_t banned_until_ns = memory->tenant->gpu_trust.banned_until_ns;
    uint64_t others_until_ns =
        memory->n_stalls > 0 ? backend->life.up_since_ns + OTHERS_FIRST_NS : banned_until_ns;
    return others_until_ns > banned_until_ns ? others_until_ns : banned_until_ns;
}

/* When to pin the memory; WHARF_NEVER if its session uses no GPU. */
static uint64_t due_ns(const struct wharf_gpu_backend *backend, const struct wharf_gpu_hold *hold)
{
    const struct wharf_gpu_memory *memory = hold->memory;

    if (wharf_gpu_memory_is_dead(memory) || memory->is_leaving)
        return WHARF_NEVER;
    if (hold->gone_ns)
        return wharf_gpu_models_due_ns(hold);
    if (hold->state == WHARF_GPU_MEMORY_REFUSED && hold->is_over_budget)
        return refused_due_ns(backend->core, hold);
    if (hold->state != WHARF_GPU_MEMORY_ABSENT)
        return WHARF_NEVER;
    if (memory->is_pooled)
        return 0;
    if (memory->is_device)
        return may_ask_for(backend, memory) ? 0 : WHARF_NEVER;
    if (!wants_gpu_alone(backend, memory) && memory->session->engine != WHARF_ENGINE_AUTO)
        return WHARF_NEVER;
    if (memory->is_staging && !memory->wanted_ns)
        return WHARF_NEVER;
    uint64_t since_ns = wants_gpu_alone(backend, memory)
                            ? 0
                            : memory->since_ns + backend->core->config.gpu_pin_after_ns;
    uint64_t trusted_ns = trusted_from_ns(backend, memory);
    return since_ns > trusted_ns ? since_ns : trusted_ns;
}

static void forget(struct wharf_gpu_backend *backend, struct wharf_gpu_hold *hold)
{
    struct wharf_worker_message message = {
        .kind = WHARF_WORKER_FORGET,
        .number = hold->memory->number,
    };

    /* An unused model is released already when a place is needed. */
    if (hold->is_forgotten || wharf_worker_link_send(&backend->link, &message, -1) < 0)
        return;
    hold->is_forgotten = true;
    backend->told.forgotten_at_ns = wharf_now_ns();
    wharf_list_append(&backend->told.forgotten, &hold->answer_link);
    if (!backend->told.silent_ns)
        wharf_gpu_pins_await(backend, backend->told.forgotten_at_ns);
}

void wharf_gpu_pins_refuse(struct wharf_gpu_backend *backend, struct wharf_gpu_hold *hold)
{
    struct wharf_gpu_memory *memory = hold->memory;

    wharf_gpu_memory_set(backend->core, backend->gpu, memory, WHARF_GPU_MEMORY_REFUSED);
    hold->gone_ns = memory->is_model ? wharf_now_ns() : 0;
    wharf_gpu_pins_tell(backend->core, memory);
}

/* There is no place or no memory for a model.  If it is wanted, releases another one. */
static void make_room(struct wharf_gpu_backend *backend, struct wharf_gpu_hold *hold,
                      uint64_t now_ns)
{
    struct wharf_gpu_pass *pass = &backend->told.pass;

    if (hold->memory->wanted_ns <= hold->gone_ns) {
        hold->gone_ns = now_ns;
        return;
    }
    if (hold->is_promised && backend->view->n_leaving_models > 0)
        return;
    hold->is_promised = false;
    /* Not before releases are allowed, which pass->has_dead schedules; and not too often. */
    if (!pass->may_forget || pass->has_searched) {
        pass->has_dead = true;
        return;
    }
    struct wharf_gpu_hold *victim =
        wharf_gpu_models_victim(backend->view, backend->gpu, hold->memory, now_ns);
    if (!victim) {
        pass->has_searched = true;
        wharf_gpu_pins_refuse(backend, hold);
        return;
    }
    forget(backend, victim);
    if (!victim->is_forgotten)
        return;
    victim->gone_ns = now_ns;
    wharf_gpu_memory_set(backend->core, backend->gpu, victim->memory, WHARF_GPU_MEMORY_LEAVING);
    hold->is_promised = true;
}

/* The budget has no room for the memory.  Evicts others; or refuses a session that wants only the
 * GPU; other sessions use the CPU.  Returns whether to wait for an eviction. */
static bool waits_for_room(struct wharf_gpu_backend *backend, struct wharf_gpu_hold *hold,
                           uint64_t now_ns)
{
    struct wharf_gpu_memory *memory = hold->memory;
    enum wharf_gpu_room_outlook outlook = wharf_gpu_room_make(backend->core, memory, now_ns);

    if (outlook == WHARF_GPU_ROOM_LATER && now_ns + LATER_NS < backend->told.pass.next_ns)
        backend->told.pass.next_ns = now_ns + LATER_NS;
    if (outlook != WHARF_GPU_ROOM_NONE && hold->is_over_budget) {
        hold->is_over_budget = false;
        wharf_gpu_memory_set(backend->core, backend->gpu, memory, WHARF_GPU_MEMORY_ABSENT);
    }
    return outlook != WHARF_GPU_ROOM_NONE;
}

static void find_no_room(struct wharf_gpu_backend *backend, struct wharf_gpu_hold *hold,
                         uint64_t now_ns)
{
    if (!wants_gpu_alone(backend, hold->memory) || !wharf_gpu_room_is_wanted(hold->memory, now_ns))
        return;
    hold->refused_ns = now_ns;
    hold->is_over_budget = true;
    if (hold->state != WHARF_GPU_MEMORY_REFUSED)
        wharf_gpu_pins_refuse(backend, hold);
}

/* Whether the worker can be asked to register it now. */
static bool has_room(struct wharf_gpu_backend *backend, struct wharf_gpu_hold *hold,
                     uint64_t now_ns)
{
    const struct wharf_gpu_memory *memory = hold->memory;
    bool has_place =
        !memory->is_model || wharf_gpu_models_have_place(backend->view, backend->gpu, memory);
    bool fits = wharf_gpu_room_fits(backend->core, memory);

    if (has_place && (fits || waits_for_room(backend, hold, now_ns)))
        return fits;
    if (memory->is_model)
        make_room(backend, hold, now_ns);
    else
        find_no_room(backend, hold, now_ns);
    return false;
}

static void ask(struct wharf_gpu_backend *backend, struct wharf_gpu_hold *hold, uint64_t now_ns)
{
    struct wharf_gpu_memory *memory = hold->memory;
    struct wharf_worker_message message = {
        .kind = memory->is_device  ? WHARF_WORKER_IMPORT
                : memory->is_model ? WHARF_WORKER_MODEL
                                   : WHARF_WORKER_REGISTER,
        .number = memory->number,
        .nbytes = memory->nbytes,
        .read_only = memory->read_only,
    };

    if (memory->n_stalls >= WHARF_GPU_MOST_STALLS) {
        memory->error = ETIMEDOUT;
        snprintf(memory->text, sizeof(memory->text), "GPUs could not register it in time");
        wharf_gpu_pins_refuse(backend, hold);
        return;
    }
    if (!has_room(backend, hold, now_ns) ||
        wharf_worker_link_send(&backend->link, &message, memory->fd) < 0)
        return;
    wharf_gpu_memory_set(backend->core, backend->gpu, memory, WHARF_GPU_MEMORY_ASKED);
    hold->is_promised = false;
    wharf_list_append(&backend->told.asked, &hold->answer_link);
    backend->told.n_asked++;
    if (!backend->told.silent_ns)
        wharf_gpu_pins_await(backend, now_ns);
}

/* ---- passes -------------------------------------------------------------------------------- */

/* Whether the worker has to release it: it is unused, or it is a victim and no piece on the GPU
 * names it. */
static bool must_go(const struct wharf_gpu_hold *hold)
{
    if (hold->is_forgotten)
        return false;
    if (hold->state == WHARF_GPU_MEMORY_LEAVING)
        return hold->n_pieces == 0;
    return hold->state == WHARF_GPU_MEMORY_READY && wharf_gpu_memory_is_dead(hold->memory);
}

static void tend_one(struct wharf_gpu_backend *backend, struct wharf_gpu_hold *hold,
                     uint64_t now_ns)
{
    struct wharf_gpu_pass *pass = &backend->told.pass;
    const struct wharf_gpu_memory *memory = hold->memory;
    uint64_t at_ns = due_ns(backend, hold);

    if (must_go(hold)) {
        if (pass->may_forget)
            forget(backend, hold);
        pass->has_dead |= !pass->may_forget;
        pass->dead_nbytes +=
            pass->may_forget || memory->is_device || !wharf_gpu_memory_is_dead(memory)
                ? 0
                : memory->nbytes;
    } else if (at_ns <= now_ns && backend->told.n_asked < MOST_ASKED) {
        ask(backend, hold, now_ns);
    } else if (at_ns > now_ns) {
        /* A banned tenant's memory is not waited for. */
        if (memory->tenant && now_ns < memory->tenant->gpu_trust.banned_until_ns)
            wharf_pin_set_promised(backend->core, hold->memory, false);
        pass->next_ns = at_ns < pass->next_ns ? at_ns : pass->next_ns;
    }
}

static void begin_pass(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_gpu_pass *pass = &backend->told.pass;
    uint64_t budget = backend->core->config.gpu_memory_nbytes;
    bool is_due = now_ns >= backend->told.forgotten_at_ns + FORGET_NS ||
                  pass->dead_nbytes > budget / FORGET_PART;
    /* Releasing needs all items to be done.  Those that are aside can take long: no more start, and
     * memory is released when the last one is done. */
    bool may_forget = is_due && backend->large.n_taken == 0 && backend->encode.n_taken == 0;

    backend->large.is_held = is_due && pass->has_dead && !pass->may_forget;

    *pass = (struct wharf_gpu_pass){
        .number = pass->number + 1,
        .is_under_way = true,
        .may_forget = may_forget,
        .next_ns = WHARF_NEVER,
    };
}

/* Continues a pass for a bounded number of entries, under the lock. */
static void look_at_some(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_gpu_pass *pass = &backend->told.pass;
    struct wharf_list *memories = &backend->view->memories;

    for (unsigned n = 0; n < MOST_LOOKS; n++) {
        struct wharf_gpu_hold *hold = WHARF_LIST_FIRST(memories, struct wharf_gpu_hold, link);
        /* Entries that are added meanwhile make the pass stale. */
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
    struct wharf_gpu_pass *pass = &backend->told.pass;

    wharf_core_enter_first(backend->core);
    if (!pass->is_under_way)
        begin_pass(backend, now_ns);
    look_at_some(backend, now_ns);
    wharf_core_leave(backend->core);
    if (pass->is_under_way || pass->is_stale)
        return now_ns;
    /* Entries that could not go in this pass go in the next one. */
    uint64_t dead_ns = (pass->may_forget ? now_ns : backend->told.forgotten_at_ns) + FORGET_NS;
    return pass->has_dead && dead_ns < pass->next_ns ? dead_ns : pass->next_ns;
}

/* Descriptors, perhaps the last ones of their memory; they are closed without the lock, this many
 * at a time. */
enum { MOST_CLOSED = 64 };
struct closing {
    int fds[MOST_CLOSED];
    unsigned n;
};

static void close_all(struct closing *closing)
{
    while (closing->n > 0)
        wharf_close_fd(closing->fds[--closing->n]);
}

void wharf_gpu_pins_retire(struct wharf_gpu_backend *backend)
{
    struct wharf_core *core = backend->core;
    struct closing closing = {.n = 0};

    do {
        close_all(&closing);
        wharf_core_enter(core);
        while (closing.n < MOST_CLOSED && !wharf_list_is_empty(&core->residency.unheld))
            closing.fds[closing.n++] = wharf_gpu_memory_free(
                WHARF_LIST_FIRST(&core->residency.unheld, struct wharf_gpu_memory, link));
        wharf_core_leave(core);
    } while (closing.n > 0);
}

/* Drops some holds that this pass has not visited; returns whether there may be more. */
static bool lose_some(struct wharf_gpu_backend *backend, struct closing *closing)
{
    struct wharf_list *memories = &backend->view->memories;

    for (unsigned n = 0; n < MOST_LOOKS && closing->n < MOST_CLOSED; n++) {
        struct wharf_gpu_hold *hold = WHARF_LIST_FIRST(memories, struct wharf_gpu_hold, link);
        if (!hold || hold->pass == backend->told.pass.number)
            return false;
        hold->pass = backend->told.pass.number;
        wharf_list_rotate(memories);
        hold->gone_ns = 0;
        hold->is_promised = false;
        int fd = wharf_gpu_pins_drop(backend, hold);
        if (fd >= 0)
            closing->fds[closing->n++] = fd;
    }
    return true;
}

void wharf_gpu_pins_lost(struct wharf_gpu_backend *backend)
{
    struct wharf_core *core = backend->core;
    struct closing closing = {.n = 0};
    bool is_more = true;

    backend->told.pass = (struct wharf_gpu_pass){.number = backend->told.pass.number + 1};
    while (is_more) {
        wharf_core_enter(core);
        is_more = lose_some(backend, &closing);
        wharf_core_leave(core);
        close_all(&closing);
    }
    wharf_core_enter(core);
    /* GPU memory that this worker was asked for may belong to another GPU. */
    core->fleet.gpus_wanted |= ~(1u << backend->gpu);
    wharf_core_leave(core);
    backend->told.n_asked = 0;
    backend->told.registering_ns = backend->told.silent_ns = 0;
}
