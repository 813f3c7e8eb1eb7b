/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_blocked.c: finds workers that are blocked in a client's memory, and replaces them.
 *
 * A page of a client's memory can take as long as the client likes: while the client punches a hole
 * there, every access waits.  A client's file can block too, up to file_timeout.  A spare worker
 * replaces a blocked one, and the tenant is suspended (suspend.h).  When no spare worker is left,
 * waits for files are cut short (file_io.h).
 *
 * A worker counts as blocked when the kernel says twice in a row that its thread waits, and its
 * system call is not one for a lock.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/core/backend.h"
#include "daemon/core/core.h"
#include "daemon/cpu/cpu_state.h"
#include "daemon/dispatch/suspend.h"

/* How often busy workers are checked, and how often those that did not poll the rings since. */
#define LOOK_NS (10 * (uint64_t)WHARF_NS_PER_MS)
#define LOOK_AGAIN_NS (2 * (uint64_t)WHARF_NS_PER_MS)

/* Reads a file of /proc about the worker's thread, as far as there is room; false: it cannot be
 * read. */
static bool read_file_of(const struct wharf_cpu_worker *worker, const char *name, char text[],
                         size_t text_nbytes)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/task/%d/%s", (int)worker->tid, name);
    WHARF_CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t nbytes = fd < 0 ? -1 : read(fd, text, text_nbytes - 1);
    if (nbytes < 0)
        return false;
    text[nbytes] = 0;
    return true;
}

/* Whether the thread waits, and not for a processor. */
static bool waits(const struct wharf_cpu_worker *worker)
{
    char text[64 + 1];

    if (!read_file_of(worker, "stat", text, sizeof(text)))
        return false;
    /* "4711 (name) S ..." */
    const char *end = strrchr(text, ')');
    return end && end[1] == ' ' && (end[2] == 'S' || end[2] == 'D');
}

/* Whether it waits for something else than a lock or another thread.  The kernel reports its system
 * call, -1 for a page fault, or that it runs now. */
static bool waits_for_memory(const struct wharf_cpu_worker *worker)
{
    char text[64 + 1];

    if (!waits(worker))
        return false;
    if (!read_file_of(worker, "syscall", text, sizeof(text)))
        return true;
    return text[0] != 'r' && strtol(text, NULL, 10) != SYS_futex;
}

/* A worker that waits for helpers is blocked if one of them is.  A worker that waits for a file
 * does so at a futex. */
static bool is_kept_waiting(const struct wharf_cpu_worker *worker)
{
    if (__atomic_load_n(&worker->waits_for_file, __ATOMIC_RELAXED))
        return waits(worker);
    return worker->waits_for_helpers ? worker->tenant->n_blocked > 0 && waits(worker)
                                     : waits_for_memory(worker);
}

/* ---- a worker ------------------------------------------------------------------------------ */

static void stick(struct wharf_cpu_worker *worker, uint64_t now_ns)
{
    struct wharf_core *core = worker->backend->core;

    __atomic_store_n(&worker->is_blocked, true, __ATOMIC_RELAXED);
    worker->lease.is_blocked = true;
    core->workers.n_blocked++;
    /* It does not count as a worker that will poll the rings. */
    core->workers.n_short -= !worker->counts_long;
    core->workers.n_long += !worker->counts_long;
    core->workers.n_brief -= worker->counts_brief;
    worker->counts_long = true;
    worker->counts_brief = false;
    core->nothing_fits = false;
    wharf_core_suspend(core, worker->tenant, now_ns);
}

void wharf_cpu_unstick(struct wharf_cpu_worker *worker)
{
    __atomic_store_n(&worker->is_blocked, false, __ATOMIC_RELAXED);
    worker->lease.is_blocked = false;
    worker->backend->core->workers.n_blocked--;
    wharf_core_unsuspend(worker->backend->core, worker->tenant, wharf_now_ns());
}

uint64_t wharf_cpu_begin(struct wharf_cpu_worker *worker, struct wharf_tenant *tenant, bool is_long,
                         bool is_brief)
{
    struct wharf_core *core = worker->backend->core;

    core->workers.n_awake--;
    ++*(is_long ? &core->workers.n_long : &core->workers.n_short);
    core->workers.n_brief += is_brief;
    worker->counts_long = is_long;
    worker->counts_brief = is_brief;
    worker->tenant = tenant;
    worker->busy_since_ns = wharf_now_ns();
    return worker->busy_since_ns;
}

void wharf_cpu_end(struct wharf_cpu_worker *worker)
{
    struct wharf_core *core = worker->backend->core;

    if (worker->is_blocked)
        wharf_cpu_unstick(worker);
    worker->busy_since_ns = WHARF_NEVER;
    --*(worker->counts_long ? &core->workers.n_long : &core->workers.n_short);
    core->workers.n_brief -= worker->counts_brief;
    core->workers.n_awake++;
}

/* Checks a busy worker; returns when to check again. */
static uint64_t look_at(struct wharf_cpu_worker *worker, uint64_t now_ns)
{
    const struct wharf_core *core = worker->backend->core;
    uint64_t since_ns = worker->busy_since_ns;

    if (since_ns > now_ns || now_ns - since_ns < core->config.slice_ns + LOOK_NS)
        return now_ns + LOOK_NS;
    if (!is_kept_waiting(worker)) {
        worker->suspect_since_ns = 0;
        return now_ns + LOOK_NS;
    }
    /* One observation is no proof: ordinary page faults take a moment too. */
    if (worker->suspect_since_ns < since_ns) {
        worker->suspect_since_ns = now_ns;
        return now_ns + LOOK_AGAIN_NS;
    }
    if (now_ns - worker->suspect_since_ns < LOOK_AGAIN_NS)
        return worker->suspect_since_ns + LOOK_AGAIN_NS;
    stick(worker, now_ns);
    return now_ns + LOOK_NS;
}

uint64_t wharf_cpu_watch(struct wharf_backend *base, uint64_t now_ns)
{
    struct wharf_cpu_backend *backend = (struct wharf_cpu_backend *)base;
    struct wharf_core *core = backend->core;
    /* An awake worker may become busy without being called. */
    bool is_anybody_up = core->workers.n_sleeping < core->workers.n_workers;
    uint64_t next_ns = is_anybody_up ? now_ns + LOOK_NS : WHARF_NEVER;

    for (uint32_t i = 0; i < backend->n_threads; i++) {
        struct wharf_cpu_worker *worker = &backend->workers[i];
        if (worker->is_blocked || worker->busy_since_ns == WHARF_NEVER)
            continue;
        uint64_t again_ns = look_at(worker, now_ns);
        if (again_ns < next_ns)
            next_ns = again_ns;
    }
    __atomic_store_n(&core->is_short_of_workers, !backend->spare && core->workers.n_blocked > 0,
                     __ATOMIC_RELAXED);
    return next_ns;
}
