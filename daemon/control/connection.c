/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/control/connection.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/control/gate.h"
#include "daemon/control/undertaker.h"

/* Packets of one connection that are read before others have their turn. */
#define MOST_PACKETS 16

/* How long a connection that rings for nothing is not listened to. */
#define DOORBELL_HOLD_NS WHARF_NS_PER_MS

/* How often the ring of one is looked at that is not read from while its memory is imported, which
 * takes a millisecond if there is a worker. */
#define IMPORT_LOOK_NS (2 * (uint64_t)WHARF_NS_PER_MS)

struct wharf_log_fields wharf_connection_fields(const struct wharf_connection *connection,
                                                int error)
{
    return (struct wharf_log_fields){
        .tenant = connection->tenant->name,
        .connection = connection->number,
        .session = connection->session ? connection->session->id : 0,
        .error = error,
    };
}

/* It cannot go on, since its client is gone; it is ended when nobody is in the middle of something
 * with it. */
static void doom(struct wharf_connection *connection)
{
    if (!wharf_list_is_linked(&connection->doom_link))
        wharf_list_append(&connection->server->doomed, &connection->doom_link);
}

/* The same where it is the daemon that cannot. */
static void give_up(struct wharf_connection *connection)
{
    connection->is_given_up = true;
    doom(connection);
}

/* ---- holding ------------------------------------------------------------------------------- */

static uint32_t wanted(const struct wharf_connection *connection)
{
    if (connection->holds & WHARF_HOLD_SEND)
        return POLLOUT;
    return connection->holds || connection->state == WHARF_CONNECTION_CLOSING ? 0 : POLLIN;
}

static void update(struct wharf_connection *connection)
{
    if (wharf_loop_want(connection->server->loop, &connection->source, wanted(connection)) < 0)
        give_up(connection);
}

void wharf_connection_hold(struct wharf_connection *connection, enum wharf_connection_hold hold)
{
    connection->holds |= (uint8_t)hold;
    update(connection);
}

void wharf_connection_release(struct wharf_connection *connection, enum wharf_connection_hold hold)
{
    connection->holds &= (uint8_t)~hold;
    update(connection);
}

/* ---- ending -------------------------------------------------------------------------------- */

/* Says why, if there is something to say and room for it. */
static void say_last_words(struct wharf_connection *connection)
{
    Wharf__Error error = WHARF__ERROR__INIT;
    Wharf__Reply reply = WHARF__REPLY__INIT;
    uint8_t packet[512];
    size_t nbytes;

    if (!connection->last_error)
        return;
    error.code = connection->last_error;
    error.text = connection->last_text;
    reply.body_case = WHARF__REPLY__BODY_ERROR;
    reply.error = &error;
    if (wharf_control_pack_reply(&reply, packet, &nbytes) == 0)
        wharf_control_send(connection->fd, packet, nbytes, NULL, 0, MSG_DONTWAIT);
}

static void connection_free(struct wharf_connection *connection)
{
    struct wharf_server *server = connection->server;

    say_last_words(connection);
    wharf_loop_remove(server->loop, &connection->source);
    wharf_timer_clear(server->loop, &connection->hello_timer);
    wharf_timer_clear(server->loop, &connection->hold_timer);
    wharf_timer_clear(server->loop, &connection->import_timer);
    wharf_list_remove(&connection->link);
    wharf_undertaker_take(server->undertaker, connection->fd, connection->tenant, &connection->use);
    free(connection->unsent);
    free(connection);
    wharf_server_forget_connection(server);
}

void wharf_connection_end(struct wharf_connection *connection, bool by_client)
{
    struct wharf_session *session = connection->session;
    struct wharf_server *server = connection->server;

    if (connection->state == WHARF_CONNECTION_CLOSING)
        return;
    connection->state = WHARF_CONNECTION_CLOSING;
    wharf_list_remove(&connection->doom_link);
    wharf_gate_forget(server->gate, connection);
    wharf_model_maker_forget(server->model_maker, connection);
    if (!session) {
        connection_free(connection);
        return;
    }
    wharf_loop_remove(server->loop, &connection->source);
    if (by_client) {
        session->regions[0].segment.empty = true;
        wharf_front_forfeit_session(&server->front, session);
    }
    wharf_front_kill_session(&server->front, session);
}

void wharf_connection_session_free(struct wharf_connection *connection)
{
    struct wharf_session *session = connection->session;
    struct wharf_server *server = connection->server;

    connection->session = NULL;
    wharf_server_reap_session(server, session);
    connection_free(connection);
}

void wharf_connection_refuse(struct wharf_connection *connection, int error, const char *format,
                             ...)
{
    struct wharf_log_fields fields = wharf_connection_fields(connection, 0);
    va_list args;

    va_start(args, format);
    vsnprintf(connection->last_text, sizeof(connection->last_text), format, args);
    va_end(args);
    connection->last_error = error;
    wharf_log_client(WHARF_LOG_NOTICE, &fields, "connection of %s (pid %d) ended: %s",
                     connection->name[0] ? connection->name : "a client", (int)connection->pid,
                     connection->last_text);
    wharf_front_enter(&connection->server->front);
    if (error == EDQUOT)
        connection->tenant->stats.n_refused++;
    else
        connection->tenant->stats.n_broken++;
    wharf_front_leave(&connection->server->front);
    wharf_connection_end(connection, true);
}

void wharf_connection_part(struct wharf_connection *connection, const char *text)
{
    connection->last_error = ESHUTDOWN;
    snprintf(connection->last_text, sizeof(connection->last_text), "%s", text);
    wharf_connection_end(connection, false);
}

void wharf_connection_end_doomed(struct wharf_connection *connection)
{
    if (connection->is_given_up)
        wharf_connection_part(connection, "the daemon cannot go on with this connection: connect "
                                          "again");
    else
        wharf_connection_end(connection, true);
}

/* ---- sending ------------------------------------------------------------------------------- */

/* C, D and the arena, where the daemon made it, in this order. */
static size_t session_fds(const struct wharf_session *session, int fds[3])
{
    size_t n = 0;

    fds[n++] = session->c.fd;
    fds[n++] = session->d.fd;
    if (session->regions[0].is_there && session->regions[0].segment.fd >= 0)
        fds[n++] = session->regions[0].segment.fd;
    return n;
}

/* The client has them now.  The daemon keeps the arena's, to be able to empty it, and C's, to see
 * whether it was sealed. */
static void close_sent_fds(struct wharf_session *session)
{
    session->d.fd = wharf_close_fd(session->d.fd);
}

static int send_now(struct wharf_connection *connection, const uint8_t *packet, size_t nbytes,
                    bool has_fds)
{
    int fds[3] = {-1, -1, -1};
    size_t n_fds = has_fds ? session_fds(connection->session, fds) : 0;
    int r = wharf_control_send(connection->fd, packet, nbytes, fds, n_fds, MSG_DONTWAIT);

    if (r == 0 && has_fds)
        close_sent_fds(connection->session);
    return r;
}

static void keep_unsent(struct wharf_connection *connection, const uint8_t *packet, size_t nbytes,
                        bool has_fds)
{
    connection->unsent = malloc(nbytes);
    if (!connection->unsent) {
        give_up(connection);
        return;
    }
    memcpy(connection->unsent, packet, nbytes);
    connection->unsent_nbytes = nbytes;
    connection->unsent_has_fds = has_fds;
    wharf_connection_hold(connection, WHARF_HOLD_SEND);
}

/* Whether sending failed in a way that more room does not cure: then the connection cannot go on.
 * Too many descriptors on their way are cured when others read, which can take for ever. */
static bool is_for_good(struct wharf_connection *connection, int r)
{
    if (r >= 0 || r == -EAGAIN || r == -ENOBUFS || r == -ENOMEM)
        return false;
    if (r == -EPIPE || r == -ECONNRESET)
        doom(connection);
    else
        give_up(connection);
    return true;
}

void wharf_connection_send(struct wharf_connection *connection, const Wharf__Reply *reply,
                           bool has_fds)
{
    uint8_t *packet = connection->server->reply;
    size_t nbytes;
    int r = wharf_control_pack_reply(reply, packet, &nbytes);

    if (r == 0)
        r = send_now(connection, packet, nbytes, has_fds);
    if (r < 0 && !is_for_good(connection, r))
        keep_unsent(connection, packet, nbytes, has_fds);
}

static void send_unsent(struct wharf_connection *connection)
{
    int r = send_now(connection, connection->unsent, connection->unsent_nbytes,
                     connection->unsent_has_fds);

    if (is_for_good(connection, r) || r < 0)
        return;
    free(WHARF_STEAL(connection->unsent));
    wharf_connection_release(connection, WHARF_HOLD_SEND);
}

/* ---- receiving ----------------------------------------------------------------------------- */

/* What one look at the socket found. */
struct look {
    ssize_t nbytes;
    bool has_fds;
    bool is_too_long;
};

/*
 * Reads a packet, or looks at it without taking it.  There is no room for descriptors: the kernel
 * lets go of them, without closing files, which could take for ever, and says that there were some.
 */
static struct look read_packet(struct wharf_connection *connection, int flags)
{
    struct iovec iov = {connection->server->packet, sizeof(connection->server->packet)};
    struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t n;

    do {
        n = recvmsg(connection->fd, &header, flags | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    return (struct look){
        .nbytes = n < 0 ? -errno : n,
        .has_fds = header.msg_flags & MSG_CTRUNC,
        .is_too_long = header.msg_flags & MSG_TRUNC,
    };
}

/*
 * Takes a packet that was looked at and is against the rules: the end of a connection with
 * something unread reaches the client as a reset, which comes before the words that tell why.
 * Descriptors are better left to the one who closes the connection.
 */
static void drop_packet(struct wharf_connection *connection, const struct look *look)
{
    if (!look->has_fds)
        read_packet(connection, 0);
}

static void take_request(struct wharf_connection *connection, const struct look *look)
{
    struct wharf_server *server = connection->server;
    const Wharf__Request *request;
    int r = wharf_control_unpack_request(&server->memory, server->packet, (size_t)look->nbytes,
                                         &request);

    if (r < 0 || request->id == 0) {
        drop_packet(connection, look);
        wharf_connection_refuse(connection, EPROTO, "a packet of %zd bytes is no request",
                                look->nbytes);
        return;
    }
    bool wants_fd = wharf_request_wants_fd(request);
    if (look->has_fds != wants_fd) {
        wharf_connection_refuse(connection, EPROTO,
                                wants_fd ? "a request came without its descriptor"
                                         : "descriptors came with a request that has none");
        return;
    }
    if (wants_fd) {
        connection->gate_kind = wharf_request_gate_kind(connection, request);
        wharf_gate_ask(server->gate, connection);
        return;
    }
    read_packet(connection, 0);
    wharf_request_handle(connection, request, -EBADF);
}

/* What is neither a wake-up nor nothing: the end, a request, or against the rules. */
static void take_other(struct wharf_connection *connection, const struct look *look)
{
    if (look->nbytes <= 0)
        wharf_connection_end(connection, true);
    else if (look->is_too_long) {
        drop_packet(connection, look);
        wharf_connection_refuse(connection, EPROTO, "a packet is longer than %u bytes",
                                WHARF_CONTROL_MAX_NBYTES);
    } else if (wharf_packet_kind((size_t)look->nbytes) == WHARF_PACKET_WAKE)
        wharf_connection_refuse(connection, EPROTO, "descriptors came with a wake-up");
    else
        take_request(connection, look);
}

static bool is_plain_wake(const struct look *look)
{
    return look->nbytes == 1 && !look->has_fds && !look->is_too_long;
}

static void end_hold(struct wharf_timer *timer)
{
    wharf_connection_release(WHARF_LIST_ENTRY(timer, struct wharf_connection, hold_timer),
                             WHARF_HOLD_DOORBELL);
}

/* Looks at the session's ring; whether something was there that nobody had seen. */
static bool look_at_ring(struct wharf_connection *connection, unsigned n_wakes)
{
    struct wharf_server *server = connection->server;

    if (!connection->session || !wharf_session_ring_is_whole(connection->session))
        return false;
    wharf_front_enter(&server->front);
    bool was_needed = wharf_front_rung(&server->front, connection->session, n_wakes);
    if (was_needed)
        wharf_cpu_here_run(&server->front, &server->here);
    wharf_front_leave(&server->front);
    return was_needed;
}

static void look_meanwhile(struct wharf_timer *timer)
{
    struct wharf_connection *connection =
        WHARF_LIST_ENTRY(timer, struct wharf_connection, import_timer);

    if (connection->state == WHARF_CONNECTION_CLOSING)
        return;
    look_at_ring(connection, 0);
    wharf_timer_set(connection->server->loop, timer, wharf_now_ns() + IMPORT_LOOK_NS,
                    look_meanwhile);
}

void wharf_connection_hold_import(struct wharf_connection *connection)
{
    wharf_connection_hold(connection, WHARF_HOLD_IMPORT);
    wharf_timer_set(connection->server->loop, &connection->import_timer,
                    wharf_now_ns() + IMPORT_LOOK_NS, look_meanwhile);
}

void wharf_connection_release_import(struct wharf_connection *connection)
{
    wharf_timer_clear(connection->server->loop, &connection->import_timer);
    wharf_connection_release(connection, WHARF_HOLD_IMPORT);
}

/* One wake-up or more.  Clients that ring and ring with nothing in the ring are not listened to for
 * a moment, so that they cannot keep the loop busy. */
static void answer_wakes(struct wharf_connection *connection, unsigned n_wakes, bool was_needed)
{
    was_needed |= look_at_ring(connection, n_wakes);
    if (was_needed || n_wakes < MOST_PACKETS)
        return;
    wharf_connection_hold(connection, WHARF_HOLD_DOORBELL);
    wharf_timer_set(connection->server->loop, &connection->hold_timer,
                    wharf_now_ns() + DOORBELL_HOLD_NS, end_hold);
}

/*
 * Reads wake-ups, and then one other packet if there is one: that may end the connection.  A client
 * that has rung waits: what is in its ring is begun before the packets are read.  That saves no
 * look afterwards, since what came with a later packet may not have been there yet.
 */
static void receive(struct wharf_connection *connection)
{
    bool was_needed = look_at_ring(connection, 0);
    struct look look = read_packet(connection, MSG_PEEK);
    unsigned n_wakes = 0;

    while (is_plain_wake(&look) && n_wakes < MOST_PACKETS) {
        read_packet(connection, 0);
        n_wakes++;
        look = read_packet(connection, MSG_PEEK);
    }
    if (n_wakes && connection->session && !wharf_session_ring_is_whole(connection->session)) {
        wharf_connection_refuse(connection, EPERM,
                                "the ring C was not sealed with F_SEAL_FUTURE_WRITE before the "
                                "first wake-up");
        return;
    }
    if (n_wakes)
        answer_wakes(connection, n_wakes, was_needed);
    if (look.nbytes != -EAGAIN && !is_plain_wake(&look))
        take_other(connection, &look);
}

static void on_ready(struct wharf_source *source, uint32_t ready)
{
    struct wharf_connection *connection = WHARF_LIST_ENTRY(source, struct wharf_connection, source);

    if (!(connection->holds & (WHARF_HOLD_SEND | WHARF_HOLD_IMPORT)))
        receive(connection);
    else if (ready & (POLLHUP | POLLERR))
        wharf_connection_end(connection, true);
    else if (connection->holds & WHARF_HOLD_SEND)
        send_unsent(connection);
}

/* ---- beginning ----------------------------------------------------------------------------- */

static void on_silence(struct wharf_timer *timer)
{
    wharf_connection_refuse(WHARF_LIST_ENTRY(timer, struct wharf_connection, hello_timer),
                            ETIMEDOUT, "no Hello came in time");
}

void wharf_connection_greet(struct wharf_connection *connection)
{
    struct wharf_server *server = connection->server;

    wharf_timer_set(server->loop, &connection->hello_timer,
                    wharf_now_ns() + server->config.hello_timeout_ns, on_silence);
    wharf_connection_release(connection, WHARF_HOLD_PROMISE);
}

/* Tells a peer that is not let in why; there is no connection of it.  `use` may be NULL, as what is
 * charged to the tenant, who may too. */
static void turn_away(struct wharf_server *server, int fd, struct wharf_tenant *tenant,
                      const struct wharf_use *use, int error, const char *text)
{
    struct wharf_connection none = {.fd = fd, .last_error = error};

    snprintf(none.last_text, sizeof(none.last_text), "%s", text);
    say_last_words(&none);
    wharf_undertaker_take(server->undertaker, fd, tenant, use);
}

static int charge(struct wharf_server *server, struct wharf_tenant *tenant,
                  const struct wharf_use *use, const char **ret_text)
{
    *ret_text = "the daemon is out of memory";
    wharf_front_enter(&server->front);
    int r = tenant ? wharf_tenant_charge(tenant, use, ret_text) : -ENOMEM;
    if (r == 0)
        tenant->stats.n_connections++;
    else if (tenant)
        tenant->stats.n_refused++;
    wharf_front_leave(&server->front);
    return r;
}

static int add_to_loop(struct wharf_connection *connection)
{
    struct wharf_server *server = connection->server;
    int r;

    connection->holds = WHARF_HOLD_PROMISE;
    r = wharf_loop_add(server->loop, &connection->source, connection->fd, wanted(connection),
                       on_ready);
    if (r < 0)
        return r;
    wharf_list_append(&server->connections, &connection->link);
    server->n_connections++;
    if (server->is_promised)
        wharf_connection_greet(connection);
    return 0;
}

static struct wharf_tenant *find_tenant(struct wharf_server *server, const char *name)
{
    wharf_front_enter(&server->front);
    struct wharf_tenant *tenant = wharf_tenants_get(&server->front.tenants, name, &server->config);
    wharf_front_leave(&server->front);
    return tenant;
}

static struct wharf_connection *connection_new(struct wharf_server *server, int fd,
                                               struct wharf_tenant *tenant)
{
    struct wharf_connection *connection = calloc(1, sizeof(*connection));

    if (!connection)
        return NULL;
    connection->server = server;
    connection->number = ++server->last_connection;
    connection->fd = fd;
    connection->tenant = tenant;
    wharf_list_init(&connection->link);
    wharf_list_init(&connection->gate_link);
    wharf_list_init(&connection->doom_link);
    return connection;
}

void wharf_connection_new(struct wharf_server *server, int fd, uid_t uid, pid_t pid,
                          const char *tenant_name)
{
    /* Its socket, and three that can be on their way to the client, unread. */
    static const struct wharf_use use = {.n_connections = 1, .n_descriptors = 4};
    struct wharf_tenant *tenant = find_tenant(server, tenant_name);

    if (server->is_draining) {
        turn_away(server, fd, tenant, NULL, ESHUTDOWN, "the daemon is going down: connect again");
        return;
    }
    if (server->n_connections >= server->max_connections) {
        turn_away(server, fd, tenant, NULL, EDQUOT,
                  "over max_connections, the limit of the daemon");
        return;
    }
    const char *text;
    int r = charge(server, tenant, &use, &text);
    if (r < 0) {
        turn_away(server, fd, tenant, NULL, -r, text);
        return;
    }
    struct wharf_connection *connection = connection_new(server, fd, tenant);
    if (!connection) {
        turn_away(server, fd, tenant, &use, ENOMEM, "the daemon is out of memory");
        return;
    }
    connection->use = use;
    connection->uid = uid;
    connection->pid = pid;
    /* Root of a container is not root: clients of a socket that is one tenant are nothing else. */
    connection->is_operator =
        (uid == 0 || uid == geteuid()) && strncmp(tenant_name, "uid:", strlen("uid:")) == 0;
    r = add_to_loop(connection);
    if (r < 0) {
        turn_away(server, fd, tenant, &use, -r, "the daemon cannot wait for one more connection");
        free(connection);
    }
}
