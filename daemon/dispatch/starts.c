/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/dispatch/starts.h"

#include "daemon/base/clock.h"
#include "daemon/base/heap.h"
#include "daemon/base/list.h"
#include "daemon/core/core.h"
#include "daemon/core/job.h"
#include "daemon/core/session.h"
#include "daemon/dispatch/job_queue.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/place.h"
#include "daemon/placement/place_cost.h"
#include "daemon/schedule/unqueued_work.h"
#include "proto/ring_ops.h"

/* The most words for one hold of the lock, and for one session's turn. */
#define MOST_LOOKS 64
#define MOST_OF_SESSION 8

/* The charge for a look at one word. */
#define LOOK_NS 50

/* The loop thread's pause: a sixteenth of the time that the youngest job has waited, within these
 * limits. */
#define WAIT_PARTS 16
#define LEAST_PAUSE_NS (50 * (uint64_t)WHARF_NS_PER_US)
#define MOST_PAUSE_NS WHARF_NS_PER_MS

static bool is_set(const struct wharf_job *job)
{
    return wharf_start_is_set(wharf_ring_load_start(job->words->start_word),
                              job->words->start_serial);
}

static void hold(struct wharf_core *core, struct wharf_job *job, uint64_t now_ns)
{
    struct wharf_job_words *words = job->words;
    uint64_t timeout_ns = (uint64_t)job->submission.timeout_us * WHARF_NS_PER_US;

    words->is_held = true;
    words->is_start_limit = !timeout_ns || words->start_limit_ns < timeout_ns;
    wharf_heap_insert(&core->deadlines, &job->deadline,
                      job->taken_ns + (words->is_start_limit ? words->start_limit_ns : timeout_ns));
    wharf_place_hold(core, job);
    core->starts.newest_ns = now_ns;
    /* The GPU's thread is then awake when the job may start, and polls the word itself. */
    if (wharf_place_needs_gpu(job))
        core->fleet.gpus_wanted |= wharf_gpu_memory_owners(job);
    /* With other held jobs it may wake soon enough; not if these have waited for long. */
    if (core->loop_wakes_at_ns > now_ns + core->config.spin_ns + LEAST_PAUSE_NS)
        core->wake_loop = true;
}

void wharf_starts_take(struct wharf_core *core, struct wharf_job *job, uint64_t now_ns)
{
    if (is_set(job))
        wharf_core_queue_job(core, job, now_ns);
    else
        hold(core, job, now_ns);
}

/* ---- looking ------------------------------------------------------------------------------- */

static void let_begin(struct wharf_core *core, struct wharf_job *job, uint64_t now_ns)
{
    wharf_place_remove(core, job);
    wharf_heap_remove(&core->deadlines, &job->deadline);
    job->words->is_held = false;
    wharf_core_queue_job(core, job, now_ns);
}

/* Polls the session's next words.  Returns their number. */
static unsigned look_at(struct wharf_core *core, struct wharf_session *session, uint64_t now_ns,
                        bool *ret_found)
{
    struct wharf_list *held = &session->placing.held;
    const struct wharf_list *last = held->prev;
    bool is_last = wharf_list_is_empty(held);
    unsigned n = 0;

    while (!is_last && n < MOST_OF_SESSION) {
        struct wharf_job *job = WHARF_LIST_FIRST(held, struct wharf_job, link);
        is_last = &job->link == last;
        n++;
        if (is_set(job)) {
            let_begin(core, job, now_ns);
            *ret_found = true;
        } else {
            wharf_list_rotate(held);
        }
    }
    wharf_core_charge_unqueued(core, session, (int64_t)n * LOOK_NS);
    return n;
}

bool wharf_starts_look(struct wharf_core *core, uint64_t now_ns)
{
    struct wharf_list *sessions = &core->starts.sessions;
    const struct wharf_list *last = sessions->prev;
    bool is_last = wharf_list_is_empty(sessions), found = false;

    for (unsigned n = 0; n < MOST_LOOKS && !is_last;) {
        struct wharf_session *session =
            WHARF_LIST_FIRST(sessions, struct wharf_session, placing.held_link);
        is_last = &session->placing.held_link == last;
        n += 1 + look_at(core, session, now_ns, &found);
        wharf_list_remove(&session->placing.held_link);
        if (!wharf_list_is_empty(&session->placing.held))
            wharf_list_append(sessions, &session->placing.held_link);
    }
    return found;
}

/* ---- when ---------------------------------------------------------------------------------- */

bool wharf_starts_are_young(const struct wharf_core *core, uint64_t now_ns)
{
    return !wharf_list_is_empty(&core->starts.sessions) &&
           now_ns - core->starts.newest_ns < core->config.spin_ns;
}

uint64_t wharf_starts_next_ns(const struct wharf_core *core, uint64_t now_ns)
{
    uint64_t pause_ns = (now_ns - core->starts.newest_ns) / WAIT_PARTS;

    if (wharf_list_is_empty(&core->starts.sessions))
        return WHARF_NEVER;
    if (pause_ns < LEAST_PAUSE_NS)
        pause_ns = LEAST_PAUSE_NS;
    return now_ns + (pause_ns < MOST_PAUSE_NS ? pause_ns : MOST_PAUSE_NS);
}

bool wharf_starts_is_late(const struct wharf_job *job)
{
    return job->words && job->words->is_held && job->words->is_start_limit;
}
