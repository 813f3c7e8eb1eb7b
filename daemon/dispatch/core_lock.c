/* SPDX-License-Identifier: Apache-2.0 */
/*
 * core_lock.c: takes and releases the core lock.
 *
 * Under the lock, code only notes what has to follow: completions to publish, clients, workers and
 * the loop thread to wake, lines to log.  wharf_core_leave does that in this order: it publishes,
 * ensures that rings are polled, unlocks, and then makes the system calls.  So no thread waits for
 * another one's system call.
 */
#include "daemon/dispatch/core_lock.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/base/list.h"
#include "daemon/base/log.h"
#include "daemon/base/log_level.h"
#include "daemon/base/loop.h"
#include "daemon/core/core.h"
#include "daemon/core/publish.h"
#include "daemon/core/session.h"
#include "daemon/core/session_events.h"
#include "daemon/core/tenant.h"
#include "daemon/dispatch/intake.h"
#include "daemon/dispatch/starts.h"
#include "daemon/dispatch/suspend.h"
#include "proto/control.h"
#include "proto/relax.h"

/* How many sessions' clients are woken after the unlock; further ones are woken under the lock. */
#define MOST_WAKES 64

/* ---- the lock ------------------------------------------------------------------------------ */

struct wakes {
    struct {
        struct wharf_session *session;
        uint64_t kinds;
    } items[MOST_WAKES];
    uint32_t n;
    void *called[2];
    uint32_t n_called;
    uint32_t gpus; /* bits */
    bool loop;
    bool is_urgent; /* a client has got the completions that it waits for */
};

static void publish_all(struct wharf_core *core, struct wakes *wakes)
{
    WHARF_LIST_FOR(link, &core->unpublished)
    {
        struct wharf_session *session = WHARF_LIST_ENTRY(link, struct wharf_session, publish_link);
        wharf_list_remove(link);
        uint64_t kinds = wharf_ring_publish_completions(&session->ring);
        if (session->state == WHARF_SESSION_DRAINING && session->n_in_flight == 0)
            wharf_core_tell_loop(core, session);
        if (!kinds)
            continue;
        wakes->is_urgent |= session->activity.is_interactive;
        if (wakes->n == MOST_WAKES) {
            wharf_core_wake_client(session, kinds);
            continue;
        }
        session->n_pins++;
        wakes->items[wakes->n].session = session;
        wakes->items[wakes->n++].kinds = kinds;
    }
}

/* Messages logged under the lock wake the log writer only after the unlock. */
static void lock(struct wharf_core *core)
{
    if (pthread_mutex_trylock(&core->lock) != 0) {
        __atomic_fetch_add(&core->n_asleep, 1, __ATOMIC_RELAXED);
        pthread_mutex_lock(&core->lock);
        __atomic_fetch_sub(&core->n_asleep, 1, __ATOMIC_RELAXED);
    }
    wharf_log_hold();
}

static void unlock(struct wharf_core *core, struct wakes *wakes)
{
    wakes->loop = core->wake_loop;
    core->wake_loop = false;
    wakes->n_called = core->n_called;
    memcpy(wakes->called, core->called, core->n_called * sizeof(core->called[0]));
    core->n_called = 0;
    wakes->gpus = core->fleet.gpus_called;
    core->fleet.gpus_called = 0;
    pthread_mutex_unlock(&core->lock);
    wharf_log_let_go();
    /* Clients that sleep until they are answered come before workers, which may only watch. */
    if (wakes->n > 0)
        wharf_core_wake_client(wakes->items[0].session, wakes->items[0].kinds);
    for (uint32_t i = 0; i < wakes->n_called; i++)
        core->backend->ops->wake(wakes->called[i]);
    for (uint32_t bits = wakes->gpus; bits; bits &= bits - 1)
        eventfd_write(core->fleet.gpus[__builtin_ctz(bits)].wake_fd, 1);
    if (wakes->loop)
        wharf_loop_wake(core->loop);
}

/* How often a wharf-gpu thread tries the lock before it sleeps, and other threads let it go first:
 * for the time of a few holds of the lock. */
#define MOST_LOCK_LOOKS 400
#define MOST_POLITE_LOOKS 64

void wharf_core_enter(struct wharf_core *core)
{
    for (unsigned n = 0; n < MOST_POLITE_LOOKS; n++) {
        if (!__atomic_load_n(&core->n_gpus_coming, __ATOMIC_RELAXED))
            break;
        wharf_relax();
    }
    lock(core);
}

void wharf_core_enter_first(struct wharf_core *core)
{
    int r = EBUSY;

    __atomic_fetch_add(&core->n_gpus_coming, 1, __ATOMIC_RELAXED);
    for (unsigned n = 0; n < MOST_LOCK_LOOKS; n++) {
        r = pthread_mutex_trylock(&core->lock);
        if (r == 0)
            break;
        wharf_relax();
    }
    if (r != 0)
        pthread_mutex_lock(&core->lock);
    wharf_log_hold();
    __atomic_fetch_sub(&core->n_gpus_coming, 1, __ATOMIC_RELAXED);
}

/*
 * An unlock wakes a thread that sleeps for the lock, which then takes tens of microseconds to come.
 * A thread that polls again and again would have the lock back by then, nearly each time: beside a
 * tenant's endless no-ops others would wait for milliseconds.  Each sleeper gets the lock once
 * before the poller, so what it asks for next waits no longer.
 */
void wharf_core_enter_last(struct wharf_core *core, uint64_t most_ns)
{
    uint64_t since_ns = 0;

    while (__atomic_load_n(&core->n_asleep, __ATOMIC_RELAXED)) {
        uint64_t now_ns = wharf_now_ns();
        since_ns = since_ns ? since_ns : now_ns;
        if (now_ns - since_ns >= most_ns)
            break;
        /* It may want this very processor. */
        sched_yield();
    }
    wharf_core_enter(core);
}

void wharf_core_leave(struct wharf_core *core)
{
    struct wakes wakes;

    wakes.n = 0;
    wakes.is_urgent = false;
    wharf_core_before_unlock(core);
    publish_all(core, &wakes);
    unlock(core, &wakes);
    if (wakes.n == 0)
        return;
    for (uint32_t i = 1; i < wakes.n; i++)
        wharf_core_wake_client(wakes.items[i].session, wakes.items[i].kinds);
    if (wakes.is_urgent)
        __atomic_fetch_add(&core->n_urgent_wakes, 1, __ATOMIC_RELAXED);
    lock(core);
    for (uint32_t i = 0; i < wakes.n; i++) {
        wakes.items[i].session->n_pins--;
        wharf_core_release(core, wakes.items[i].session);
    }
    wakes.n = 0;
    unlock(core, &wakes);
}

/* Logs, once each time, that a tenant's memory blocks a worker.  Without the lock, since it can
 * take long. */
static void tell_blocked(const char *tenant_name)
{
    wharf_log_client(WHARF_LOG_WARNING, &(struct wharf_log_fields){.tenant = tenant_name},
                     "memory or a file of a client keeps a worker waiting");
}

uint64_t wharf_core_serve(struct wharf_core *core)
{
    char blocked[WHARF_CONFIG_NAME_NBYTES];

    wharf_core_enter(core);
    wharf_starts_woken(core);
    wharf_core_poll_rings(core);
    uint64_t next_ns = wharf_core_watch_over(core, wharf_now_ns());
    core->is_watched_over = next_ns != WHARF_NEVER;
    if (core->deadlines.root && core->deadlines.root->key < next_ns)
        next_ns = core->deadlines.root->key;
    uint64_t starts_ns = wharf_starts_next_ns(core, wharf_now_ns());
    if (starts_ns < next_ns)
        next_ns = starts_ns;
    core->loop_wakes_at_ns = next_ns;
    memcpy(blocked, core->newly_blocked, sizeof(blocked));
    core->newly_blocked[0] = 0;
    wharf_core_leave(core);
    if (blocked[0])
        tell_blocked(blocked);
    return next_ns;
}

int wharf_core_charge(struct wharf_core *core, struct wharf_tenant *tenant,
                      const struct wharf_use *use, const char **ret_text)
{
    wharf_core_enter(core);
    int r = wharf_tenant_charge(tenant, use, ret_text);
    wharf_core_leave(core);
    /* The loop thread logs it. */
    if (r < 0)
        wharf_loop_wake(core->loop);
    return r;
}

void wharf_core_give_back(struct wharf_core *core, struct wharf_tenant *tenant,
                          const struct wharf_use *use)
{
    wharf_core_enter(core);
    wharf_tenant_give_back(tenant, use);
    wharf_core_leave(core);
}
