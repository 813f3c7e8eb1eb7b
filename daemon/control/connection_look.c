/* SPDX-License-Identifier: Apache-2.0 */
/* connection_look.c: polls the rings of connections, including connections that are on hold. */
#include "daemon/base/clock.h"
#include "daemon/base/list.h"
#include "daemon/base/loop.h"
#include "daemon/control/connection.h"
#include "daemon/core/session.h"
#include "daemon/core/tenant.h"
#include "daemon/cpu/cpu_here.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/intake.h"

/* How often to poll the ring of a connection on hold, while its memory is imported, which takes a
 * millisecond if a worker runs, or its statistics are made. */
#define LOOK_NS (2 * (uint64_t)WHARF_NS_PER_MS)

bool wharf_connection_look_at_ring(struct wharf_connection *connection, unsigned n_wakes,
                                   bool has_turn)
{
    struct wharf_server *server = connection->server;

    if (!connection->session || !wharf_session_ring_is_whole(connection->session))
        return false;
    wharf_core_enter(&server->core);
    bool was_needed = wharf_core_doorbell(&server->core, connection->session, n_wakes);
    if (was_needed && has_turn)
        wharf_cpu_here_run(&server->core, &server->here);
    wharf_core_leave(&server->core);
    return was_needed;
}

/* Polls a ring from a timer.  All of a tenant's connections could do this at once, outside the
 * tenant's turns; so the time is charged, and workers decode what is found. */
static void look_meanwhile(struct wharf_timer *timer)
{
    struct wharf_connection *connection =
        WHARF_LIST_ENTRY(timer, struct wharf_connection, look_timer);
    struct wharf_loop *loop = connection->server->loop;
    uint64_t begun_ns = wharf_loop_processor_ns();

    if (connection->state == WHARF_CONNECTION_CLOSING)
        return;
    wharf_connection_look_at_ring(connection, 0, false);
    wharf_timer_set(loop, timer, wharf_now_ns() + LOOK_NS, look_meanwhile);
    wharf_loop_charge(loop, connection->tenant->loop_party, wharf_loop_processor_ns() - begun_ns);
}

static void hold_and_look(struct wharf_connection *connection, enum wharf_connection_hold hold)
{
    wharf_connection_hold(connection, hold);
    wharf_timer_set(connection->server->loop, &connection->look_timer, wharf_now_ns() + LOOK_NS,
                    look_meanwhile);
}

static void release_looked_at(struct wharf_connection *connection, enum wharf_connection_hold hold)
{
    wharf_timer_clear(connection->server->loop, &connection->look_timer);
    wharf_connection_release(connection, hold);
}

void wharf_connection_hold_import(struct wharf_connection *connection)
{
    hold_and_look(connection, WHARF_HOLD_IMPORT);
}

void wharf_connection_release_import(struct wharf_connection *connection)
{
    release_looked_at(connection, WHARF_HOLD_IMPORT);
}

void wharf_connection_hold_stats(struct wharf_connection *connection)
{
    hold_and_look(connection, WHARF_HOLD_STATS);
}

void wharf_connection_release_stats(struct wharf_connection *connection)
{
    release_looked_at(connection, WHARF_HOLD_STATS);
}
