/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_pins.c: which memory of clients the worker has.  For a GPU that means pinned pages: up to the
 * budget, never on the path of a job.
 */
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

static void tell_session(struct wharf_front *front, struct wharf_session *session)
{
    if (session && session->state != WHARF_SESSION_DEAD)
        wharf_place_waiting(front, session);
}

/* Under the lock; returns the descriptor to be closed without it. */
static int free_entry(struct wharf_gpu_backend *backend, struct wharf_gpu_memory *memory)
{
    if (memory->state == WHARF_GPU_MEMORY_READY || memory->state == WHARF_GPU_MEMORY_ASKED)
        backend->pinned_nbytes -= memory->nbytes;
    return wharf_gpu_memory_free(memory);
}

/* ---- registering --------------------------------------------------------------------------- */

static bool wants_gpu_alone(const struct wharf_gpu_backend *backend,
                            const struct wharf_gpu_memory *memory)
{
    return memory->session && memory->session->engine == backend->engine;
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

    return backend->pinned_nbytes <= budget && memory->nbytes <= budget - backend->pinned_nbytes;
}

static void refuse(struct wharf_gpu_backend *backend, struct wharf_gpu_memory *memory)
{
    memory->state = WHARF_GPU_MEMORY_REFUSED;
    tell_session(backend->front, memory->session);
}

static void ask(struct wharf_gpu_backend *backend, struct wharf_gpu_memory *memory)
{
    struct wharf_worker_message message = {
        .kind = WHARF_WORKER_REGISTER,
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
    backend->pinned_nbytes += memory->nbytes;
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
        if (message->error)
            backend->pinned_nbytes -= memory->nbytes;
        if (message->error && !memory->session && !memory->is_spare)
            fd = free_entry(backend, memory);
        else
            tell_session(front, memory->session);
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
        else
            due->dead_nbytes += memory->nbytes;
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
    if (backend->dead_nbytes && backend->forgotten_at_ns + FORGET_NS < due.next_ns)
        due.next_ns = backend->forgotten_at_ns + FORGET_NS;
    return due.next_ns;
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
