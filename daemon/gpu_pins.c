/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_pins.c: which memory of clients the worker has.  For a GPU that means pinned pages: up to the
 * budget, never on the path of a job.
 */
#include <stdio.h>

#include "daemon/cleanup.h"
#include "daemon/clock.h"
#include "daemon/front.h"
#include "daemon/gpu_memory.h"
#include "daemon/gpu_state.h"

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

/* Whether the worker has it, or was asked to. */
static bool is_with_worker(const struct wharf_gpu_memory *memory)
{
    return memory->state == WHARF_GPU_MEMORY_READY || memory->state == WHARF_GPU_MEMORY_ASKED;
}

/* What it takes of the budget. */
static uint64_t pinned_nbytes(const struct wharf_gpu_memory *memory)
{
    return memory->is_device ? 0 : memory->nbytes;
}

/* Under the lock; returns the descriptor to be closed without it. */
static int free_entry(struct wharf_gpu_backend *backend, struct wharf_gpu_memory *memory)
{
    if (is_with_worker(memory))
        backend->pinned_nbytes -= pinned_nbytes(memory);
    return wharf_gpu_memory_free(memory);
}

/* ---- registering --------------------------------------------------------------------------- */

/* Whether jobs can have no other engine: outputs in GPU memory have none either. */
static bool wants_gpu_alone(const struct wharf_gpu_backend *backend,
                            const struct wharf_gpu_memory *memory)
{
    return memory->session &&
           (memory->session->engine == backend->engine || memory->session->n_device_regions > 0);
}

/* When it is due to be pinned: WHARF_NEVER for who will not use it. */
static uint64_t due_ns(const struct wharf_gpu_backend *backend,
                       const struct wharf_gpu_memory *memory)
{
    if (memory->is_spare)
        return memory->state == WHARF_GPU_MEMORY_ABSENT ? 0 : WHARF_NEVER;
    if (!memory->session || memory->state != WHARF_GPU_MEMORY_ABSENT)
        return WHARF_NEVER;
    if (wants_gpu_alone(backend, memory))
        return 0;
    if (memory->session->engine != WHARF_ENGINE_AUTO)
        return WHARF_NEVER;
    return memory->since_ns + backend->front->config.gpu_pin_after_ns;
}

static bool fits(const struct wharf_gpu_backend *backend, const struct wharf_gpu_memory *memory)
{
    uint64_t budget = backend->front->config.gpu_memory_nbytes;

    if (memory->is_device)
        return true;
    return backend->pinned_nbytes <= budget && memory->nbytes <= budget - backend->pinned_nbytes;
}

static void refuse(struct wharf_gpu_backend *backend, struct wharf_gpu_memory *memory)
{
    memory->state = WHARF_GPU_MEMORY_REFUSED;
    tell_session(backend->front, memory);
}

static void ask(struct wharf_gpu_backend *backend, struct wharf_gpu_memory *memory)
{
    struct wharf_worker_message message = {
        .kind = memory->is_device  ? WHARF_WORKER_IMPORT
                : memory->is_model ? WHARF_WORKER_MODEL
                                   : WHARF_WORKER_REGISTER,
        .number = memory->number,
        .nbytes = memory->nbytes,
        .read_only = memory->read_only,
    };

    if (!fits(backend, memory)) {
        /* Who wants nothing but the GPU is told; others do without, until there is room. */
        if (wants_gpu_alone(backend, memory) && backend->dead_nbytes == 0)
            refuse(backend, memory);
        return;
    }
    if (wharf_worker_link_send(&backend->link, &message, memory->fd) < 0)
        return;
    memory->state = WHARF_GPU_MEMORY_ASKED;
    backend->n_asked++;
    backend->pinned_nbytes += pinned_nbytes(memory);
}

static struct wharf_gpu_memory *find(struct wharf_gpu_backend *backend, uint32_t number)
{
    WHARF_LIST_FOR(link, &backend->front->memories)
    {
        struct wharf_gpu_memory *memory = WHARF_LIST_ENTRY(link, struct wharf_gpu_memory, link);
        if (memory->number == number)
            return memory;
    }
    return NULL;
}

void wharf_gpu_pins_registered(struct wharf_gpu_backend *backend,
                               const struct wharf_worker_message *message)
{
    struct wharf_front *front = backend->front;
    WHARF_CLEANUP_FD int fd = -1;

    wharf_front_enter(front);
    struct wharf_gpu_memory *memory = find(backend, message->number);
    if (memory && memory->state == WHARF_GPU_MEMORY_ASKED) {
        backend->n_asked--;
        memory->address = message->address;
        memory->state = message->error ? WHARF_GPU_MEMORY_REFUSED : WHARF_GPU_MEMORY_READY;
        memory->error = message->error;
        snprintf(memory->text, sizeof(memory->text), "%.*s", (int)sizeof(memory->text) - 1,
                 message->error ? message->text : "");
        if (message->error)
            backend->pinned_nbytes -= pinned_nbytes(memory);
        if (message->error && !memory->session && !memory->is_spare)
            fd = free_entry(backend, memory);
        else
            tell_session(front, memory);
    }
    wharf_front_leave(front);
}

/* ---- letting go ---------------------------------------------------------------------------- */

static void forget(struct wharf_gpu_backend *backend, struct wharf_gpu_memory *memory)
{
    struct wharf_worker_message message = {
        .kind = WHARF_WORKER_FORGET,
        .number = memory->number,
    };

    if (wharf_worker_link_send(&backend->link, &message, -1) == 0)
        memory->is_forgotten = true;
}

void wharf_gpu_pins_forgotten(struct wharf_gpu_backend *backend,
                              const struct wharf_worker_message *message)
{
    struct wharf_front *front = backend->front;
    WHARF_CLEANUP_FD int fd = -1;

    wharf_front_enter(front);
    struct wharf_gpu_memory *memory = find(backend, message->number);
    if (memory && memory->is_forgotten)
        fd = free_entry(backend, memory);
    wharf_front_leave(front);
}

/* ---- both ---------------------------------------------------------------------------------- */

struct due {
    uint64_t next_ns;
    uint64_t dead_nbytes; /* that nobody uses and that stay for now */
    bool has_dead;        /* some is there that nobody uses */
    bool may_forget;
};

static void tend_one(struct wharf_gpu_backend *backend, struct wharf_gpu_memory *memory,
                     uint64_t now_ns, struct due *due)
{
    uint64_t at_ns = due_ns(backend, memory);

    if (!memory->session && !memory->is_spare && !memory->is_forgotten &&
        memory->state == WHARF_GPU_MEMORY_READY) {
        if (due->may_forget)
            forget(backend, memory);
        due->has_dead |= !due->may_forget;
        due->dead_nbytes += due->may_forget ? 0 : pinned_nbytes(memory);
    } else if (at_ns <= now_ns && backend->n_asked < MOST_ASKED) {
        ask(backend, memory);
    } else if (at_ns > now_ns && at_ns < due->next_ns) {
        due->next_ns = at_ns;
    }
}

uint64_t wharf_gpu_pins_tend(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    struct wharf_front *front = backend->front;
    struct due due = {.next_ns = WHARF_NEVER};
    unsigned n = 0;

    wharf_front_enter_first(front);
    due.may_forget = now_ns - backend->forgotten_at_ns >= FORGET_NS ||
                     backend->dead_nbytes > front->config.gpu_memory_nbytes / FORGET_PART;
    if (due.may_forget)
        backend->forgotten_at_ns = now_ns;
    struct wharf_list *first = front->memories.next;
    while (first != &front->memories && n < MOST_LOOKS) {
        struct wharf_gpu_memory *memory =
            WHARF_LIST_FIRST(&front->memories, struct wharf_gpu_memory, link);
        wharf_list_rotate(&front->memories);
        tend_one(backend, memory, now_ns, &due);
        n++;
        if (front->memories.next == first)
            break;
    }
    backend->dead_nbytes = due.dead_nbytes;
    front->gpu_view.pinned_nbytes = backend->pinned_nbytes;
    /* The others at once. */
    if (n == MOST_LOOKS)
        due.next_ns = now_ns;
    wharf_front_leave(front);
    if (due.has_dead && backend->forgotten_at_ns + FORGET_NS < due.next_ns)
        due.next_ns = backend->forgotten_at_ns + FORGET_NS;
    return due.next_ns;
}

/* A device's descriptor may be the last one of its memory: closed without the lock. */
void wharf_gpu_pins_bury(struct wharf_gpu_backend *backend)
{
    struct wharf_front *front = backend->front;
    struct wharf_gpu_memory *dead;

    do {
        WHARF_CLEANUP_FD int fd = -1;
        dead = NULL;
        wharf_front_enter(front);
        WHARF_LIST_FOR(link, &front->memories)
        {
            struct wharf_gpu_memory *memory = WHARF_LIST_ENTRY(link, struct wharf_gpu_memory, link);
            if (memory->is_device && !memory->session && !is_with_worker(memory)) {
                dead = memory;
                fd = free_entry(backend, memory);
                break;
            }
        }
        wharf_front_leave(front);
    } while (dead);
}

void wharf_gpu_pins_lost(struct wharf_gpu_backend *backend)
{
    struct wharf_front *front = backend->front;
    bool is_more = true;

    while (is_more) {
        int fd = -1;
        is_more = false;
        wharf_front_enter(front);
        WHARF_LIST_FOR(link, &front->memories)
        {
            struct wharf_gpu_memory *memory = WHARF_LIST_ENTRY(link, struct wharf_gpu_memory, link);
            if (!memory->session && !memory->is_spare) {
                fd = free_entry(backend, memory);
                is_more = true;
                break;
            }
            memory->state = WHARF_GPU_MEMORY_ABSENT;
        }
        wharf_front_leave(front);
        wharf_close_fd(fd);
    }
    backend->pinned_nbytes = backend->dead_nbytes = 0;
    backend->n_asked = 0;
}
