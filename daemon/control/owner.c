/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner.c: finds the tenant of a new client.
 *
 * A state machine for each waiting socket: its uid is replaced by its owner step by step, from the
 * cache or by asking a disposable process (owner_process.h), until the tenant is known.  Sockets
 * that wait for the same uid share one question.  Up to MOST_ASKED questions are asked at a time,
 * so that one slow look-up does not delay others; a process that exceeds its time is killed and
 * replaced.  Sockets for which there is no room to wait, and most of them while look-ups hang, fall
 * back to the last known owner, or the tenant `unknown`.  So those who are known are always let in.
 */
#include "daemon/control/owner.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/base/list.h"
#include "daemon/base/log.h"
#include "daemon/base/log_level.h"
#include "daemon/base/loop.h"
#include "daemon/base/machine.h"
#include "daemon/control/connection.h"
#include "daemon/control/connection_accept.h"
#include "daemon/control/member_cache.h"
#include "daemon/control/owner_cache.h"
#include "daemon/control/owner_known.h"
#include "daemon/core/tenant.h"
#include "daemon/core/totals.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/disposable/disposable.h"
#include "daemon/disposable/owner_lookup.h"
#include "daemon/disposable/owner_process.h"

/* The most killed processes that have not ended; beyond that no more are started. */
#define MOST_KILLED 8

/* Questions at a time, so that one slow look-up does not delay others. */
#define MOST_ASKED 4

/* A uid that is looked up, and the sockets that wait for the answer. */
struct question {
    struct wharf_list link;
    struct wharf_list arrivals;
    unsigned n_arrivals;
    enum wharf_owner_kind kind;
    uint64_t since_ns;
    uid_t uid;
    bool is_asked;
};

/* A process, started when needed, and its question. */
struct asker {
    struct wharf_owners *owners;
    struct wharf_owner_process *process;
    struct question *question; /* NULL: nothing */
    struct wharf_timer timer;
};

/* A client's socket. */
struct arrival {
    struct wharf_list link;
    int fd;
    uid_t uid;
    pid_t pid;
    struct wharf_owner_walk walk; /* from that uid */
};

struct wharf_owners {
    struct wharf_server *server;
    struct wharf_owner_known known;
    uid_t *old; /* tenants at the last reload, whose groups are looked up when no client waits */
    size_t n_old;
    struct asker askers[MOST_ASKED];
    struct wharf_list questions; /* as they came */
    struct wharf_owner_killed killed;
    unsigned n_waiting; /* sockets */
    unsigned most_waiting;
    bool is_hung; /* a look-up had no answer, and others have been under way since */
};

static void ask_next(struct wharf_owners *owners);

/* ---- sockets ------------------------------------------------------------------------------- */

static void let_in(struct wharf_owners *owners, const struct arrival *arrival, const char *group)
{
    wharf_connection_new(owners->server, arrival->fd, arrival->uid, arrival->pid,
                         arrival->walk.tenant, group);
}

static struct question *find_question(struct wharf_owners *owners, enum wharf_owner_kind kind,
                                      uid_t uid)
{
    WHARF_LIST_FOR(link, &owners->questions)
    {
        struct question *question = WHARF_LIST_ENTRY(link, struct question, link);
        if (question->uid == uid && question->kind == kind)
            return question;
    }
    return NULL;
}

static struct question *question_new(struct wharf_owners *owners, enum wharf_owner_kind kind,
                                     uid_t uid)
{
    struct question *question = calloc(1, sizeof(*question));

    if (!question)
        return NULL;
    question->kind = kind;
    question->uid = uid;
    question->since_ns = wharf_now_ns();
    wharf_list_init(&question->arrivals);
    wharf_list_append(&owners->questions, &question->link);
    return question;
}

static bool is_anybody_idle(const struct wharf_owners *owners)
{
    for (unsigned i = 0; i < MOST_ASKED; i++)
        if (!owners->askers[i].question)
            return true;
    return false;
}

/* One uid has half of the room.  While look-ups hang, a socket waits only if its uid is asked
 * about, or can be at once; and the uids that are asked about have parts of that half. */
static bool may_wait(const struct wharf_owners *owners, const struct question *question)
{
    unsigned most_of_one = owners->most_waiting / 2;

    if (owners->n_waiting >= owners->most_waiting)
        return false;
    if (!owners->is_hung)
        return !question || question->n_arrivals < most_of_one;
    return question ? question->is_asked && question->n_arrivals < most_of_one / MOST_ASKED
                    : is_anybody_idle(owners);
}

/* Queues a socket for the answer about a uid.  False: it may not wait, or there is no memory. */
static bool wait_for_answer(struct wharf_owners *owners, enum wharf_owner_kind kind,
                            const struct arrival *arrival)
{
    struct question *question = find_question(owners, kind, arrival->walk.at);

    if (!may_wait(owners, question))
        return false;
    question = question ? question : question_new(owners, kind, arrival->walk.at);
    struct arrival *kept = question ? malloc(sizeof(*kept)) : NULL;
    if (!kept)
        return false;
    *kept = *arrival;
    wharf_list_append(&question->arrivals, &kept->link);
    question->n_arrivals++;
    owners->n_waiting++;
    return true;
}

static bool is_user(const char *tenant)
{
    return strncmp(tenant, "uid:", 4) == 0;
}

/* The tenant is known: accepts the socket, or queues it for the tenant's group. */
static void go_on_as(struct wharf_owners *owners, struct arrival *arrival)
{
    const struct wharf_member *member =
        wharf_member_cache_find(&owners->known.members, arrival->walk.at, wharf_now_ns());

    if (owners->server->config.n_groups == 0 || !is_user(arrival->walk.tenant))
        let_in(owners, arrival, NULL);
    else if (member)
        let_in(owners, arrival, member->is_known ? member->group : NULL);
    else if (owners->server->is_draining || !wait_for_answer(owners, WHARF_OWNER_GROUP, arrival))
        let_in(owners, arrival, NULL);
}

/* Continues with a socket: accepts it, or queues it. */
static void go_on(struct wharf_owners *owners, struct arrival *arrival,
                  const struct wharf_owner_range *answer)
{
    if (wharf_owner_known_resolve(&owners->known, &arrival->walk, answer)) {
        go_on_as(owners, arrival);
    } else if (owners->server->is_draining || !wait_for_answer(owners, WHARF_OWNER_OF, arrival)) {
        wharf_owner_known_resolve_by_old(&owners->known, &arrival->walk);
        let_in(owners, arrival, NULL);
    }
}

/* A question, which is in no list any more, is settled and its answer remembered.  The waiting
 * sockets continue with that answer, even if it is outdated by now; and with `group`, NULL if it is
 * unknown. */
static void settle(struct wharf_owners *owners, struct question *question, const char *group)
{
    struct wharf_owner_range answer;

    if (question->kind == WHARF_OWNER_OF)
        answer = *wharf_owner_cache_find(&owners->known.cache, question->uid);
    WHARF_LIST_FOR(link, &question->arrivals)
    {
        struct arrival *arrival = WHARF_LIST_ENTRY(link, struct arrival, link);
        wharf_list_remove(link);
        owners->n_waiting--;
        if (question->kind == WHARF_OWNER_OF)
            go_on(owners, arrival, &answer);
        else
            let_in(owners, arrival, group);
        free(arrival);
    }
    free(question);
}

/* ---- answers ------------------------------------------------------------------------------- */

static void give_up(struct wharf_owners *owners, struct question *question)
{
    wharf_list_remove(&question->link);
    if (question->kind == WHARF_OWNER_OF)
        wharf_owner_known_add_failure(&owners->known, question->uid);
    else
        wharf_owner_known_add_group(&owners->known, question->uid,
                                    &(struct wharf_owner_answer){.error = -ETIMEDOUT});
    settle(owners, question, NULL);
}

/* Gives up all unasked questions that are older than `since`.  New ones can arrive meanwhile. */
static void give_up_unasked(struct wharf_owners *owners, uint64_t since_ns)
{
    struct wharf_list questions;

    wharf_list_init(&questions);
    WHARF_LIST_FOR(link, &owners->questions)
    {
        struct question *question = WHARF_LIST_ENTRY(link, struct question, link);
        if (question->is_asked || question->since_ns > since_ns)
            continue;
        wharf_list_remove(link);
        wharf_list_append(&questions, link);
    }
    WHARF_LIST_FOR(link, &questions)
    give_up(owners, WHARF_LIST_ENTRY(link, struct question, link));
}

static void give_up_all_unasked(struct wharf_owners *owners)
{
    owners->n_old = 0;
    give_up_unasked(owners, WHARF_NEVER);
}

static void log_no_answer(const char *why)
{
    wharf_log_client(
        WHARF_LOG_WARNING, NULL,
        "who owns the uids of new clients, or which groups they are in, is not known: the process "
        "that looks that up %s",
        why);
}

/* Kills the asker's process.  Returns its question, which is now unasked; or NULL.  `tell` is
 * called at the process's end. */
static struct question *stop_process(struct asker *asker, void (*tell)(const char *end))
{
    struct question *question = WHARF_STEAL(asker->question);

    wharf_timer_clear(asker->owners->server->loop, &asker->timer);
    if (asker->process)
        wharf_owner_process_kill(WHARF_STEAL(asker->process), tell);
    if (question)
        question->is_asked = false;
    return question;
}

static void set_timer(struct asker *asker);

static void on_timeout(struct wharf_timer *timer)
{
    struct asker *asker = WHARF_LIST_ENTRY(timer, struct asker, timer);
    struct wharf_owners *owners = asker->owners;
    uint64_t now_ns = wharf_now_ns(), timeout_ns = owners->server->config.owners.lookup_timeout_ns;

    /* The answer may have come while this thread had no processor: the next turn takes it. */
    if (wharf_owner_process_has_answered(asker->process)) {
        set_timer(asker);
        return;
    }
    log_no_answer(asker->process->is_up ? "does not answer within lookup_timeout"
                                        : "does not start");
    struct question *question = stop_process(asker, NULL);
    owners->is_hung = true;
    if (wharf_list_is_empty(&question->arrivals))
        owners->n_old = 0;
    give_up(owners, question);
    /* Questions that waited as long for their turn are given up too. */
    give_up_unasked(owners, now_ns > timeout_ns ? now_ns - timeout_ns : 0);
    ask_next(owners);
}

static void set_timer(struct asker *asker)
{
    struct wharf_server *server = asker->owners->server;
    uint64_t most_ns =
        asker->process->is_up ? server->config.owners.lookup_timeout_ns : WHARF_DISPOSABLE_START_NS;

    wharf_timer_set(server->loop, &asker->timer, wharf_now_ns() + most_ns, on_timeout);
}

static void take_answer(struct asker *asker, const struct wharf_owner_answer *answer)
{
    struct wharf_owners *owners = asker->owners;
    struct question *question = WHARF_STEAL(asker->question);
    const char *group = NULL;

    wharf_timer_clear(owners->server->loop, &asker->timer);
    wharf_list_remove(&question->link);
    /* No other question waits. */
    owners->is_hung &= !wharf_list_is_empty(&owners->questions);
    if (question->kind == WHARF_OWNER_OF)
        wharf_owner_known_add(&owners->known, question->uid, answer);
    else
        group = wharf_owner_known_add_group(&owners->known, question->uid, answer);
    settle(owners, question, group);
}

/* A process ended, or sent an impossible answer; the next one is started when it is needed. */
static void lose(struct asker *asker)
{
    struct wharf_owners *owners = asker->owners;

    struct question *question = stop_process(asker, log_no_answer);
    if (!question)
        return;
    give_up(owners, question);
    give_up_all_unasked(owners);
}

static void on_answer(struct wharf_source *source, uint32_t ready)
{
    struct wharf_owner_process *process =
        WHARF_LIST_ENTRY(source, struct wharf_owner_process, source);
    struct asker *asker = process->context;
    struct wharf_owners *owners = asker->owners;
    struct wharf_owner_answer answer;
    int r = wharf_owner_process_receive(process, &answer);

    (void)ready;
    if (r == -EAGAIN)
        return;
    if (r == 0 && asker->question)
        set_timer(asker);
    else if (r > 0 && asker->question)
        take_answer(asker, &answer);
    else if (r != 0)
        lose(asker);
    ask_next(owners);
}

/* ---- questions ----------------------------------------------------------------------------- */

static int start_process(struct asker *asker)
{
    struct wharf_owners *owners = asker->owners;
    const struct wharf_config_owners *config = &owners->server->config.owners;
    struct wharf_owner_files files;

    if (owners->killed.n >= MOST_KILLED)
        return -EAGAIN;
    memcpy(files.subuid, config->subuid, sizeof(files.subuid));
    memcpy(files.passwd, config->passwd, sizeof(files.passwd));
    memcpy(files.group, config->group, sizeof(files.group));
    memset(files.groups, 0, sizeof(files.groups));
    files.n_groups = (uint32_t)owners->server->config.n_groups;
    for (uint32_t i = 0; i < files.n_groups; i++)
        memcpy(files.groups[i], owners->server->config.groups[i].name, sizeof(files.groups[i]));
    return wharf_owner_process_new(owners->server->loop, &files, on_answer, asker, &owners->killed,
                                   &asker->process);
}

static int ask(struct asker *asker, struct question *question)
{
    int r = asker->process ? 0 : start_process(asker);

    if (r == 0)
        r = wharf_owner_process_ask(asker->process, question->kind, question->uid);
    if (r < 0)
        return r;
    asker->question = question;
    question->is_asked = true;
    set_timer(asker);
    return 0;
}

/* An idle asker, preferably with a process; NULL: all are busy. */
static struct asker *find_idle(struct wharf_owners *owners, unsigned *ret_n_busy)
{
    struct asker *idle = NULL;

    *ret_n_busy = 0;
    for (unsigned i = 0; i < MOST_ASKED; i++) {
        struct asker *asker = &owners->askers[i];
        if (asker->question)
            ++*ret_n_busy;
        else if (!idle || (asker->process && !idle->process))
            idle = asker;
    }
    return idle;
}

/* The next question: of waiting sockets first, then one existing tenant at a time.  NULL: none. */
static struct question *next_question(struct wharf_owners *owners)
{
    if (wharf_list_is_empty(&owners->questions) && owners->n_old > 0)
        question_new(owners, WHARF_OWNER_GROUP, owners->old[--owners->n_old]);
    WHARF_LIST_FOR(link, &owners->questions)
    {
        struct question *question = WHARF_LIST_ENTRY(link, struct question, link);
        if (!question->is_asked)
            return question;
    }
    return NULL;
}

static void ask_next(struct wharf_owners *owners)
{
    struct question *question;
    struct asker *asker;
    unsigned n_busy;

    while ((question = next_question(owners)) && (asker = find_idle(owners, &n_busy))) {
        if (ask(asker, question) == 0)
            continue;
        if (!asker->process)
            log_no_answer("cannot be started");
        stop_process(asker, log_no_answer);
        /* Busy askers get their turn later. */
        if (n_busy > 0)
            return;
        give_up_all_unasked(owners);
    }
}

void wharf_owners_admit(struct wharf_owners *owners, int fd, uid_t uid, pid_t pid)
{
    struct arrival arrival = {.fd = fd, .uid = uid, .pid = pid, .walk = {.at = uid}};

    go_on(owners, &arrival, NULL);
    ask_next(owners);
}

/* ---- beginning and end --------------------------------------------------------------------- */

/* Queues look-ups of the groups of all tenants that are users.  Out of memory, they keep their
 * group until they connect again. */
static void list_tenants(struct wharf_owners *owners)
{
    struct wharf_core *core = &owners->server->core;

    free(owners->old);
    owners->old = NULL;
    owners->n_old = 0;
    if (owners->server->config.n_groups == 0)
        return;
    wharf_core_enter(core);
    size_t n = core->tenants.n;
    wharf_core_leave(core);
    owners->old = calloc(n, sizeof(*owners->old));
    if (!owners->old)
        return;
    /* Only this thread creates and drops tenants. */
    wharf_core_enter(core);
    WHARF_LIST_FOR(link, &core->tenants.list)
    {
        const struct wharf_tenant *tenant = WHARF_LIST_ENTRY(link, struct wharf_tenant, link);
        if (is_user(tenant->name) && owners->n_old < n)
            owners->old[owners->n_old++] = (uid_t)strtoul(tenant->name + 4, NULL, 10);
    }
    wharf_core_leave(core);
}

/* Asks current questions again, by the new settings; old answers stay valid until the new ones
 * arrive. */
void wharf_owners_reload(struct wharf_owners *owners)
{
    wharf_owner_known_reload(&owners->known);
    list_tenants(owners);
    for (unsigned i = 0; i < MOST_ASKED; i++)
        stop_process(&owners->askers[i], NULL);
    ask_next(owners);
}

void wharf_owners_end(struct wharf_owners *owners)
{
    for (unsigned i = 0; i < MOST_ASKED; i++)
        stop_process(&owners->askers[i], NULL);
    give_up_all_unasked(owners);
}

int wharf_owners_new(struct wharf_server *server, struct wharf_owners **ret_owners)
{
    struct wharf_owners *owners = calloc(1, sizeof(*owners));
    struct wharf_machine machine;

    if (!owners)
        return -ENOMEM;
    owners->server = server;
    wharf_machine_read(&machine);
    owners->most_waiting = (unsigned)wharf_totals_waiting_sockets(&machine);
    for (unsigned i = 0; i < MOST_ASKED; i++)
        owners->askers[i].owners = owners;
    wharf_list_init(&owners->questions);
    wharf_list_init(&owners->killed.list);
    int r = wharf_owner_known_init(&owners->known, server);
    if (r == 0)
        r = start_process(&owners->askers[0]);
    if (r < 0) {
        wharf_log(WHARF_LOG_ERROR, &(struct wharf_log_fields){.error = -r},
                  "cannot start the process that looks up owners of uids");
        wharf_owners_free(owners);
        return r;
    }
    *ret_owners = owners;
    return 0;
}

/* The daemon's exit closes the waiting sockets. */
void wharf_owners_free(struct wharf_owners *owners)
{
    if (!owners)
        return;
    for (unsigned i = 0; i < MOST_ASKED; i++) {
        wharf_timer_clear(owners->server->loop, &owners->askers[i].timer);
        wharf_owner_process_free(owners->askers[i].process);
    }
    WHARF_LIST_FOR(link, &owners->killed.list)
    wharf_owner_process_free(WHARF_LIST_ENTRY(link, struct wharf_owner_process, link));
    WHARF_LIST_FOR(link, &owners->questions)
    {
        struct question *question = WHARF_LIST_ENTRY(link, struct question, link);
        WHARF_LIST_FOR(other, &question->arrivals)
        free(WHARF_LIST_ENTRY(other, struct arrival, link));
        free(question);
    }
    wharf_owner_known_deinit(&owners->known);
    free(owners->old);
    free(owners);
}
