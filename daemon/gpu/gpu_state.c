/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_state.c: changes the state of a GPU's backend. */
#include "daemon/gpu/gpu_state.h"

#include <pthread.h>

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/log.h"
#include "daemon/base/log_level.h"
#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/session.h"
#include "daemon/core/session_events.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/gpu/worker_link.h"
#include "daemon/placement/place.h"

/* Tells placement whether this engine exists: if not, sessions that ask for it are refused. */
static void tell_place(struct wharf_gpu_backend *backend)
{
    struct wharf_core *core = backend->core;
    const uint32_t own_bit = 1u << backend->gpu;

    core->fleet.gpus_up &= ~own_bit;
    if (backend->state == WHARF_GPU_UP) {
        core->fleet.gpus_up |= own_bit;
        __atomic_store_n(&core->fleet.gpu_engine, backend->engine, __ATOMIC_RELAXED);
        backend->view->n_ups++;
    }
    backend->view->may_come = backend->state != WHARF_GPU_ABSENT;
    if (!wharf_place_may_import(core))
        __atomic_store_n(&core->fleet.gpu_engine, WHARF_ENGINE_AUTO, __ATOMIC_RELAXED);
    core->nothing_fits = false;
}

void wharf_gpu_set_state(struct wharf_gpu_backend *backend, enum wharf_gpu_state state,
                         uint64_t now_ns)
{
    struct wharf_core *core = backend->core;

    backend->state = state;
    backend->life.since_ns = now_ns;
    wharf_core_enter(core);
    tell_place(backend);
    WHARF_LIST_FOR(link, &core->sessions)
    {
        struct wharf_session *session = WHARF_LIST_ENTRY(link, struct wharf_session, session_link);
        if (session->state == WHARF_SESSION_DEAD)
            continue;
        wharf_core_tell_cpu_only(core, session);
        if (session->n_device_regions > 0)
            wharf_core_tell_decided(core, session);
        wharf_place_look_again(core, session);
    }
    pthread_cond_broadcast(&core->fleet.gpus_changed);
    wharf_core_leave(core);
}

void wharf_gpu_begin_dying(struct wharf_gpu_backend *backend, uint64_t now_ns)
{
    if (backend->state == WHARF_GPU_DYING)
        return;
    wharf_gpu_set_state(backend, WHARF_GPU_DYING, now_ns);
    backend->take_done(backend, now_ns);
    backend->life.n_lost =
        backend->flight.n_items + backend->large.n_taken + backend->encode.n_taken;
}

void wharf_gpu_worker_kill(struct wharf_gpu_backend *backend, const char *why)
{
    if (backend->state == WHARF_GPU_DYING)
        return;
    wharf_log(WHARF_LOG_ERROR, NULL, "GPU %s: killing worker %d: %s", backend->name,
              (int)backend->link.pid, why);
    backend->life.was_killed = true;
    wharf_worker_link_kill(&backend->link);
    wharf_gpu_begin_dying(backend, wharf_now_ns());
}
