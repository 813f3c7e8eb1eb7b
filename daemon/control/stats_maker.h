/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_maker.h: the thread that makes snapshots of statistics, and the connections that read them.
 *
 * A request for the first page is answered from a snapshot that starts after the request.  One
 * snapshot is made at a time, and all earlier requests share it.  A connection reads one snapshot,
 * until it has the last page, asks for the first page again, or ends.  A snapshot without readers
 * is freed.  When snapshots exceed WHARF_STATS_MOST_KEPT_NBYTES, the least recently read ones are
 * dropped, and their readers have to start over.  Scrapes get a snapshot's text instead, which they
 * keep.
 *
 * All functions are for the loop thread.
 */
#ifndef WHARF_DAEMON_CONTROL_STATS_MAKER_H
#define WHARF_DAEMON_CONTROL_STATS_MAKER_H

#include <stdint.h>

#include "daemon/control/server.h"

struct wharf_connection;
struct wharf_stats_maker;
struct wharf_stats_text;

/* The most memory of all snapshots together: about 8 of the largest. */
#define WHARF_STATS_MOST_KEPT_NBYTES ((size_t)32 << 20)

/* Starts the thread.  0 or -errno. */
int wharf_stats_maker_new(struct wharf_server *server, struct wharf_stats_maker **ret_maker);
void wharf_stats_maker_free(struct wharf_stats_maker *maker);

/* Sends the first page of a new snapshot when it is made.  The connection is held until then. */
void wharf_stats_ask(struct wharf_connection *connection, uint32_t request);

/* Sends a later page of the connection's snapshot.  Returns 0; -EINVAL: there is no such page; or
 * -ESTALE: the snapshot was dropped. */
int wharf_stats_send(struct wharf_connection *connection, uint32_t request, uint64_t first);

/* Queues a scrape's `link` for the text of a new snapshot, which `answer`, the same for all
 * scrapes, gets; NULL: out of memory.  To stop waiting, unlink it. */
typedef void wharf_stats_text_fn(struct wharf_list *link, struct wharf_stats_text *text);
void wharf_stats_ask_text(struct wharf_server *server, struct wharf_list *link,
                          wharf_stats_text_fn *answer);

/* The connection ends. */
void wharf_stats_forget(struct wharf_connection *connection);

/* Takes new snapshots from the thread, and answers those who wait. */
void wharf_stats_take_made(struct wharf_server *server);

#endif
