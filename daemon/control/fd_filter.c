/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fd_filter.c: asks the filter process for the descriptors of one client at a time.
 *
 * The connection whose packet the filter has is held.  If the time limit passes, the filter is
 * killed and replaced, the connection is closed, and the tenant pays for the killed process until
 * it is gone.  The queue is ordered by how much of the loop thread's time tenants have used, so
 * that one tenant does not delay others.
 */
#include "daemon/control/fd_filter.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/base/fair_queue.h"
#include "daemon/base/list.h"
#include "daemon/base/log.h"
#include "daemon/base/log_level.h"
#include "daemon/base/loop.h"
#include "daemon/control/connection.h"
#include "daemon/control/file_requests.h"
#include "daemon/core/limits.h"
#include "daemon/core/tenant.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/disposable/disposable.h"
#include "daemon/disposable/fd_filter_process.h"

struct wharf_fd_filter {
    struct wharf_server *server;
    struct wharf_fd_filter_process *process; /* the current process; NULL: none runs */
    bool is_busy;                            /* an answer is awaited */
    struct wharf_connection *asked; /* whose question it has; NULL if that connection ended */
    struct wharf_tenant *tenant;    /* whose; pinned */
    struct wharf_list queue;        /* connections that wait for their turn */
    struct wharf_list killed;
    struct wharf_timer timer;
};

/* About what a question and its answer take of the loop thread, outside of the tenant's turns. */
#define ANSWER_NS (20 * (uint64_t)WHARF_NS_PER_US)

static void on_answer(struct wharf_source *source, uint32_t ready);
static void ask_next(struct wharf_fd_filter *filter);
static void set_timer(struct wharf_fd_filter *filter);

/* ---- processes ----------------------------------------------------------------------------- */

/* Keeps a reference to the tenant while the answer is awaited, because the connection can end
 * meanwhile. */
static void set_asked(struct wharf_fd_filter *filter, struct wharf_connection *connection)
{
    struct wharf_core *core = &filter->server->core;

    wharf_core_enter(core);
    if (filter->tenant)
        wharf_tenant_unref(filter->tenant);
    filter->tenant = connection ? connection->tenant : NULL;
    if (filter->tenant)
        wharf_tenant_ref(filter->tenant);
    wharf_core_leave(core);
    filter->is_busy = connection != NULL;
    filter->asked = connection;
}

/* No answer will come: the packet is lost, and with it the connection. */
static struct wharf_connection *forget_asked(struct wharf_fd_filter *filter)
{
    struct wharf_connection *connection = filter->asked;

    wharf_timer_clear(filter->server->loop, &filter->timer);
    set_asked(filter, NULL);
    return connection;
}

/* The process failed through nobody's fault: the client can reconnect with its arena. */
static void part_with(struct wharf_connection *connection, bool was_up)
{
    if (connection)
        wharf_connection_part(connection,
                              was_up ? "the process that receives descriptors has ended: connect "
                                       "again"
                                     : "the process that receives descriptors does not start; "
                                       "the daemon's log says why");
}

static void on_exit_of_process(struct wharf_source *source, uint32_t ready)
{
    struct wharf_fd_filter_process *process =
        WHARF_LIST_ENTRY(source, struct wharf_fd_filter_process, exit_source);
    struct wharf_fd_filter *filter = process->context;

    (void)ready;
    if (filter->process == process) {
        filter->process = NULL;
        wharf_fd_filter_process_log_end(process);
        part_with(forget_asked(filter), process->is_up);
    } else {
        waitid(P_PIDFD, (id_t)source->fd, NULL, WEXITED);
    }
    wharf_core_enter(&filter->server->core);
    if (process->blamed)
        wharf_tenant_forget_hang(process->blamed);
    wharf_core_leave(&filter->server->core);
    wharf_fd_filter_process_free(process);
    ask_next(filter);
}

static int start(struct wharf_fd_filter *filter)
{
    return wharf_fd_filter_process_new(filter->server->loop, filter, on_answer, on_exit_of_process,
                                       &filter->process);
}

/* Asks it no more. */
static void retire(struct wharf_fd_filter *filter)
{
    struct wharf_fd_filter_process *process = WHARF_STEAL(filter->process);

    wharf_fd_filter_process_retire(process);
    wharf_list_append(&filter->killed, &process->link);
}

static uint64_t barred_ns(const struct wharf_fd_filter *filter)
{
    return wharf_config_barred_ns(&filter->server->config);
}

/* Whether the tenant's descriptors have hung too many filters; each hang makes all clients wait. */
static bool is_barred(const struct wharf_fd_filter *filter,
                      const struct wharf_connection *connection)
{
    struct wharf_core *core = &filter->server->core;
    const struct wharf_tenant *tenant = connection->tenant;

    wharf_core_enter(core);
    bool result = tenant->n_hung_filters >= WHARF_FD_FILTER_MOST_HUNG ||
                  (tenant->n_filter_hangs >= WHARF_FD_FILTER_MOST_HUNG &&
                   wharf_now_ns() - tenant->filter_hang_ns < barred_ns(filter));
    wharf_core_leave(core);
    return result;
}

/* An existing session may reconnect with its arena later, since another client may be the cause. */
static void refuse_barred(struct wharf_connection *connection)
{
    static const char text[] = "descriptors of this user have hung processes of the daemon";

    if (connection->session)
        wharf_connection_part(connection, text);
    else
        wharf_connection_refuse(
            connection, wharf_connection_is_over(connection, WHARF_LIMIT_HUNG_GATES), "%s", text);
}

/* Under the core lock. */
static void count_hang(const struct wharf_fd_filter *filter, struct wharf_tenant *tenant)
{
    uint64_t now_ns = wharf_now_ns();

    if (now_ns - tenant->filter_hang_ns >= barred_ns(filter))
        tenant->n_filter_hangs = 0;
    tenant->n_filter_hangs++;
    tenant->filter_hang_ns = now_ns;
    tenant->n_hung_filters++;
}

/* Replaces a filter that hangs in a client's descriptor.  The tenant pays for it until it is gone,
 * which can take as long as the client's file server likes. */
static void replace_hung(struct wharf_fd_filter *filter)
{
    struct wharf_fd_filter_process *process = filter->process;
    struct wharf_server *server = filter->server;

    wharf_log_client(WHARF_LOG_WARNING, &(struct wharf_log_fields){.tenant = filter->tenant->name},
                     "a descriptor hung the filter process %d, which is replaced",
                     (int)process->pid);
    retire(filter);
    wharf_core_enter(&server->core);
    process->blamed = filter->tenant;
    count_hang(filter, process->blamed);
    wharf_core_leave(&server->core);
    struct wharf_connection *connection = forget_asked(filter);
    /* A client that was stopped together with the filter, like a container, has sent nothing that
     * hangs; the first time this is assumed. */
    if (connection)
        wharf_connection_part(connection, "looking at the descriptor took too long: connect again");
}

/* Replaces a filter that has not started in time; no client is at fault. */
static void replace_late(struct wharf_fd_filter *filter)
{
    wharf_fd_filter_process_log_late();
    retire(filter);
    part_with(forget_asked(filter), false);
}

static void on_timeout(struct wharf_timer *timer)
{
    struct wharf_fd_filter *filter = WHARF_LIST_ENTRY(timer, struct wharf_fd_filter, timer);

    /* The answer may have come while this thread had no processor: the next turn takes it. */
    if (wharf_fd_filter_process_has_answered(filter->process)) {
        set_timer(filter);
        return;
    }
    if (filter->process->is_up)
        replace_hung(filter);
    else
        replace_late(filter);
    ask_next(filter);
}

/* ---- questions ----------------------------------------------------------------------------- */

/* Sets the time limit for the current question.  The start of a process does not count. */
static void set_timer(struct wharf_fd_filter *filter)
{
    uint64_t most_ns = filter->process->is_up ? filter->server->config.fd_filter_timeout_ns
                                              : WHARF_DISPOSABLE_START_NS;

    wharf_timer_set(filter->server->loop, &filter->timer, wharf_now_ns() + most_ns, on_timeout);
}

static int send_to_process(struct wharf_fd_filter *filter,
                           const struct wharf_connection *connection)
{
    struct wharf_fd_filter_question question = {.kind = connection->fd_filter_kind};
    int fds[2] = {connection->fd, -1};
    bool is_file = wharf_fd_filter_is_file(question.kind);
    int r = filter->process ? 0 : start(filter);

    if (r < 0)
        return r;
    if (is_file)
        fds[1] = wharf_files_socket(connection, &question.file);
    return wharf_control_send(filter->process->source.fd, (const uint8_t *)&question,
                              sizeof(question), fds, 1 + is_file, MSG_DONTWAIT);
}

static int ask(struct wharf_fd_filter *filter, struct wharf_connection *connection)
{
    int r = send_to_process(filter, connection);

    /* It has died; its pidfd was not reported yet. */
    if (r == -EPIPE || r == -ECONNRESET) {
        retire(filter);
        r = send_to_process(filter, connection);
    }
    if (r < 0)
        return r;
    set_asked(filter, connection);
    set_timer(filter);
    return 0;
}

/* The connection of the tenant that used the loop thread least, so that many connections that
 * register repeatedly do not delay another tenant. */
static struct wharf_connection *next_in_queue(const struct wharf_fd_filter *filter)
{
    struct wharf_connection *first = NULL;

    WHARF_LIST_FOR(link, &filter->queue)
    {
        struct wharf_connection *connection =
            WHARF_LIST_ENTRY(link, struct wharf_connection, fd_filter_link);
        if (!first ||
            wharf_fair_party_is_before(connection->tenant->loop_party, first->tenant->loop_party))
            first = connection;
    }
    return first;
}

static void ask_next(struct wharf_fd_filter *filter)
{
    struct wharf_connection *connection;

    while (!filter->is_busy && (connection = next_in_queue(filter))) {
        wharf_list_remove(&connection->fd_filter_link);
        /* It may have been queued before the others hung. */
        if (is_barred(filter, connection)) {
            refuse_barred(connection);
            continue;
        }
        int r = ask(filter, connection);
        if (r < 0) {
            wharf_log_client(WHARF_LOG_ERROR, &(struct wharf_log_fields){.error = -r},
                             "cannot start the filter, which receives descriptors");
            part_with(connection, false);
        }
    }
}

void wharf_fd_filter_ask(struct wharf_fd_filter *filter, struct wharf_connection *connection)
{
    if (is_barred(filter, connection)) {
        refuse_barred(connection);
        return;
    }
    wharf_connection_hold(connection, WHARF_HOLD_FD_FILTER);
    wharf_list_append(&filter->queue, &connection->fd_filter_link);
    ask_next(filter);
}

void wharf_fd_filter_forget(struct wharf_fd_filter *filter, struct wharf_connection *connection)
{
    wharf_list_remove(&connection->fd_filter_link);
    if (filter->asked == connection)
        filter->asked = NULL;
}

/* ---- answers ------------------------------------------------------------------------------- */

static const char *what_is_wrong(const struct wharf_fd_filter_answer *answer)
{
    if (answer->error)
        return "a packet with descriptors could not be received";
    if (answer->n_fds != 1)
        return "a request came with another number of descriptors than one";
    return NULL;
}

/* A refused descriptor is -1; the verdict has the reason. */
static void carry_out(struct wharf_fd_filter *filter, struct wharf_connection *connection,
                      const struct wharf_fd_filter_answer *answer, const uint8_t *packet, int fd)
{
    struct wharf_server *server = filter->server;
    const Wharf__Request *request;
    const char *wrong = what_is_wrong(answer);

    if (!wrong && (wharf_control_unpack_request(&server->memory, packet, answer->packet_nbytes,
                                                &request) < 0 ||
                   request->id == 0 || !wharf_request_wants_fd(request) ||
                   wharf_request_fd_filter_kind(connection, request) != connection->fd_filter_kind))
        wrong = "a packet changed while it was looked at";
    if (wrong) {
        wharf_connection_refuse(connection, EPROTO, "%s", wrong);
        return;
    }
    wharf_connection_release(connection, WHARF_HOLD_FD_FILTER);
    wharf_request_handle(connection, request, fd >= 0 ? fd : (int)answer->verdict);
}

/* Whether this is the unsolicited first answer. */
static bool is_greeting(const struct wharf_fd_filter_answer *answer)
{
    return answer->n_fds == 0 && answer->packet_nbytes == 0;
}

/* Returns 0 or an error: the process has ended, which its pidfd reports too, or its answer is
 * impossible. */
static int take_answer(struct wharf_fd_filter_process *process)
{
    struct wharf_fd_filter *filter = process->context;
    struct wharf_connection *connection = filter->asked;
    struct wharf_fd_filter_answer answer;
    WHARF_CLEANUP_FD int fd = -1;
    int r = wharf_fd_filter_process_receive(process, &answer, filter->server->packet, &fd);

    if (r < 0)
        return r;
    if (!process->is_up) {
        process->is_up = is_greeting(&answer);
        if (filter->is_busy)
            set_timer(filter);
        return process->is_up ? 0 : -EIO;
    }
    if (!filter->is_busy)
        return -EIO;
    wharf_timer_clear(filter->server->loop, &filter->timer);
    set_asked(filter, NULL);
    if (connection) {
        wharf_loop_charge(filter->server->loop, connection->tenant->loop_party, ANSWER_NS);
        carry_out(filter, connection, &answer, filter->server->packet, fd);
    }
    ask_next(filter);
    return 0;
}

static void on_answer(struct wharf_source *source, uint32_t ready)
{
    struct wharf_fd_filter_process *process =
        WHARF_LIST_ENTRY(source, struct wharf_fd_filter_process, source);
    int r = take_answer(process);

    (void)ready;
    if (r == 0 || r == -EAGAIN)
        return;
    kill(process->pid, SIGKILL);
    wharf_loop_want(process->loop, source, 0);
}

/* ---- beginning and end --------------------------------------------------------------------- */

int wharf_fd_filter_new(struct wharf_server *server, struct wharf_fd_filter **ret_fd_filter)
{
    struct wharf_fd_filter *filter = calloc(1, sizeof(*filter));

    if (!filter)
        return -ENOMEM;
    filter->server = server;
    wharf_list_init(&filter->queue);
    wharf_list_init(&filter->killed);
    int r = start(filter);
    if (r < 0) {
        wharf_log(WHARF_LOG_ERROR, &(struct wharf_log_fields){.error = -r},
                  "cannot start the filter, which receives descriptors");
        free(filter);
        return r;
    }
    *ret_fd_filter = filter;
    return 0;
}

int wharf_fd_filter_wait(struct wharf_fd_filter *filter)
{
    struct wharf_fd_filter_process *process = filter->process;
    struct pollfd answer = {.fd = process->source.fd, .events = POLLIN};
    int n = poll(&answer, 1, (int)(WHARF_DISPOSABLE_START_NS / WHARF_NS_PER_MS));

    if (n == 0)
        wharf_fd_filter_process_log_late();
    if (n <= 0)
        return n < 0 ? -errno : -ETIMEDOUT;
    int r = take_answer(process);
    if (r < 0) {
        kill(process->pid, SIGKILL);
        wharf_fd_filter_process_log_end(process);
    }
    return r;
}

void wharf_fd_filter_free(struct wharf_fd_filter *filter)
{
    if (!filter)
        return;
    wharf_timer_clear(filter->server->loop, &filter->timer);
    /* Does not wait for them, because they can hang. */
    if (filter->process) {
        kill(filter->process->pid, SIGKILL);
        wharf_fd_filter_process_free(filter->process);
    }
    WHARF_LIST_FOR(link, &filter->killed)
    wharf_fd_filter_process_free(WHARF_LIST_ENTRY(link, struct wharf_fd_filter_process, link));
    free(filter);
}
