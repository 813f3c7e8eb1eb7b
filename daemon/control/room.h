/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room.h: clients that wait for quota which their tenant is about to return.
 *
 * A client that closes a connection and opens another one is within its quota.  But the daemon
 * notices the end a moment later, and freeing the memory takes longer.  So a request over the quota
 * waits, for a second at most, while something of the tenant's is coming back: a closed connection,
 * a session or memory that is being freed, or a process for files that ends.  Otherwise it is
 * refused at once.  No request waits for totals.
 *
 * A session's first file makes the daemon start a process.  That takes a few milliseconds of a
 * processor, for which no turn of the loop stands; so a tenant may have some started at once, and
 * then the others wait for their turn.
 *
 * Operators can always inspect and drain the daemon: a few places are reserved for operator
 * connections that would otherwise be refused.  Such a connection may have a small queue, beyond
 * all limits.  Loop thread.
 */
#ifndef WHARF_DAEMON_CONTROL_ROOM_H
#define WHARF_DAEMON_CONTROL_ROOM_H

#include <stdbool.h>

#include "daemon/core/totals.h"
#include "proto/control.h"

struct wharf_connection;
struct wharf_tenant;

/*
 * Whether a request, which is still in the socket, has to wait.  Then holds the connection; the
 * packet is examined again later.
 */
bool wharf_room_awaits(struct wharf_connection *connection, const Wharf__Request *request);

/*
 * Charges a new connection.  0; -EDQUOT with a text; or -EINPROGRESS: it is charged beyond the
 * quota, and the caller has to call wharf_room_await when it is in the loop.
 */
int wharf_room_charge(struct wharf_connection *connection, const char **ret_text);

/* Makes a held connection over the quota wait until there is room, or refuses it. */
void wharf_room_await(struct wharf_connection *connection);

/* A tenant's charge for connections over its quota; it does not count against others. */
struct wharf_use wharf_room_use_over(const struct wharf_tenant *tenant);

/*
 * Whether the queue is small and the connection has, or now gets, a reserved place; then charge it
 * without a check.  `text` names the limit that it exceeds.
 */
bool wharf_room_reserve_queue(struct wharf_connection *connection,
                              const Wharf__OpenQueueRequest *open, const char *text);

/* The reason to refuse that queue to a connection with a reserved place; NULL: none. */
const char *wharf_room_refuses_queue(const struct wharf_connection *connection,
                                     const Wharf__OpenQueueRequest *open);

/* The connection is about to end. */
void wharf_room_forget(struct wharf_connection *connection);

#endif
