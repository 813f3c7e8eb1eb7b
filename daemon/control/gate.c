/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/gate.h"

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
#include "daemon/dispatch/front_lock.h"
#include "daemon/disposable/disposable.h"
#include "daemon/disposable/gate_process.h"

struct wharf_gate {
    struct wharf_server *server;
    struct wharf_gate_process *process; /* the one that is asked; NULL: none is running */
    bool is_busy;                       /* an answer is awaited */
    struct wharf_connection *asked;     /* for whom; NULL if it ended meanwhile */
    struct wharf_tenant *tenant;        /* whose; pinned */
    struct wharf_list queue;            /* connections that wait for their turn */
    struct wharf_list killed;
    struct wharf_timer timer;
};

/* What a question and its answer take of the loop thread, about: they come outside of its turns. */
#define ANSWER_NS (20 * (uint64_t)WHARF_NS_PER_US)

static void on_answer(struct wharf_source *source, uint32_t ready);
static void ask_next(struct wharf_gate *gate);
static void set_timer(struct wharf_gate *gate);

/* ---- processes ----------------------------------------------------------------------------- */

/* Whom the question is for must not be forgotten while the answer is awaited: the connection can
 * end meanwhile. */
static void set_asked(struct wharf_gate *gate, struct wharf_connection *connection)
{
    struct wharf_front *front = &gate->server->front;

    wharf_front_enter(front);
    if (gate->tenant)
        wharf_tenant_unref(gate->tenant);
    gate->tenant = connection ? connection->tenant : NULL;
    if (gate->tenant)
        wharf_tenant_ref(gate->tenant);
    wharf_front_leave(front);
    gate->is_busy = connection != NULL;
    gate->asked = connection;
}

/* No answer will come from it: its packet is lost, and with it the connection. */
static struct wharf_connection *forget_asked(struct wharf_gate *gate)
{
    struct wharf_connection *connection = gate->asked;

    wharf_timer_clear(gate->server->loop, &gate->timer);
    set_asked(gate, NULL);
    return connection;
}

/* The process is of no use, which is nobody's fault: the client can go on with its arena. */
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
    struct wharf_gate_process *process =
        WHARF_LIST_ENTRY(source, struct wharf_gate_process, exit_source);
    struct wharf_gate *gate = process->context;

    (void)ready;
    if (gate->process == process) {
        gate->process = NULL;
        wharf_gate_process_log_end(process);
        part_with(forget_asked(gate), process->is_up);
    } else {
        waitid(P_PIDFD, (id_t)source->fd, NULL, WEXITED);
    }
    wharf_front_enter(&gate->server->front);
    if (process->blamed)
        wharf_tenant_forget_hang(process->blamed);
    wharf_front_leave(&gate->server->front);
    wharf_gate_process_free(process);
    ask_next(gate);
}

static int start(struct wharf_gate *gate)
{
    return wharf_gate_process_new(gate->server->loop, gate, on_answer, on_exit_of_process,
                                  &gate->process);
}

/* Asks it no more. */
static void retire(struct wharf_gate *gate)
{
    struct wharf_gate_process *process = WHARF_STEAL(gate->process);

    wharf_gate_process_retire(process);
    wharf_list_append(&gate->killed, &process->link);
}

static uint64_t barred_ns(const struct wharf_gate *gate)
{
    return wharf_config_barred_ns(&gate->server->config);
}

/* Its descriptors have hung gates: while one does, everybody's have to wait. */
static bool is_barred(const struct wharf_gate *gate, const struct wharf_connection *connection)
{
    struct wharf_front *front = &gate->server->front;
    const struct wharf_tenant *tenant = connection->tenant;

    wharf_front_enter(front);
    bool result = tenant->n_hung_gates >= WHARF_GATE_MOST_HUNG ||
                  (tenant->n_gate_hangs >= WHARF_GATE_MOST_HUNG &&
                   wharf_now_ns() - tenant->gate_hang_ns < barred_ns(gate));
    wharf_front_leave(front);
    return result;
}

/* A session that is there can go on with its arena later: it need not be this client who did it. */
static void refuse_barred(struct wharf_connection *connection)
{
    static const char text[] = "descriptors of this user have hung processes of the daemon";

    if (connection->session)
        wharf_connection_part(connection, text);
    else
        wharf_connection_refuse(
            connection, wharf_connection_is_over(connection, WHARF_LIMIT_HUNG_GATES), "%s", text);
}

/* Under the front lock. */
static void count_hang(const struct wharf_gate *gate, struct wharf_tenant *tenant)
{
    uint64_t now_ns = wharf_now_ns();

    if (now_ns - tenant->gate_hang_ns >= barred_ns(gate))
        tenant->n_gate_hangs = 0;
    tenant->n_gate_hangs++;
    tenant->gate_hang_ns = now_ns;
    tenant->n_hung_gates++;
}

/* It hangs in what the client sent: another one takes its place.  It stays a debt of the tenant's
 * until it is gone, which can take as long as the client's file server likes. */
static void replace_hung(struct wharf_gate *gate)
{
    struct wharf_gate_process *process = gate->process;
    struct wharf_server *server = gate->server;

    wharf_log_client(WHARF_LOG_WARNING, &(struct wharf_log_fields){.tenant = gate->tenant->name},
                     "a descriptor hung the gate process %d, which is replaced", (int)process->pid);
    retire(gate);
    wharf_front_enter(&server->front);
    process->blamed = gate->tenant;
    count_hang(gate, process->blamed);
    wharf_front_leave(&server->front);
    struct wharf_connection *connection = forget_asked(gate);
    /* Who is stopped together with the gate, as containers are, has sent nothing that hangs: the
     * first time that may be so. */
    if (connection)
        wharf_connection_part(connection, "looking at the descriptor took too long: connect again");
}

/* It has not seen anything that a client sent. */
static void replace_late(struct wharf_gate *gate)
{
    wharf_gate_process_log_late();
    retire(gate);
    part_with(forget_asked(gate), false);
}

static void on_timeout(struct wharf_timer *timer)
{
    struct wharf_gate *gate = WHARF_LIST_ENTRY(timer, struct wharf_gate, timer);

    /* It may have come while this thread was kept from its processor: the next turn takes it. */
    if (wharf_gate_process_has_answered(gate->process)) {
        set_timer(gate);
        return;
    }
    if (gate->process->is_up)
        replace_hung(gate);
    else
        replace_late(gate);
    ask_next(gate);
}

/* ---- questions ----------------------------------------------------------------------------- */

/* For the answer to the question that was asked.  What a process needs to start is not the
 * client's time. */
static void set_timer(struct wharf_gate *gate)
{
    uint64_t most_ns =
        gate->process->is_up ? gate->server->config.gate_timeout_ns : WHARF_DISPOSABLE_START_NS;

    wharf_timer_set(gate->server->loop, &gate->timer, wharf_now_ns() + most_ns, on_timeout);
}

static int send_to_process(struct wharf_gate *gate, const struct wharf_connection *connection)
{
    struct wharf_gate_question question = {.kind = connection->gate_kind};
    int fds[2] = {connection->fd, -1};
    bool is_file = wharf_gate_is_file(question.kind);
    int r = gate->process ? 0 : start(gate);

    if (r < 0)
        return r;
    if (is_file)
        fds[1] = wharf_files_socket(connection, &question.file);
    return wharf_control_send(gate->process->source.fd, (const uint8_t *)&question,
                              sizeof(question), fds, 1 + is_file, MSG_DONTWAIT);
}

static int ask(struct wharf_gate *gate, struct wharf_connection *connection)
{
    int r = send_to_process(gate, connection);

    /* It has died, and nobody was told yet. */
    if (r == -EPIPE || r == -ECONNRESET) {
        retire(gate);
        r = send_to_process(gate, connection);
    }
    if (r < 0)
        return r;
    set_asked(gate, connection);
    set_timer(gate);
    return 0;
}

/* That of the tenant that has had least of the loop thread: one that registers again and again on
 * many connections does not keep another one waiting behind all of these. */
static struct wharf_connection *next_in_queue(const struct wharf_gate *gate)
{
    struct wharf_connection *first = NULL;

    WHARF_LIST_FOR(link, &gate->queue)
    {
        struct wharf_connection *connection =
            WHARF_LIST_ENTRY(link, struct wharf_connection, gate_link);
        if (!first ||
            wharf_fair_party_is_before(connection->tenant->loop_party, first->tenant->loop_party))
            first = connection;
    }
    return first;
}

static void ask_next(struct wharf_gate *gate)
{
    struct wharf_connection *connection;

    while (!gate->is_busy && (connection = next_in_queue(gate))) {
        wharf_list_remove(&connection->gate_link);
        /* It may have been put into the queue before the others hung. */
        if (is_barred(gate, connection)) {
            refuse_barred(connection);
            continue;
        }
        int r = ask(gate, connection);
        if (r < 0) {
            wharf_log_client(WHARF_LOG_ERROR, &(struct wharf_log_fields){.error = -r},
                             "cannot start the gate, which receives descriptors");
            part_with(connection, false);
        }
    }
}

void wharf_gate_ask(struct wharf_gate *gate, struct wharf_connection *connection)
{
    if (is_barred(gate, connection)) {
        refuse_barred(connection);
        return;
    }
    wharf_connection_hold(connection, WHARF_HOLD_GATE);
    wharf_list_append(&gate->queue, &connection->gate_link);
    ask_next(gate);
}

void wharf_gate_forget(struct wharf_gate *gate, struct wharf_connection *connection)
{
    wharf_list_remove(&connection->gate_link);
    if (gate->asked == connection)
        gate->asked = NULL;
}

/* ---- answers ------------------------------------------------------------------------------- */

static const char *what_is_wrong(const struct wharf_gate_answer *answer)
{
    if (answer->error)
        return "a packet with descriptors could not be received";
    if (answer->n_fds != 1)
        return "a request came with another number of descriptors than one";
    return NULL;
}

/* A descriptor that was not let through is -1; what it lacked is in the verdict. */
static void carry_out(struct wharf_gate *gate, struct wharf_connection *connection,
                      const struct wharf_gate_answer *answer, const uint8_t *packet, int fd)
{
    struct wharf_server *server = gate->server;
    const Wharf__Request *request;
    const char *wrong = what_is_wrong(answer);

    if (!wrong && (wharf_control_unpack_request(&server->memory, packet, answer->packet_nbytes,
                                                &request) < 0 ||
                   request->id == 0 || !wharf_request_wants_fd(request) ||
                   wharf_request_gate_kind(connection, request) != connection->gate_kind))
        wrong = "a packet changed while it was looked at";
    if (wrong) {
        wharf_connection_refuse(connection, EPROTO, "%s", wrong);
        return;
    }
    wharf_connection_release(connection, WHARF_HOLD_GATE);
    wharf_request_handle(connection, request, fd >= 0 ? fd : (int)answer->verdict);
}

/* Its first answer, which is to nothing. */
static bool is_greeting(const struct wharf_gate_answer *answer)
{
    return answer->n_fds == 0 && answer->packet_nbytes == 0;
}

/* Returns 0 or an error: it has ended, which its pidfd tells too, or is out of its mind. */
static int take_answer(struct wharf_gate_process *process)
{
    struct wharf_gate *gate = process->context;
    struct wharf_connection *connection = gate->asked;
    struct wharf_gate_answer answer;
    WHARF_CLEANUP_FD int fd = -1;
    int r = wharf_gate_process_receive(process, &answer, gate->server->packet, &fd);

    if (r < 0)
        return r;
    if (!process->is_up) {
        process->is_up = is_greeting(&answer);
        if (gate->is_busy)
            set_timer(gate);
        return process->is_up ? 0 : -EIO;
    }
    if (!gate->is_busy)
        return -EIO;
    wharf_timer_clear(gate->server->loop, &gate->timer);
    set_asked(gate, NULL);
    if (connection) {
        wharf_loop_charge(gate->server->loop, connection->tenant->loop_party, ANSWER_NS);
        carry_out(gate, connection, &answer, gate->server->packet, fd);
    }
    ask_next(gate);
    return 0;
}

static void on_answer(struct wharf_source *source, uint32_t ready)
{
    struct wharf_gate_process *process =
        WHARF_LIST_ENTRY(source, struct wharf_gate_process, source);
    int r = take_answer(process);

    (void)ready;
    if (r == 0 || r == -EAGAIN)
        return;
    kill(process->pid, SIGKILL);
    wharf_loop_want(process->loop, source, 0);
}

/* ---- beginning and end --------------------------------------------------------------------- */

int wharf_gate_new(struct wharf_server *server, struct wharf_gate **ret_gate)
{
    struct wharf_gate *gate = calloc(1, sizeof(*gate));

    if (!gate)
        return -ENOMEM;
    gate->server = server;
    wharf_list_init(&gate->queue);
    wharf_list_init(&gate->killed);
    int r = start(gate);
    if (r < 0) {
        wharf_log(WHARF_LOG_ERROR, &(struct wharf_log_fields){.error = -r},
                  "cannot start the gate, which receives descriptors");
        free(gate);
        return r;
    }
    *ret_gate = gate;
    return 0;
}

int wharf_gate_wait(struct wharf_gate *gate)
{
    struct wharf_gate_process *process = gate->process;
    struct pollfd answer = {.fd = process->source.fd, .events = POLLIN};
    int n = poll(&answer, 1, (int)(WHARF_DISPOSABLE_START_NS / WHARF_NS_PER_MS));

    if (n == 0)
        wharf_gate_process_log_late();
    if (n <= 0)
        return n < 0 ? -errno : -ETIMEDOUT;
    int r = take_answer(process);
    if (r < 0) {
        kill(process->pid, SIGKILL);
        wharf_gate_process_log_end(process);
    }
    return r;
}

void wharf_gate_free(struct wharf_gate *gate)
{
    if (!gate)
        return;
    wharf_timer_clear(gate->server->loop, &gate->timer);
    /* They are not waited for: they can hang. */
    if (gate->process) {
        kill(gate->process->pid, SIGKILL);
        wharf_gate_process_free(gate->process);
    }
    WHARF_LIST_FOR(link, &gate->killed)
    wharf_gate_process_free(WHARF_LIST_ENTRY(link, struct wharf_gate_process, link));
    free(gate);
}
