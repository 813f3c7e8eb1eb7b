/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/dispatch/starts.h"

#include "daemon/base/clock.h"
#include "daemon/base/heap.h"
#include "daemon/base/list.h"
#include "daemon/base/loop.h"
#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/job.h"
#include "daemon/core/session.h"
#include "daemon/core/tenant.h"
#include "daemon/dispatch/job_queue.h"
#include "daemon/placement/gpu_memory.h"
#include "daemon/placement/place.h"
#include "daemon/placement/place_cost.h"
#include "daemon/schedule/unqueued_work.h"
#include "proto/ring_ops.h"

/* The most words, roughly, for one hold of the lock, those of a session's turn, and tenants. */
#define MOST_LOOKS 64
#define MOST_OF_SESSION 8
#define MOST_TENANTS 8

/* The price of a look at one word. */
#define LOOK_NS 50

/* The price of waking the loop thread, or a GPU's, for words: system calls and the lock. */
#define WAKE_NS 15000

/* The longest time that one poll of a thread that polls for words counts as: others may have used
 * its processor meanwhile. */
#define MOST_SPIN_NS 5000

/* The loop thread's pause: a sixteenth of the time that the tenant's youngest job has waited,
 * within these limits. */
#define WAIT_PARTS 16
#define LEAST_PAUSE_NS (50 * (uint64_t)WHARF_NS_PER_US)
#define MOST_PAUSE_NS WHARF_NS_PER_MS

/* What polling one tenant's words may cost: this part of a processor, and so much at once. */
#define BUDGET_PART 16
#define MOST_BUDGET_NS (10 * (int64_t)WHARF_NS_PER_MS)
#define MOST_OVERDRAWN_NS (int64_t) WHARF_NS_PER_MS

static bool is_set(const struct wharf_job *job)
{
    return wharf_start_is_set(wharf_ring_load_start(job->words->start_word),
                              job->words->start_serial);
}

/* ---- what polling may cost ----------------------------------------------------------------- */

static int64_t budget_ns(const struct wharf_tenant_starts *starts, uint64_t now_ns)
{
    uint64_t most_ns = (uint64_t)(MOST_BUDGET_NS - starts->left_ns);
    uint64_t more_ns =
        now_ns > starts->left_at_ns ? (now_ns - starts->left_at_ns) / BUDGET_PART : 0;

    return starts->left_ns + (int64_t)(more_ns < most_ns ? more_ns : most_ns);
}

/* A session of the tenant caused so much polling. */
static void pay(struct wharf_core *core, struct wharf_session *session, int64_t used_ns,
                uint64_t now_ns)
{
    struct wharf_tenant_starts *starts = &session->tenant->starts;
    int64_t left_ns = budget_ns(starts, now_ns) - used_ns;

    wharf_core_charge_unqueued(core, session, used_ns);
    starts->left_ns = left_ns > -MOST_OVERDRAWN_NS ? left_ns : -MOST_OVERDRAWN_NS;
    starts->left_at_ns = now_ns;
    if (left_ns <= 0)
        wharf_list_remove(&starts->young);
}

/* Whether jobs want all processors. */
static bool is_crowded(const struct wharf_core *core)
{
    const struct wharf_worker_counts *workers = &core->workers;

    return workers->n_sleeping == 0 && (wharf_place_n_for_cpu(core) > 0 ||
                                        workers->n_short + workers->n_long >= workers->n_workers);
}

/* ---- when ---------------------------------------------------------------------------------- */

static bool is_young(const struct wharf_core *core, const struct wharf_tenant_starts *starts,
                     uint64_t now_ns)
{
    return wharf_list_is_linked(&starts->young) &&
           now_ns - starts->newest_ns < core->config.spin_ns;
}

bool wharf_starts_are_young(const struct wharf_core *core, uint64_t now_ns)
{
    const struct wharf_list *young = &core->starts.young;

    return !wharf_list_is_empty(young) &&
           is_young(core, WHARF_LIST_ENTRY(young->prev, struct wharf_tenant_starts, young), now_ns);
}

bool wharf_starts_is_young(const struct wharf_core *core, const struct wharf_tenant *tenant,
                           uint64_t now_ns)
{
    return is_young(core, &tenant->starts, now_ns);
}

/* When the tenant's words are polled next, after a look at them.  The longest pauses of all tenants
 * end together, so that many tenants need no more wake-ups than one. */
static uint64_t next_look_ns(const struct wharf_core *core,
                             const struct wharf_tenant_starts *starts, uint64_t now_ns)
{
    uint64_t pause_ns = (now_ns - starts->newest_ns) / WAIT_PARTS;

    if (is_young(core, starts, now_ns))
        return now_ns + 1;
    if (pause_ns >= MOST_PAUSE_NS || budget_ns(starts, now_ns) <= 0)
        return (now_ns / MOST_PAUSE_NS + 1) * MOST_PAUSE_NS;
    return now_ns + (pause_ns > LEAST_PAUSE_NS ? pause_ns : LEAST_PAUSE_NS);
}

uint64_t wharf_starts_next_ns(const struct wharf_core *core, uint64_t now_ns)
{
    const struct wharf_heap_node *first = core->starts.looks.root;

    if (!first)
        return WHARF_NEVER;
    return first->key > now_ns + LEAST_PAUSE_NS ? first->key : now_ns + LEAST_PAUSE_NS;
}

bool wharf_starts_is_late(const struct wharf_job *job)
{
    return job->words && job->words->is_held && job->words->is_start_limit;
}

void wharf_starts_expired(struct wharf_core *core, const struct wharf_job *job, uint64_t now_ns)
{
    if (job->words && job->words->is_held)
        pay(core, job->session, WAKE_NS, now_ns);
}

/* ---- holding ------------------------------------------------------------------------------- */

static void look_at(struct wharf_core *core, struct wharf_tenant_starts *starts, uint64_t at_ns)
{
    wharf_heap_remove(&core->starts.looks, &starts->look);
    wharf_heap_insert(&core->starts.looks, &starts->look, at_ns);
}

/* A job has begun to wait.  Returns when the loop thread has to poll the tenant's words at the
 * latest, if no other thread does. */
static uint64_t begin_looks(struct wharf_core *core, struct wharf_tenant_starts *starts,
                            uint64_t now_ns)
{
    starts->newest_ns = now_ns;
    wharf_list_remove(&starts->young);
    if (budget_ns(starts, now_ns) > 0) {
        wharf_list_append(&core->starts.young, &starts->young);
        look_at(core, starts, now_ns + 1);
        return now_ns + core->config.spin_ns + LEAST_PAUSE_NS;
    }
    /* New jobs bring the next look no nearer. */
    if (!starts->look.is_linked)
        look_at(core, starts, next_look_ns(core, starts, now_ns));
    return starts->look.key;
}

/* When to end a job that should wait until then.  Without a budget for wake-ups, jobs end
 * together. */
static uint64_t end_ns(const struct wharf_tenant_starts *starts, uint64_t at_ns, uint64_t now_ns)
{
    if (budget_ns(starts, now_ns) > 0)
        return at_ns;
    return (at_ns / MOST_PAUSE_NS + 1) * MOST_PAUSE_NS;
}

/* The GPU's thread is then awake when the job may start, and polls the word itself. */
static void wake_gpus(struct wharf_core *core, const struct wharf_job *job, uint64_t now_ns)
{
    uint32_t gpus = wharf_gpu_memory_owners(job);

    core->fleet.gpus_wanted |= gpus;
    if (core->fleet.gpus_asleep & gpus)
        pay(core, job->session, WAKE_NS, now_ns);
}

static void hold(struct wharf_core *core, struct wharf_job *job, uint64_t now_ns)
{
    struct wharf_tenant_starts *starts = &job->session->tenant->starts;
    struct wharf_job_words *words = job->words;
    uint64_t limit_ns = (uint64_t)job->submission.timeout_us * WHARF_NS_PER_US;

    words->is_held = true;
    words->is_start_limit = !limit_ns || words->start_limit_ns < limit_ns;
    if (words->is_start_limit)
        limit_ns = words->start_limit_ns;
    wharf_heap_insert(&core->deadlines, &job->deadline,
                      end_ns(starts, job->taken_ns + limit_ns, now_ns));
    wharf_place_hold(core, job);
    uint64_t latest_ns = begin_looks(core, starts, now_ns);
    if (wharf_list_is_linked(&starts->young) && wharf_place_needs_gpu(job))
        wake_gpus(core, job, now_ns);
    /* With other held jobs it may wake soon enough; not if these have waited for long. */
    if (core->loop_wakes_at_ns > latest_ns && !core->wake_loop) {
        core->wake_loop = true;
        pay(core, job->session, WAKE_NS, now_ns);
    }
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

/* A tenant's part of a pass. */
struct part {
    struct wharf_tenant_starts *starts;
    struct wharf_session *last; /* whose words were polled last */
    struct wharf_list *end;     /* the last session of the tenant's to be visited; NULL: it was */
    bool has_found;             /* a job's word was set */
};

/* Polls the session's next words.  Returns their number. */
static unsigned look_at_session(struct wharf_core *core, struct part *part, uint64_t now_ns)
{
    struct wharf_list *held = &part->last->placing.held;
    const struct wharf_list *last = held->prev;
    bool is_last = false;
    unsigned n = 0;

    while (!is_last && n < MOST_OF_SESSION) {
        struct wharf_job *job = WHARF_LIST_FIRST(held, struct wharf_job, link);
        is_last = &job->link == last;
        n++;
        if (is_set(job)) {
            let_begin(core, job, now_ns);
            part->has_found = true;
        } else {
            wharf_list_rotate(held);
        }
    }
    pay(core, part->last, (int64_t)n * LOOK_NS, now_ns);
    return n;
}

/* Polls words of the tenant's next session.  Returns the price in looks. */
static unsigned look_at_next(struct wharf_core *core, struct part *part, uint64_t now_ns)
{
    struct wharf_list *sessions = &part->starts->sessions;
    struct wharf_list *link = sessions->next;

    if (link == part->end)
        part->end = NULL;
    wharf_list_rotate(sessions);
    part->last = WHARF_LIST_ENTRY(link, struct wharf_session, placing.held_link);
    return 1 + look_at_session(core, part, now_ns);
}

/* Takes tenants whose words are due. */
static unsigned take_due(struct wharf_core *core, struct part parts[MOST_TENANTS], uint64_t now_ns)
{
    struct wharf_heap_node *first;
    unsigned n = 0;

    while (n < MOST_TENANTS && (first = core->starts.looks.root) && first->key <= now_ns) {
        struct wharf_tenant_starts *starts =
            WHARF_LIST_ENTRY(first, struct wharf_tenant_starts, look);
        wharf_heap_remove(&core->starts.looks, first);
        parts[n++] = (struct part){.starts = starts, .end = starts->sessions.prev};
    }
    return n;
}

/* Tenants take turns, session by session, until all words were visited or enough. */
static void look_at_all(struct wharf_core *core, struct part *parts, unsigned n_parts,
                        uint64_t now_ns)
{
    unsigned n_looks = 0, n_left = n_parts;

    for (unsigned round = 0; n_left > 0 && n_looks < MOST_LOOKS; round++) {
        n_left = 0;
        for (unsigned i = 0; i < n_parts; i++) {
            /* All have one turn. */
            if (parts[i].end && (round == 0 || n_looks < MOST_LOOKS))
                n_looks += look_at_next(core, &parts[i], now_ns);
            n_left += parts[i].end != NULL;
        }
    }
}

/* The tenants whose words were due pay in equal parts for the threads that came for them. */
static void settle(struct wharf_core *core, const struct part *parts, unsigned n_parts,
                   bool was_crowded, uint64_t now_ns)
{
    uint64_t woken_ns = core->starts.woken_ns / n_parts;
    uint64_t each_ns = core->starts.spun_ns / n_parts + woken_ns;

    for (unsigned i = 0; i < n_parts; i++) {
        struct wharf_tenant_starts *starts = parts[i].starts;
        pay(core, parts[i].last, (int64_t)each_ns, now_ns);
        if (woken_ns > 0 && core->loop)
            wharf_loop_charge(core->loop, parts[i].last->tenant->loop_party, woken_ns);
        if (parts[i].has_found && !was_crowded)
            starts->left_ns = MOST_BUDGET_NS;
        if (!wharf_list_is_empty(&starts->sessions))
            look_at(core, starts, next_look_ns(core, starts, now_ns));
    }
}

bool wharf_starts_look(struct wharf_core *core, uint64_t now_ns)
{
    struct part parts[MOST_TENANTS];
    unsigned n_parts = take_due(core, parts, now_ns);
    bool found = false;

    if (n_parts > 0) {
        bool was_crowded = is_crowded(core);
        look_at_all(core, parts, n_parts, now_ns);
        settle(core, parts, n_parts, was_crowded, now_ns);
    }
    for (unsigned i = 0; i < n_parts; i++)
        found |= parts[i].has_found;
    core->starts.spun_ns = core->starts.woken_ns = 0;
    return found;
}

void wharf_starts_spun(struct wharf_core *core, uint64_t used_ns)
{
    core->starts.spun_ns += used_ns < MOST_SPIN_NS ? used_ns : MOST_SPIN_NS;
}

void wharf_starts_woken(struct wharf_core *core)
{
    core->starts.woken_ns = WAKE_NS;
}
