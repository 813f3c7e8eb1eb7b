/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connection.c: the life of a connection.
 *
 * A connection is read only while it has no hold.  Without a session it ends at once; otherwise the
 * session is killed first, and the connection is freed when the session is.  A connection that must
 * end in the middle of a turn goes on a list and ends after the turn, so no caller loses the
 * connection that it is using.
 */
#include "daemon/control/connection.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/log.h"
#include "daemon/base/log_level.h"
#include "daemon/base/loop.h"
#include "daemon/control/server.h"
#include "daemon/control/server_reap.h"
#include "daemon/core/tenant.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/session_end.h"
#include "daemon/disposable/closer_process.h"

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

/* Marks a connection whose client is gone.  It is ended after the present turn. */
static void doom(struct wharf_connection *connection)
{
    if (!wharf_list_is_linked(&connection->doom_link))
        wharf_list_append(&connection->server->closing, &connection->doom_link);
}

/* The same for a connection that the daemon cannot continue. */
static void give_up(struct wharf_connection *connection)
{
    connection->is_given_up = true;
    doom(connection);
}

/* ---- holding ------------------------------------------------------------------------------- */

/* Holds whose length depends on the client, on others before it, or on the previous daemon.  During
 * them the loop still reports when the client closes or shuts down its end. */
#define LONG_HOLDS                                                                                 \
    (WHARF_HOLD_SEND | WHARF_HOLD_PROMISE | WHARF_HOLD_IMPORT | WHARF_HOLD_MODEL |                 \
     WHARF_HOLD_STATS | WHARF_HOLD_ROOM)
#define ENDS (POLLRDHUP | POLLHUP | POLLERR)

static uint32_t wanted(const struct wharf_connection *connection)
{
    if (connection->state == WHARF_CONNECTION_CLOSING)
        return 0;
    if (connection->holds & WHARF_HOLD_SEND)
        return POLLOUT | POLLRDHUP;
    if (connection->holds & LONG_HOLDS)
        return POLLRDHUP;
    return connection->holds ? 0 : POLLIN;
}

static void update(struct wharf_connection *connection)
{
    if (wharf_loop_want(connection->server->loop, &connection->source, wanted(connection)) < 0)
        give_up(connection);
}

/* Holds with a time limit.  The length of a hold for statistics depends on the daemon alone. */
#define LIMITED_HOLDS ((LONG_HOLDS & ~WHARF_HOLD_STATS) | WHARF_HOLD_FD_FILTER)

/* The client, if it lives, is not at fault: it may reconnect with its arena. */
static void on_unread(struct wharf_timer *timer)
{
    struct wharf_connection *connection =
        WHARF_LIST_ENTRY(timer, struct wharf_connection, unread_timer);
    struct wharf_log_fields fields = wharf_connection_fields(connection, 0);

    wharf_log_client(WHARF_LOG_NOTICE, &fields,
                     "connection of %s (pid %d) ended: %s for longer than unread_timeout",
                     connection->name[0] ? connection->name : "a client", (int)connection->pid,
                     connection->holds & WHARF_HOLD_SEND ? "it has read no reply"
                                                         : "what it asked for has waited");
    wharf_connection_part(connection, "nothing was read from it for longer than unread_timeout: "
                                      "connect again");
}

/*
 * Limits how long a connection stays unread.  The end of an unread connection may never show: a
 * client can send its own socket as a descriptor, which waits unread in the daemon's socket and
 * keeps the client's end open after its process ended.  Connections that are read need no limit,
 * because such a packet is found at once.
 */
static void limit_holds(struct wharf_connection *connection)
{
    struct wharf_server *server = connection->server;

    if (!(connection->holds & LIMITED_HOLDS) || connection->state == WHARF_CONNECTION_CLOSING)
        wharf_timer_clear(server->loop, &connection->unread_timer);
    else if (!connection->unread_timer.node.is_linked)
        wharf_timer_set(server->loop, &connection->unread_timer,
                        wharf_now_ns() + server->config.unread_timeout_ns, on_unread);
}

void wharf_connection_hold(struct wharf_connection *connection, enum wharf_connection_hold hold)
{
    connection->holds |= (uint8_t)hold;
    limit_holds(connection);
    update(connection);
}

void wharf_connection_release(struct wharf_connection *connection, enum wharf_connection_hold hold)
{
    connection->holds &= (uint8_t)~hold;
    limit_holds(connection);
    update(connection);
}

/* ---- ending -------------------------------------------------------------------------------- */

void wharf_connection_say_last_words(struct wharf_connection *connection)
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

    wharf_connection_say_last_words(connection);
    wharf_loop_remove(server->loop, &connection->source);
    wharf_timer_clear(server->loop, &connection->hello_timer);
    wharf_timer_clear(server->loop, &connection->hold_timer);
    wharf_timer_clear(server->loop, &connection->look_timer);
    wharf_timer_clear(server->loop, &connection->unread_timer);
    wharf_list_remove(&connection->link);
    wharf_list_remove(&connection->tenant_link);
    wharf_closer_process_take(server->closer_process, connection->fd, connection->tenant,
                              &connection->use);
    free(connection->unsent);
    free(connection);
    server->n_connections--;
    server->is_over |= server->is_draining && server->n_connections == 0;
}

void wharf_connection_end(struct wharf_connection *connection, bool by_client)
{
    struct wharf_session *session = connection->session;
    struct wharf_server *server = connection->server;

    if (connection->state == WHARF_CONNECTION_CLOSING)
        return;
    connection->state = WHARF_CONNECTION_CLOSING;
    wharf_list_remove(&connection->doom_link);
    wharf_timer_clear(server->loop, &connection->unread_timer);
    connection->events->on_end(connection);
    if (!session) {
        connection_free(connection);
        return;
    }
    connection->tenant->n_endings++;
    wharf_loop_remove(server->loop, &connection->source);
    if (by_client) {
        session->regions[0].segment.empty = true;
        wharf_core_revoke_session(&server->core, session);
    }
    wharf_core_kill_session(&server->core, session);
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
    if (error != EDQUOT) {
        wharf_core_enter(&connection->server->core);
        connection->tenant->stats.n_broken++;
        wharf_core_leave(&connection->server->core);
    }
    wharf_connection_end(connection, true);
}

int wharf_connection_is_over(struct wharf_connection *connection, enum wharf_limit limit)
{
    wharf_core_enter(&connection->server->core);
    wharf_tenant_count_refusal(connection->tenant, limit);
    wharf_core_leave(&connection->server->core);
    return EDQUOT;
}

void wharf_connection_part(struct wharf_connection *connection, const char *text)
{
    connection->last_error = ESHUTDOWN;
    snprintf(connection->last_text, sizeof(connection->last_text), "%s", text);
    wharf_connection_end(connection, false);
}

void wharf_connection_end_closing(struct wharf_connection *connection)
{
    if (connection->is_given_up)
        wharf_connection_part(connection, "the daemon cannot go on with this connection: connect "
                                          "again");
    else
        wharf_connection_end(connection, true);
}

/* ---- sending ------------------------------------------------------------------------------- */

/*
 * Sends the descriptors of C, D and, if the daemon made it, the arena, in this order.  The daemon
 * keeps its own copies: the arena's to be able to empty it, C's to check its seals, and those of
 * both rings to see when the client closes them (kept_rings.h).
 */
static int send_with_session(struct wharf_connection *connection, const uint8_t *packet,
                             size_t nbytes)
{
    const struct wharf_session *session = connection->session;
    WHARF_CLEANUP_FD int c = wharf_segment_open(&session->c, WHARF_SEGMENT_C);
    WHARF_CLEANUP_FD int d = wharf_segment_open(&session->d, WHARF_SEGMENT_D);
    const int fds[3] = {c, d, session->regions[0].segment.fd};
    bool has_arena = session->regions[0].is_there && fds[2] >= 0;

    if (c < 0 || d < 0)
        return c < 0 ? c : d;
    return wharf_control_send(connection->fd, packet, nbytes, fds, has_arena ? 3 : 2, MSG_DONTWAIT);
}

static int send_now(struct wharf_connection *connection, const uint8_t *packet, size_t nbytes,
                    bool has_fds)
{
    if (has_fds)
        return send_with_session(connection, packet, nbytes);
    return wharf_control_send(connection->fd, packet, nbytes, NULL, 0, MSG_DONTWAIT);
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

/* Whether a failure to send is permanent, so that the connection must end.  Too many descriptors in
 * flight count as permanent: they go only when other clients read, which may never happen. */
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

static void send_packet(struct wharf_connection *connection, const uint8_t *packet, size_t nbytes,
                        bool has_fds)
{
    int r = send_now(connection, packet, nbytes, has_fds);

    if (r < 0 && !is_for_good(connection, r))
        keep_unsent(connection, packet, nbytes, has_fds);
}

void wharf_connection_send(struct wharf_connection *connection, const Wharf__Reply *reply,
                           bool has_fds)
{
    uint8_t *packet = connection->server->reply;
    size_t nbytes;

    /* All replies that the daemon makes can be packed. */
    if (wharf_control_pack_reply(reply, packet, &nbytes) == 0)
        send_packet(connection, packet, nbytes, has_fds);
    else
        give_up(connection);
}

void wharf_connection_send_stats(struct wharf_connection *connection, uint32_t request,
                                 const uint8_t *stats, size_t stats_nbytes)
{
    uint8_t *packet = connection->server->reply;
    size_t nbytes;

    if (wharf_control_wrap_stats(request, stats, stats_nbytes, packet, &nbytes) == 0)
        send_packet(connection, packet, nbytes, false);
    else
        give_up(connection);
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

/* ---- beginning ----------------------------------------------------------------------------- */

static void on_ready(struct wharf_source *source, uint32_t ready)
{
    struct wharf_connection *connection = WHARF_LIST_ENTRY(source, struct wharf_connection, source);

    if (!(connection->holds & LONG_HOLDS))
        connection->events->on_packet(connection);
    else if (ready & ENDS)
        wharf_connection_end(connection, true);
    else if (connection->holds & WHARF_HOLD_SEND)
        send_unsent(connection);
}

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

int wharf_connection_start(struct wharf_connection *connection)
{
    struct wharf_server *server = connection->server;
    int r;

    connection->holds = server->is_promised ? 0 : WHARF_HOLD_PROMISE;
    connection->holds |= wharf_connection_is_awaiting_room(connection) ? WHARF_HOLD_ROOM : 0;
    r = wharf_loop_add_of(server->loop, &connection->source, connection->fd, wanted(connection),
                          on_ready, connection->tenant->loop_party);
    if (r < 0)
        return r;
    wharf_list_append(&server->connections, &connection->link);
    wharf_list_append(&connection->tenant->connections, &connection->tenant_link);
    server->n_connections++;
    if (!wharf_connection_is_awaiting_room(connection) && server->is_promised)
        wharf_connection_greet(connection);
    else if (!wharf_connection_is_awaiting_room(connection))
        limit_holds(connection);
    return 0;
}

void wharf_connection_let_in(struct wharf_connection *connection)
{
    if (connection->server->is_promised)
        wharf_connection_greet(connection);
    wharf_connection_release(connection, WHARF_HOLD_ROOM);
}
