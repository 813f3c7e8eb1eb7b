/* SPDX-License-Identifier: Apache-2.0 */
/*
 * connection_accept.c: charges a new connection, and accepts or refuses it.
 */
#include "daemon/control/connection_accept.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/loop.h"
#include "daemon/control/connection.h"
#include "daemon/control/observer.h"
#include "daemon/control/room.h"
#include "daemon/control/server.h"
#include "daemon/core/tenant.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/disposable/closer_process.h"

/* The approximate processor time to accept or refuse a connection.  It is spent in the listener's
 * turn, before the tenant is known. */
#define ACCEPT_NS (5 * (uint64_t)WHARF_NS_PER_US)

/* The most unused tenants that one accept drops. */
#define MOST_TIDIED 4

/* Tells a refused peer why; no connection was made for it.  `tenant` may be NULL, and so may `use`,
 * which is charged to the tenant. */
static void turn_away(struct wharf_server *server, int fd, struct wharf_tenant *tenant,
                      const struct wharf_use *use, int error, const char *text)
{
    struct wharf_connection none = {.fd = fd, .last_error = error};

    snprintf(none.last_text, sizeof(none.last_text), "%s", text);
    wharf_connection_say_last_words(&none);
    if (tenant)
        wharf_loop_charge(server->loop, tenant->loop_party, ACCEPT_NS);
    wharf_closer_process_take(server->closer_process, fd, tenant, use);
}

/* All connections of a tenant are one party in the loop's turns. */
static bool join_party(struct wharf_connection *connection)
{
    struct wharf_fair_party *party = wharf_tenant_party(connection->tenant);

    wharf_loop_charge(connection->server->loop, party, ACCEPT_NS);
    return party != NULL;
}

static int start(struct wharf_connection *connection)
{
    int r = join_party(connection) ? wharf_connection_start(connection) : -ENOMEM;

    if (r == 0 && wharf_connection_is_awaiting_room(connection))
        wharf_room_await(connection);
    return r;
}

/* It is pinned. */
static struct wharf_tenant *find_tenant(struct wharf_server *server, const char *name,
                                        const char *group)
{
    struct wharf_tenants *tenants = &server->core.tenants;

    wharf_core_enter(&server->core);
    wharf_tenants_tidy(tenants, &server->config, wharf_now_ns(), MOST_TIDIED);
    struct wharf_tenant *tenant = wharf_tenants_get(tenants, name, &server->config);
    if (tenant && group)
        wharf_tenant_set_group(tenant, group, &server->config);
    wharf_core_leave(&server->core);
    return tenant;
}

static void unpin(struct wharf_server *server, struct wharf_tenant *tenant)
{
    if (!tenant)
        return;
    wharf_core_enter(&server->core);
    wharf_tenant_unref(tenant);
    wharf_core_leave(&server->core);
}

static const struct wharf_connection_events events = {
    .on_packet = wharf_connection_receive,
    .on_end = wharf_connection_forget,
};

static struct wharf_connection *connection_new(struct wharf_server *server, int fd,
                                               struct wharf_tenant *tenant)
{
    struct wharf_connection *connection = calloc(1, sizeof(*connection));

    if (!connection)
        return NULL;
    connection->server = server;
    connection->events = &events;
    connection->number = ++server->last_connection;
    connection->fd = fd;
    connection->tenant = tenant;
    wharf_list_init(&connection->link);
    wharf_list_init(&connection->tenant_link);
    wharf_list_init(&connection->fd_filter_link);
    wharf_list_init(&connection->doom_link);
    wharf_list_init(&connection->stats_link);
    return connection;
}

/* Refuses a connection that is not in the loop. */
static void turn_back(struct wharf_connection *connection, int error, const char *text)
{
    const struct wharf_use *use = connection->use.n_connections ? &connection->use : NULL;

    wharf_room_forget(connection);
    turn_away(connection->server, connection->fd, connection->tenant, use, error, text);
    free(connection);
}

/* Root in a container is not the host's root: on a socket with its own tenant no client gets more
 * rights. */
static void set_rights(struct wharf_connection *connection)
{
    struct ucred peer;
    socklen_t nbytes = sizeof(peer);

    if (strncmp(connection->tenant->name, "socket:", strlen("socket:")) == 0 ||
        getsockopt(connection->fd, SOL_SOCKET, SO_PEERCRED, &peer, &nbytes) < 0)
        return;
    connection->is_operator = connection->uid == 0 || connection->uid == geteuid();
    connection->is_observer =
        wharf_observer_is(&connection->server->observers, connection->fd, &peer);
}

static void let_in(struct wharf_server *server, int fd, uid_t uid, pid_t pid,
                   struct wharf_tenant *tenant)
{
    if (server->is_draining) {
        turn_away(server, fd, tenant, NULL, ESHUTDOWN, "the daemon is going down: connect again");
        return;
    }
    struct wharf_connection *connection = tenant ? connection_new(server, fd, tenant) : NULL;
    if (!connection) {
        turn_away(server, fd, tenant, NULL, ENOMEM, "the daemon is out of memory");
        return;
    }
    connection->uid = uid;
    connection->pid = pid;
    set_rights(connection);
    const char *text = NULL;
    int r = wharf_room_charge(connection, &text);
    if (r < 0 && r != -EINPROGRESS) {
        turn_back(connection, -r, text);
        return;
    }
    r = start(connection);
    if (r < 0)
        turn_back(connection, -r, "the daemon cannot wait for one more connection");
}

void wharf_connection_new(struct wharf_server *server, int fd, uid_t uid, pid_t pid,
                          const char *tenant_name, const char *group)
{
    struct wharf_tenant *tenant = find_tenant(server, tenant_name, group);

    let_in(server, fd, uid, pid, tenant);
    unpin(server, tenant);
}
