/* SPDX-License-Identifier: Apache-2.0 */
/* server_loop.c: starting, draining and reloading what the loop thread owns; news of sessions. */
#include "daemon/control/server.h"
#include "daemon/control/server_reap.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/base/list.h"
#include "daemon/base/log.h"
#include "daemon/base/log_level.h"
#include "daemon/base/loop.h"
#include "daemon/base/machine.h"
#include "daemon/base/notify.h"
#include "daemon/control/connection.h"
#include "daemon/control/fd_filter.h"
#include "daemon/control/file_requests.h"
#include "daemon/control/kept_rings.h"
#include "daemon/control/listener.h"
#include "daemon/control/model.h"
#include "daemon/control/model_requests.h"
#include "daemon/control/observer.h"
#include "daemon/control/owner.h"
#include "daemon/control/reaper.h"
#include "daemon/control/refusals.h"
#include "daemon/control/scrape.h"
#include "daemon/control/stats_maker.h"
#include "daemon/core/backend.h"
#include "daemon/core/core.h"
#include "daemon/core/queues.h"
#include "daemon/core/session.h"
#include "daemon/core/session_events.h"
#include "daemon/core/tenant.h"
#include "daemon/core/totals.h"
#include "daemon/cpu/cpu_run.h"
#include "daemon/cpu/slices.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/session_end.h"
#include "daemon/disposable/closer_process.h"
#include "daemon/gpu/gpus.h"
#include "daemon/placement/gpu_memory.h"

/* How often a daemon that must not answer yet checks again. */
#define PROMISE_NS (10 * (uint64_t)WHARF_NS_PER_MS)

/* How often a draining daemon checks that its lock file still exists. */
#define RENEW_NS (100 * (uint64_t)WHARF_NS_PER_MS)

/* Sessions whose events are taken at once. */
#define MOST_NEWS 16

/* The time that a stop needs beside its jobs, mostly to free the memory of all sessions. */
#define STOP_NS (3 * (uint64_t)WHARF_NS_PER_S)

static void take_news(struct wharf_session *session, enum wharf_session_news news)
{
    struct wharf_connection *connection = session->connection;

    switch (news) {
    case WHARF_SESSION_IS_BROKEN:
        wharf_connection_refuse(connection, EPROTO, "an index of the ring left its bounds");
        break;
    case WHARF_SESSION_IS_DRAINED:
        wharf_connection_end(connection, false);
        break;
    case WHARF_SESSION_LOST_FILES:
        wharf_files_are_lost(connection);
        break;
    case WHARF_SESSION_HAS_DECIDED:
        wharf_request_decided(connection);
        break;
    case WHARF_SESSION_IS_FREE:
        wharf_connection_session_free(connection);
        break;
    }
}

/* Takes all events.  If many sessions end together, other work has turns in between. */
static void take_all_news(struct wharf_server *server)
{
    struct wharf_session *session;
    enum wharf_session_news news;

    for (unsigned n = 0; n < MOST_NEWS; n++) {
        wharf_core_enter(&server->core);
        session = wharf_core_next_news(&server->core, &news);
        wharf_core_leave(&server->core);
        if (!session)
            return;
        take_news(session, news);
    }
    wharf_loop_wake(server->loop);
}

static void on_deadline(struct wharf_timer *timer);

static void serve(struct wharf_server *server)
{
    uint64_t next_ns = wharf_core_serve(&server->core);

    wharf_timer_set(server->loop, &server->deadline_timer, next_ns, on_deadline);
    take_all_news(server);
}

static void on_deadline(struct wharf_timer *timer)
{
    serve(WHARF_LIST_ENTRY(timer, struct wharf_server, deadline_timer));
}

static void on_wake(void *context)
{
    struct wharf_server *server = context;

    wharf_server_take_reaped(server);
    wharf_model_take_made(server);
    wharf_stats_take_made(server);
    serve(server);
}

/* ---- tenants ------------------------------------------------------------------------------- */

static void set_tidy_timer(struct wharf_server *server);

/* Drops a few tenants in each turn of the loop, so that clients are not delayed. */
static void tidy(struct wharf_timer *timer)
{
    struct wharf_server *server = WHARF_LIST_ENTRY(timer, struct wharf_server, tidy_timer);
    uint64_t now_ns = wharf_now_ns();

    wharf_core_enter(&server->core);
    bool goes_on = wharf_tenants_tidy_on(&server->core.tenants, &server->config, now_ns);
    wharf_core_leave(&server->core);
    if (goes_on) {
        wharf_timer_set(server->loop, timer, wharf_now_ns(), tidy);
        return;
    }
    server->is_tidying = false;
    set_tidy_timer(server);
}

/* Drops idle tenants up to a tenth of keep_tenants_ns late, so that the timer is rare.  Without
 * idle tenants there is no timer. */
static void set_tidy_timer(struct wharf_server *server)
{
    const uint64_t least_ns = 10 * (uint64_t)WHARF_NS_PER_MS,
                   most_ns = 10 * (uint64_t)WHARF_NS_PER_S;
    uint64_t ns = server->config.keep_tenants_ns / 10;

    if (server->is_tidying || !wharf_tenants_has_idle(&server->core.tenants))
        return;
    ns = ns < least_ns ? least_ns : ns > most_ns ? most_ns : ns;
    server->is_tidying = true;
    wharf_timer_set(server->loop, &server->tidy_timer, wharf_now_ns() + ns, tidy);
}

/* ---- the promise --------------------------------------------------------------------------- */

static void look_for_promise(struct wharf_timer *timer)
{
    struct wharf_server *server = WHARF_LIST_ENTRY(timer, struct wharf_server, promise_timer);
    int r = wharf_promise_try(server);

    if (r == -EWOULDBLOCK) {
        wharf_timer_set(server->loop, timer, wharf_now_ns() + PROMISE_NS, look_for_promise);
        return;
    }
    if (r < 0) {
        wharf_log(WHARF_LOG_ERROR, &(struct wharf_log_fields){.error = -r},
                  "cannot lock out an earlier daemon");
        wharf_server_drain(server);
        return;
    }
    server->is_promised = true;
    WHARF_LIST_FOR(link, &server->connections)
    wharf_connection_greet(WHARF_LIST_ENTRY(link, struct wharf_connection, link));
    if (server->on_promised)
        server->on_promised(server);
}

/* Another daemon may start while this one drains. */
static void renew_promise(struct wharf_timer *timer)
{
    struct wharf_server *server = WHARF_LIST_ENTRY(timer, struct wharf_server, promise_timer);

    wharf_promise_renew(server);
    wharf_timer_set(server->loop, timer, wharf_now_ns() + RENEW_NS, renew_promise);
}

/* ---- drain --------------------------------------------------------------------------------- */

static void on_drain_timeout(struct wharf_timer *timer)
{
    struct wharf_server *server = WHARF_LIST_ENTRY(timer, struct wharf_server, drain_timer);

    wharf_log(WHARF_LOG_WARNING, NULL,
              "jobs are left undone after drain_timeout; their clients submit them again");
    server->is_over = true;
}

void wharf_server_drain(struct wharf_server *server)
{
    if (server->is_draining) {
        server->is_over = true;
        return;
    }
    server->is_draining = true;
    wharf_notify_stopping(server->config.drain_timeout_ns + STOP_NS);
    if (server->is_promised)
        renew_promise(&server->promise_timer);
    /* Before the listeners: once these let go of their path, the next daemon makes its sockets. */
    wharf_scraper_close(server->scraper);
    wharf_listeners_close(server);
    wharf_owners_end(server->owners);
    wharf_timer_set(server->loop, &server->drain_timer,
                    wharf_now_ns() + server->config.drain_timeout_ns, on_drain_timeout);
    WHARF_LIST_FOR(link, &server->connections)
    {
        struct wharf_connection *connection = WHARF_LIST_ENTRY(link, struct wharf_connection, link);
        if (!connection->session) {
            wharf_connection_part(connection, "the daemon is going down: connect again");
            continue;
        }
        wharf_core_enter(&server->core);
        bool drains = wharf_core_drain_session(&server->core, connection->session);
        wharf_core_leave(&server->core);
        if (!drains)
            wharf_connection_part(connection, "the daemon is going down: connect again");
    }
    if (server->n_connections == 0)
        server->is_over = true;
}

/* ---- configuration ------------------------------------------------------------------------- */

static void log_kept(const char *section, const char *key)
{
    wharf_log(WHARF_LOG_NOTICE, NULL, "[%s] %s takes effect when the daemon starts anew", section,
              key);
}

static int find_totals(const struct wharf_config *config, struct wharf_totals *ret_totals,
                       char *message, size_t message_nbytes)
{
    struct wharf_machine machine;

    wharf_machine_read(&machine);
    return wharf_totals_init(ret_totals, config, &machine, message, message_nbytes);
}

static void apply_config(struct wharf_server *server, const struct wharf_totals *totals)
{
    wharf_log_set_level((enum wharf_log_level)server->config.log_level);
    wharf_core_enter(&server->core);
    server->core.config = server->config;
    server->core.config.gpu_memory_nbytes = totals->pinned_nbytes;
    for (unsigned i = 0; i < WHARF_N_POOLS; i++)
        server->core.sched[i].slice_ns = server->config.slice_ns;
    wharf_tenants_reload(&server->core.tenants, &server->config);
    wharf_tenants_set_totals(&server->core.tenants, totals);
    wharf_core_leave(&server->core);
}

static double unix_now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void wharf_server_note_reload(struct wharf_server *server, bool is_good)
{
    double now_s = unix_now_s();

    wharf_core_enter(&server->core);
    server->core.has_bad_config = !is_good;
    if (is_good)
        server->core.configured_s = now_s;
    wharf_core_leave(&server->core);
}

int wharf_server_reload(struct wharf_server *server, struct wharf_config *next, char *message,
                        size_t message_nbytes)
{
    struct wharf_totals totals;
    int r = find_totals(next, &totals, message, message_nbytes);

    if (r < 0)
        return r;
    wharf_config_reload(&server->config, next, log_kept);
    apply_config(server, &totals);
    wharf_owners_reload(server->owners);
    return 0;
}

/* ---- beginning and end --------------------------------------------------------------------- */

/* Reports GPUs that were missing from the start: no worker ends for them, which would be logged. */
static void look_for_gpus(struct wharf_timer *timer)
{
    struct wharf_server *server = WHARF_LIST_ENTRY(timer, struct wharf_server, gpu_timer);

    wharf_core_enter(&server->core);
    uint32_t n_expected = wharf_gpus_expected(&server->core), n_up = wharf_gpus_up(&server->core);
    wharf_core_leave(&server->core);
    if (n_up < n_expected && !server->is_draining)
        wharf_log(WHARF_LOG_WARNING, NULL,
                  "of %u GPUs that are expected %u are up; [gpu] expected says how many there "
                  "should be",
                  (unsigned)n_expected, (unsigned)n_up);
}

static int make_loop(struct wharf_server *server)
{
    int r = -ENOSYS;

    if (server->config.io != WHARF_IO_EPOLL) {
        r = wharf_loop_new(WHARF_LOOP_URING, &server->loop);
        if (r < 0)
            wharf_log(server->config.io == WHARF_IO_URING ? WHARF_LOG_ERROR : WHARF_LOG_NOTICE,
                      &(struct wharf_log_fields){.error = -r}, "io_uring does not work here%s",
                      server->config.io == WHARF_IO_URING ? "" : ", so epoll is used");
    }
    if (r < 0 && server->config.io != WHARF_IO_URING)
        r = wharf_loop_new(WHARF_LOOP_EPOLL, &server->loop);
    return r;
}

static int start(struct wharf_server *server, const struct wharf_totals *totals)
{
    int r = make_loop(server);

    if (r < 0)
        return r;
    wharf_loop_on_wake(server->loop, on_wake, server);
    r = wharf_core_init(&server->core, &server->config, server->loop);
    if (r < 0)
        return r;
    wharf_list_init(&server->file_processes);
    server->core.started_s = server->core.configured_s = unix_now_s();
    apply_config(server, totals);
    r = wharf_reaper_new(server->loop, &server->reaper);
    if (r == 0)
        r = wharf_model_maker_new(&server->core, server->loop, &server->model_maker);
    if (r == 0)
        r = wharf_stats_maker_new(server, &server->stats_maker);
    if (r == 0)
        r = wharf_fd_filter_new(server, &server->filter);
    if (r == 0)
        r = wharf_closer_process_new(server->loop, &server->core, &server->closer_process);
    if (r == 0)
        r = wharf_owners_new(server, &server->owners);
    if (r == 0)
        r = wharf_cpu_backend.start(&server->core, &server->config);
    server->core.promise_fd = server->promise_fd;
    if (r == 0)
        r = wharf_gpus_start(&server->core, &server->config);
    if (r == 0)
        r = wharf_fd_filter_wait(server->filter);
    return r;
}

static const char *what_to_do(int r)
{
    switch (r) {
    case -EAGAIN:
        return " (more threads or processes are wanted than are allowed: TasksMax=, ulimit -u)";
    case -EMFILE:
        return " (more open files are wanted than are allowed: LimitNOFILE=, ulimit -n)";
    case -ENODEV:
        return " (the engine asked for is not there; with --engine auto jobs do without)";
    default:
        return "";
    }
}

int wharf_server_init(struct wharf_server *server, struct wharf_config *config)
{
    struct wharf_totals totals;
    char message[256];

    memset(server, 0, sizeof(*server));
    server->config = *config;
    wharf_config_init(config);
    server->started_ns = wharf_now_ns();
    server->promise_fd = server->path_fd = -1;
    wharf_list_init(&server->listeners);
    wharf_list_init(&server->connections);
    wharf_list_init(&server->kept_rings);
    wharf_list_init(&server->closing);
    wharf_machine_raise_open_files();
    int r = find_totals(&server->config, &totals, message, sizeof(message));
    if (r < 0) {
        wharf_log(WHARF_LOG_ERROR, NULL, "%s", message);
        return r;
    }
    wharf_observers_init(&server->observers, server->config.observer_group);
    r = wharf_listeners_open(server);
    if (r < 0)
        return r;
    r = start(server, &totals);
    if (r == 0)
        r = wharf_listeners_start(server);
    if (r == 0)
        r = wharf_scraper_new(server, &server->scraper);
    if (r < 0) {
        wharf_log(WHARF_LOG_ERROR, NULL, "cannot start: %s%s", strerrordesc_np(-r), what_to_do(r));
        return r;
    }
    if (!server->is_promised)
        look_for_promise(&server->promise_timer);
    wharf_timer_set(server->loop, &server->gpu_timer,
                    server->started_ns + server->config.gpu_start_timeout_ns, look_for_gpus);
    return 0;
}

static void end_closing(struct wharf_server *server)
{
    struct wharf_connection *connection;

    while ((connection = WHARF_LIST_FIRST(&server->closing, struct wharf_connection, doom_link)))
        wharf_connection_end_closing(connection);
}

/* Requests short time slices.  Success is the ordinary case and not logged. */
static void shorten_slices(void)
{
    int r = wharf_slices_shorten(WHARF_SLICE_LOOP_NS);

    if (r < 0)
        wharf_log(WHARF_LOG_INFO, &(struct wharf_log_fields){.error = -r},
                  "this kernel, or a filter of system calls, gives the daemon no short slices of "
                  "processors: while all of these are busy, clients may wait some ms longer");
}

int wharf_server_run(struct wharf_server *server)
{
    /* With short slices the loop answers doorbells soon, even if all processors are busy. */
    shorten_slices();
    while (!server->is_over) {
        int r = wharf_loop_turn(server->loop);
        if (r < 0)
            return r;
        end_closing(server);
        set_tidy_timer(server);
        wharf_refusals_say(server);
        if (server->wants_drain && !server->is_draining)
            wharf_server_drain(server);
    }
    return 0;
}

/* All connections are gone, or the process is about to end anyway. */
void wharf_server_deinit(struct wharf_server *server)
{
    wharf_scraper_free(server->scraper);
    wharf_listeners_close(server);
    wharf_stats_maker_free(server->stats_maker);
    /* Without a loop there is no core yet. */
    if (server->loop)
        wharf_gpus_stop(&server->core);
    /* Workers may wait for a file. */
    wharf_files_deinit(server);
    if (server->core.backend)
        server->core.backend->ops->stop(server->core.backend);
    wharf_cpu_buffer_deinit(&server->here.buffer);
    wharf_owners_free(server->owners);
    wharf_fd_filter_free(server->filter);
    wharf_closer_process_free(server->closer_process);
    wharf_model_maker_free(server->model_maker);
    wharf_reaper_free(server->reaper);
    wharf_kept_rings_free(server);
    if (server->loop) {
        wharf_core_deinit(&server->core);
        wharf_loop_free(server->loop);
    }
    wharf_close_fd(server->promise_fd);
    free(server->promise_path);
    wharf_config_deinit(&server->config);
}
