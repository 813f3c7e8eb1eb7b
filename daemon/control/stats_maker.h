/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats_maker.h: the thread that makes snapshots of statistics, and who reads which.
 *
 * Who asks for the first page gets that of a snapshot that is begun afterwards.  One is made at a
 * time, and all who asked before it was begun share it.  A connection reads one, until it got its
 * last page, asks for the first one again, or ends; one without readers is freed.  Of more than
 * WHARF_STATS_MOST_KEPT_NBYTES those that were read longest ago go, and their readers have to begin
 * again.
 *
 * For the loop thread.
 */
#ifndef WHARF_DAEMON_CONTROL_STATS_MAKER_H
#define WHARF_DAEMON_CONTROL_STATS_MAKER_H

#include <stdint.h>

#include "daemon/control/server.h"

struct wharf_connection;
struct wharf_stats_maker;

/* Of all snapshots that are read; some 8 of the largest. */
#define WHARF_STATS_MOST_KEPT_NBYTES ((size_t)32 << 20)

/* Starts the thread.  0 or -errno. */
int wharf_stats_maker_new(struct wharf_server *server, struct wharf_stats_maker **ret_maker);
void wharf_stats_maker_free(struct wharf_stats_maker *maker);

/* The connection, which is held until then, is sent the first page when that is there. */
void wharf_stats_ask(struct wharf_connection *connection, uint32_t request);

/* Sends a later page of the snapshot that the connection reads.  0, or -EINVAL: there is no such
 * page; or -ESTALE: that snapshot is gone, for the sake of later ones. */
int wharf_stats_send(struct wharf_connection *connection, uint32_t request, uint64_t first);

/* The connection ends. */
void wharf_stats_forget(struct wharf_connection *connection);

/* Snapshots that were made: their readers are answered. */
void wharf_stats_take_made(struct wharf_server *server);

#endif
