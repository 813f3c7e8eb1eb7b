/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_reply.c: what is said to a request for a page of statistics.
 *
 * Observers (observer.h) see everybody, in snapshots (stats_maker.h).  Others see
 * themselves and the daemon as a whole, which is little: each page is made from what is there when
 * it is asked for.  StatsRequest.first then is a cursor among the samples, of 8 bits of a family,
 * 48 of a row and 8 of an engine or class.
 */
#include "daemon/base/clock.h"
#include "daemon/base/loop.h"
#include "daemon/control/connection.h"
#include "daemon/control/replies.h"
#include "daemon/control/stats_fill.h"
#include "daemon/control/stats_maker.h"
#include "daemon/control/stats_page.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/session_end.h"

static struct wharf_stats_cursor cursor_unpack(uint64_t first)
{
    return (struct wharf_stats_cursor){
        .family = (unsigned)(first >> 56),
        .at = first >> 8 & 0xffffffffffffu,
        .part = (unsigned)(first & 0xff),
    };
}

static uint64_t cursor_pack(const struct wharf_stats_cursor *cursor)
{
    return (uint64_t)cursor->family << 56 | cursor->at << 8 | cursor->part;
}

/* What a tenant may see. */
static void look(const struct wharf_connection *connection, bool is_first,
                 struct wharf_stats_source *source)
{
    struct wharf_server *server = connection->server;

    source->daemon.io = wharf_loop_kind(server->loop) == WHARF_LOOP_URING ? "io_uring" : "epoll";
    source->daemon.uptime_s = 1e-9 * (double)(wharf_now_ns() - server->started_ns);
    wharf_core_enter(&server->core);
    /* What its leases have done counts too. */
    if (is_first)
        wharf_core_recall_all(&server->core, connection->tenant);
    wharf_stats_copy_daemon(&server->core, &source->daemon);
    wharf_stats_copy_tenant(connection->tenant, source->rows);
    wharf_core_leave(&server->core);
}

static int send_own(struct wharf_connection *connection, const Wharf__Request *request)
{
    struct wharf_stats_cursor cursor = cursor_unpack(request->stats->first);
    struct wharf_stats_row row = {.has_histograms = true};
    struct wharf_stats_source source = {.rows = &row, .n_rows = 1};
    static struct wharf_stats_page page; /* the loop thread's */

    if (!wharf_stats_cursor_is_good(&cursor))
        return -EINVAL;
    look(connection, request->stats->first == 0, &source);
    wharf_stats_page_init(&page, request->id);
    bool goes_on = wharf_stats_fill(&page, &source, &cursor);
    page.stats.next = goes_on ? cursor_pack(&cursor) : 0;
    page.stats.n_families = page.n_families;
    wharf_connection_send(connection, &page.reply, false);
    return 0;
}

void wharf_stats_reply(struct wharf_connection *connection, const Wharf__Request *request)
{
    int r = 0;

    if (!connection->is_observer)
        r = send_own(connection, request);
    else if (request->stats->first == 0)
        wharf_stats_ask(connection, request->id);
    else
        r = wharf_stats_send(connection, request->id, request->stats->first);
    if (r == -ESTALE)
        wharf_request_refuse(
            connection, request->id, ESTALE,
            "these statistics are gone, since others asked for newer ones: begin again");
    else if (r < 0)
        wharf_request_refuse(connection, request->id, EINVAL,
                             "there is no such page of statistics");
}
