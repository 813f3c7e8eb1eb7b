/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_maker.h: the thread that makes snapshots of statistics, and the connections that read them.
 *
 * A connection that asks for the first page gets it from a snapshot that is begun afterwards.  One
 * snapshot is made at a time; all connections that asked before it was begun share it.  A
 * connection reads one snapshot, until it has got the last page, asks for the first page again, or
 * ends.  A snapshot without readers is freed.  When snapshots take more than
 * WHARF_STATS_MOST_KEPT_NBYTES, those that were read longest ago are dropped, and their readers
 * have to begin again.  Scrapes get the text of a snapshot instead, and have that to themselves.
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

/* The most memory of all snapshots together: some 8 of the largest. */
#define WHARF_STATS_MOST_KEPT_NBYTES ((size_t)32 << 20)

/* Starts the thread.  0 or -errno. */
int wharf_stats_maker_new(struct wharf_server *server, struct wharf_stats_maker **ret_maker);
void wharf_stats_maker_free(struct wharf_stats_maker *maker);

/* Sends the first page of a new snapshot when it is made.  The connection is held until then. */
void wharf_stats_ask(struct wharf_connection *connection, uint32_t request);

/* Sends a later page of the snapshot that the connection reads.  Returns 0; -EINVAL: there is no
 * such page; or -ESTALE: the snapshot was dropped for the sake of later ones. */
int wharf_stats_send(struct wharf_connection *connection, uint32_t request, uint64_t first);

/* Has `link`, of a scrape, wait for the text of a new snapshot; `answer`, the same for
 * all, gets it; NULL: out of memory.  Who waits no more unlinks it. */
typedef void wharf_stats_text_fn(struct wharf_list *link, struct wharf_stats_text *text);
void wharf_stats_ask_text(struct wharf_server *server, struct wharf_list *link,
                          wharf_stats_text_fn *answer);

/* The connection ends. */
void wharf_stats_forget(struct wharf_connection *connection);

/* Takes the snapshots that the thread has made, and answers those who wait for them. */
void wharf_stats_take_made(struct wharf_server *server);

#endif
