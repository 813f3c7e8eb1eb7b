/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What letting a client in costs the loop thread is its tenant's debt: connections are accepted in
 * the turn of the socket, before anybody knows whose they are.  A server without a socket, whose
 * loop does not turn: all that its tenants owe is for that.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/config.h"
#include "daemon/base/fair_queue.h"
#include "daemon/base/loop.h"
#include "daemon/control/connection.h"
#include "daemon/control/connection_accept.h"
#include "daemon/control/server.h"
#include "daemon/core/tenant.h"
#include "daemon/core/totals.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/disposable/closer_process.h"

enum { N_TIMES = 16 };

static struct wharf_server server;

static void set_up(void)
{
    struct wharf_totals totals;

    wharf_config_init(&server.config);
    server.is_promised = true;
    wharf_list_init(&server.connections);
    wharf_list_init(&server.closing);
    cr_assert_eq(wharf_loop_new(WHARF_LOOP_EPOLL, &server.loop), 0);
    cr_assert_eq(wharf_core_init(&server.core, &server.config, server.loop), 0);
    wharf_totals_init_boundless(&totals);
    wharf_tenants_set_totals(&server.core.tenants, &totals);
    cr_assert_eq(wharf_closer_process_new(server.loop, &server.core, &server.closer_process), 0);
}

/* There is nobody else whom its end would be told. */
static void connection_free(struct wharf_connection *connection)
{
    wharf_loop_remove(server.loop, &connection->source);
    wharf_timer_clear(server.loop, &connection->hello_timer);
    wharf_list_remove(&connection->link);
    wharf_list_remove(&connection->tenant_link);
    wharf_closer_process_take(server.closer_process, connection->fd, connection->tenant,
                              &connection->use);
    free(connection);
}

static void tear_down(void)
{
    struct wharf_connection *connection;

    while ((connection = WHARF_LIST_FIRST(&server.connections, struct wharf_connection, link)))
        connection_free(connection);
    wharf_closer_process_free(server.closer_process);
    wharf_core_deinit(&server.core);
    wharf_loop_free(server.loop);
    wharf_config_deinit(&server.config);
}

static void connect_as(const char *tenant, unsigned n_times)
{
    int pair[2];

    for (unsigned i = 0; i < n_times; i++) {
        cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        wharf_connection_new(&server, pair[0], getuid(), getpid(), tenant, NULL);
        close(pair[1]);
    }
}

static const struct wharf_fair_party *party_of(const char *tenant)
{
    wharf_core_enter(&server.core);
    struct wharf_tenant *found = wharf_tenants_get(&server.core.tenants, tenant, &server.config);
    struct wharf_fair_party *party = wharf_tenant_party(found);
    wharf_tenant_unref(found);
    wharf_core_leave(&server.core);
    return party;
}

/* Nothing noticed when it was not charged: who connects all the time was always next. */
Test(wharfd_accept, who_connects_often_has_its_turn_later, .init = set_up, .fini = tear_down)
{
    connect_as("uid:1", 1);
    connect_as("uid:2", N_TIMES);
    cr_expect(wharf_fair_party_owes(party_of("uid:1")));
    cr_expect(wharf_fair_party_is_before(party_of("uid:1"), party_of("uid:2")));
    connect_as("uid:1", 2 * N_TIMES);
    cr_expect(wharf_fair_party_is_before(party_of("uid:2"), party_of("uid:1")));
}

Test(wharfd_accept, who_is_turned_away_often_has_its_turn_later, .init = set_up, .fini = tear_down)
{
    connect_as("uid:1", 1);
    connect_as("uid:2", 1);
    server.is_draining = true;
    connect_as("uid:2", N_TIMES);
    cr_expect(wharf_fair_party_is_before(party_of("uid:1"), party_of("uid:2")));
    connect_as("uid:1", 2 * N_TIMES);
    cr_expect(wharf_fair_party_is_before(party_of("uid:2"), party_of("uid:1")));
}
