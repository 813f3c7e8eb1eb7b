/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sched.c: one scheduler, for the jobs of one pool.
 *
 * Deficit round robin (Shreedhar and Varghese, 1995) over tenants by weight and then over their
 * sessions, in each lane (turns.h).  A turn lasts until its quantum is used; a job that overdraws
 * it is paid for in later rounds.  So over time each tenant with work gets its share, whatever its
 * jobs take.
 */
#include "daemon/schedule/sched.h"

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/turns.h"
#include "daemon/core/job.h"
#include "daemon/core/queues.h"
#include "daemon/core/session.h"
#include "daemon/core/tenant.h"

/* The most tenants, and sessions of each, that are checked for a short job. */
#define MOST_LOOKS 64

/* A tenant owes at most this many of its quanta for unqueued work, since perhaps nobody else wanted
 * that time. */
#define MOST_UNQUEUED 4

/* ---- queues -------------------------------------------------------------------------------- */

static struct wharf_sched_tenant *of_tenant(const struct wharf_sched *sched,
                                            struct wharf_tenant *tenant)
{
    return &tenant->sched[sched->pool];
}

static struct wharf_sched_session *of_session(const struct wharf_sched *sched,
                                              struct wharf_session *session)
{
    return &session->sched[sched->pool];
}

/* What a turn adds to a tenant's deficit.  Proportional to the weight, so the time that tenants get
 * over many rounds is too.  Never 0: a tenant without quantum would be passed by for ever. */
static int64_t tenant_quantum_ns(const struct wharf_sched *sched, const struct wharf_tenant *tenant)
{
    int64_t quantum_ns = (int64_t)(sched->slice_ns * tenant->quota.weight / 100);

    return quantum_ns > 0 ? quantum_ns : 1;
}

/* Counts jobs that a session's queue has got, and gives session and tenant a turn if they had none.
 * What they owe from before stays owed (turns.h), so an empty queue now and then gains nothing. */
static void join(struct wharf_sched *sched, struct wharf_session *session, unsigned lane,
                 uint32_t n_jobs, uint64_t backlog_ns)
{
    struct wharf_sched_tenant *tenant = of_tenant(sched, session->tenant);
    struct wharf_sched_session *own = of_session(sched, session);
    own->lane[lane].n_jobs += n_jobs;
    own->backlog_ns += backlog_ns;
    sched->n_queued += n_jobs;
    sched->backlog_ns += backlog_ns;
    wharf_turns_join(&tenant->lane[lane].sessions, &own->lane[lane].turn, (int64_t)sched->slice_ns);
    if (!session->tenant->is_suspended)
        wharf_turns_join(&sched->tenants[lane], &tenant->lane[lane].turn,
                         tenant_quantum_ns(sched, session->tenant));
}

/* The reverse.  Only an empty queue gives up its turn, and only a tenant without such queues: a
 * member without jobs would be a turn that nobody uses. */
static void leave(struct wharf_sched *sched, struct wharf_session *session, unsigned lane,
                  uint32_t n_jobs)
{
    struct wharf_sched_tenant *tenant = of_tenant(sched, session->tenant);
    struct wharf_sched_session *own = of_session(sched, session);

    own->lane[lane].n_jobs -= n_jobs;
    sched->n_queued -= n_jobs;
    if (own->lane[lane].n_jobs)
        return;
    wharf_turns_leave(&tenant->lane[lane].sessions, &own->lane[lane].turn);
    if (tenant->lane[lane].sessions.n_members == 0)
        wharf_turns_leave(&sched->tenants[lane], &tenant->lane[lane].turn);
}

void wharf_sched_push(struct wharf_sched *sched, struct wharf_job *job)
{
    wharf_list_append(&of_session(sched, job->session)->lane[job->lane].jobs, &job->link);
    join(sched, job->session, job->lane, 1, job->backlog_ns);
}

void wharf_sched_push_front(struct wharf_sched *sched, struct wharf_job *job)
{
    /* The end of the list that begins with the first element. */
    wharf_list_append(of_session(sched, job->session)->lane[job->lane].jobs.next, &job->link);
    join(sched, job->session, job->lane, 1, job->backlog_ns);
}

void wharf_sched_remove(struct wharf_sched *sched, struct wharf_job *job)
{
    wharf_list_remove(&job->link);
    wharf_sched_shrink(sched, job, job->backlog_ns);
    leave(sched, job->session, job->lane, 1);
}

void wharf_sched_shrink(struct wharf_sched *sched, struct wharf_job *job, uint64_t less_ns)
{
    if (less_ns > job->backlog_ns)
        less_ns = job->backlog_ns;
    job->backlog_ns -= less_ns;
    of_session(sched, job->session)->backlog_ns -= less_ns;
    sched->backlog_ns -= less_ns;
}

/* Appends a whole list to another one by its two ends: a session may have 32768 jobs, and the core
 * lock is held. */
static void move_all(struct wharf_list *to, struct wharf_list *from)
{
    if (wharf_list_is_empty(from))
        return;
    from->next->prev = to->prev;
    from->prev->next = to;
    to->prev->next = from->next;
    to->prev = from->prev;
    wharf_list_init(from);
}

void wharf_sched_take_all(struct wharf_sched *sched, struct wharf_session *session,
                          struct wharf_sched_bundle *bundle)
{
    struct wharf_sched_session *own = of_session(sched, session);

    bundle->n = own->lane[WHARF_LANE_NORMAL].n_jobs;
    bundle->backlog_ns = own->backlog_ns;
    move_all(&bundle->jobs, &own->lane[WHARF_LANE_NORMAL].jobs);
    sched->backlog_ns -= own->backlog_ns;
    own->backlog_ns = 0;
    leave(sched, session, WHARF_LANE_NORMAL, bundle->n);
}

void wharf_sched_give(struct wharf_sched *sched, struct wharf_session *session,
                      struct wharf_sched_bundle *bundle)
{
    if (bundle->n == 0)
        return;
    move_all(&of_session(sched, session)->lane[WHARF_LANE_NORMAL].jobs, &bundle->jobs);
    join(sched, session, WHARF_LANE_NORMAL, bundle->n, bundle->backlog_ns);
    bundle->n = 0;
    bundle->backlog_ns = 0;
}

void wharf_sched_drop(struct wharf_sched *sched, struct wharf_session *session)
{
    struct wharf_sched_session *own = of_session(sched, session);

    sched->backlog_ns -= own->backlog_ns;
    own->backlog_ns = 0;
    for (unsigned i = 0; i < WHARF_N_LANES; i++) {
        if (own->lane[i].n_jobs == 0)
            continue;
        wharf_list_init(&own->lane[i].jobs);
        leave(sched, session, i, own->lane[i].n_jobs);
    }
}

/* ---- choosing ------------------------------------------------------------------------------ */

/* From a turn to the struct that contains it, which has one for each lane. */
static struct wharf_sched_tenant *tenant_of(struct wharf_turn *turn, unsigned lane)
{
    char *start = (char *)turn - offsetof(struct wharf_sched_tenant, lane[0].turn) -
                  lane * sizeof(((struct wharf_sched_tenant *)0)->lane[0]);

    return (struct wharf_sched_tenant *)(void *)start;
}

static struct wharf_sched_session *session_of(struct wharf_turn *turn, unsigned lane)
{
    char *start = (char *)turn - offsetof(struct wharf_sched_session, lane[0].turn) -
                  lane * sizeof(((struct wharf_sched_session *)0)->lane[0]);

    return (struct wharf_sched_session *)(void *)start;
}

/* The plain case, in constant time: whose turn it is among tenants, then among that one's sessions,
 * and there the oldest job. */
static struct wharf_job *first_of_lane(struct wharf_sched *sched, unsigned lane)
{
    struct wharf_turn *turn = wharf_turns_first(&sched->tenants[lane]);

    if (!turn)
        return NULL;
    turn = wharf_turns_first(&tenant_of(turn, lane)->lane[lane].sessions);
    return WHARF_LIST_FIRST(&session_of(turn, lane)->lane[lane].jobs, struct wharf_job, link);
}

/* Among the good jobs at the head of a tenant's sessions' queues, the one whose turn is next: the
 * fewest rounds away.  Nothing is nearer than 0, so the first one of those ends the search. */
static struct wharf_job *good_of_tenant(struct wharf_turns *sessions, unsigned lane,
                                        wharf_sched_is_good *is_good, const void *context)
{
    struct wharf_job *best = NULL;
    uint64_t least = UINT64_MAX;
    unsigned n = 0;

    WHARF_LIST_FOR(link, &sessions->members)
    {
        struct wharf_turn *turn = WHARF_LIST_ENTRY(link, struct wharf_turn, link);
        struct wharf_job *job =
            WHARF_LIST_FIRST(&session_of(turn, lane)->lane[lane].jobs, struct wharf_job, link);
        uint64_t away = wharf_turns_away(sessions, turn);
        if (away < least && is_good(job, context)) {
            best = job;
            least = away;
        }
        if (least == 0 || ++n == MOST_LOOKS)
            break;
    }
    return best;
}

/*
 * Sessions without a good job do not use their quanta, so a session that has used its own would
 * wait for them forever.  So the good job whose turn is next is taken, and the rounds continue.
 */
struct wharf_job *wharf_sched_first_good(struct wharf_sched *sched, unsigned lane,
                                         wharf_sched_is_good *is_good, const void *context)
{
    struct wharf_turns *tenants = &sched->tenants[lane];
    struct wharf_job *best = NULL;
    uint64_t least = UINT64_MAX;
    unsigned n = 0;

    WHARF_LIST_FOR(link, &tenants->members)
    {
        struct wharf_turn *turn = WHARF_LIST_ENTRY(link, struct wharf_turn, link);
        struct wharf_turns *sessions = &tenant_of(turn, lane)->lane[lane].sessions;
        uint64_t away = wharf_turns_away(tenants, turn);
        struct wharf_job *job =
            away < least ? good_of_tenant(sessions, lane, is_good, context) : NULL;
        if (job) {
            best = job;
            least = away;
        } else {
            wharf_list_rotate(&sessions->members);
        }
        if (least == 0 || ++n == MOST_LOOKS)
            break;
    }
    /* The next search begins behind those that were checked, so that all are reached in time though
     * each search is bounded. */
    if (!best && n == MOST_LOOKS)
        for (; n > 0; n--)
            wharf_list_rotate(&tenants->members);
    return best;
}

static bool is_short(const struct wharf_job *job, const void *most_ns)
{
    return job->estimate_ns <= *(const uint64_t *)most_ns;
}

struct wharf_job *wharf_sched_first_of_lane(struct wharf_sched *sched, unsigned lane,
                                            uint64_t most_ns)
{
    return most_ns == WHARF_NEVER ? first_of_lane(sched, lane)
                                  : wharf_sched_first_good(sched, lane, is_short, &most_ns);
}

struct wharf_job *wharf_sched_first(struct wharf_sched *sched, uint64_t most_ns)
{
    struct wharf_job *job = NULL;

    for (unsigned lane = 0; lane < WHARF_N_LANES && !job; lane++)
        job = wharf_sched_first_of_lane(sched, lane, most_ns);
    return job;
}

/* The session's first normal job, if its turn may come now; else NULL. */
static struct wharf_job *first_of_session(struct wharf_turns *sessions,
                                          struct wharf_sched_session *session)
{
    if (wharf_turns_away(sessions, &session->lane[WHARF_LANE_NORMAL].turn) > 0)
        return NULL;
    return WHARF_LIST_FIRST(&session->lane[WHARF_LANE_NORMAL].jobs, struct wharf_job, link);
}

struct wharf_job *wharf_sched_first_of_good(struct wharf_sched *sched, struct wharf_tenant *tenant,
                                            struct wharf_session *first,
                                            bool (*is_good)(const struct wharf_core *core,
                                                            const struct wharf_session *session),
                                            const struct wharf_core *core)
{
    struct wharf_turns *sessions = &of_tenant(sched, tenant)->lane[WHARF_LANE_NORMAL].sessions;
    struct wharf_job *job = first ? first_of_session(sessions, of_session(sched, first)) : NULL;
    unsigned n = 0;

    if (job && is_good(core, job->session))
        return job;
    WHARF_LIST_FOR(link, &sessions->members)
    {
        struct wharf_turn *turn = WHARF_LIST_ENTRY(link, struct wharf_turn, link);
        job = first_of_session(sessions, session_of(turn, WHARF_LANE_NORMAL));
        if (job && is_good(core, job->session))
            return job;
        if (++n == MOST_LOOKS)
            break;
    }
    return NULL;
}

/* Looks for jobs that have waited too long, one queue a call.  So the turn is passed on in both
 * rounds, or the same queue would be looked at until it is served. */
struct wharf_job *wharf_sched_background(struct wharf_sched *sched)
{
    struct wharf_turns *tenants = &sched->tenants[WHARF_LANE_BACKGROUND];
    struct wharf_turn *turn = WHARF_LIST_FIRST(&tenants->members, struct wharf_turn, link);

    if (!turn)
        return NULL;
    struct wharf_turns *sessions =
        &tenant_of(turn, WHARF_LANE_BACKGROUND)->lane[WHARF_LANE_BACKGROUND].sessions;
    struct wharf_turn *session_turn = WHARF_LIST_FIRST(&sessions->members, struct wharf_turn, link);
    struct wharf_sched_session *session = session_of(session_turn, WHARF_LANE_BACKGROUND);
    wharf_turns_skip(sessions, session_turn);
    wharf_turns_skip(tenants, turn);
    return WHARF_LIST_FIRST(&session->lane[WHARF_LANE_BACKGROUND].jobs, struct wharf_job, link);
}

/* Charges both rounds, of the tenant's sessions and of all tenants. */
static void charge_lane(struct wharf_sched *sched, struct wharf_session *session, unsigned lane,
                        int64_t used_ns)
{
    struct wharf_sched_session *own = of_session(sched, session);
    struct wharf_sched_tenant *tenant = of_tenant(sched, session->tenant);

    wharf_turns_charge(&tenant->lane[lane].sessions, &own->lane[lane].turn, used_ns);
    wharf_turns_charge(&sched->tenants[lane], &tenant->lane[lane].turn, used_ns);
    /* Interactive jobs also count against the tenant's share. */
    if (lane == WHARF_LANE_INTERACTIVE)
        wharf_turns_charge(&sched->tenants[WHARF_LANE_NORMAL],
                           &tenant->lane[WHARF_LANE_NORMAL].turn, used_ns);
}

void wharf_sched_charge(struct wharf_sched *sched, struct wharf_job *job, int64_t used_ns)
{
    charge_lane(sched, job->session, job->lane, used_ns);
}

void wharf_sched_charge_normal(struct wharf_sched *sched, struct wharf_session *session,
                               int64_t used_ns)
{
    charge_lane(sched, session, WHARF_LANE_NORMAL, used_ns);
}

void wharf_sched_charge_unqueued(struct wharf_sched *sched, struct wharf_session *session,
                                 int64_t used_ns)
{
    const struct wharf_turn *turn =
        &of_tenant(sched, session->tenant)->lane[WHARF_LANE_NORMAL].turn;

    if (turn->deficit_ns > -MOST_UNQUEUED * tenant_quantum_ns(sched, session->tenant))
        charge_lane(sched, session, WHARF_LANE_NORMAL, used_ns);
}

void wharf_sched_suspend(struct wharf_sched *sched, struct wharf_tenant *tenant)
{
    for (unsigned i = 0; i < WHARF_N_LANES; i++)
        wharf_turns_leave(&sched->tenants[i], &of_tenant(sched, tenant)->lane[i].turn);
}

void wharf_sched_resume(struct wharf_sched *sched, struct wharf_tenant *tenant)
{
    struct wharf_sched_tenant *own = of_tenant(sched, tenant);

    for (unsigned i = 0; i < WHARF_N_LANES; i++)
        if (own->lane[i].sessions.n_members > 0)
            wharf_turns_join(&sched->tenants[i], &own->lane[i].turn,
                             tenant_quantum_ns(sched, tenant));
}

uint32_t wharf_sched_n_tenants(const struct wharf_sched *sched, enum wharf_lane lane)
{
    return sched->tenants[lane].n_members;
}
