/* SPDX-License-Identifier: Apache-2.0 */
/*
 * room.h: clients that wait for what their tenant is about to give back.
 *
 * A client that closes a connection and opens the next one is within its quota, but the daemon
 * learns of the end a moment later, and freeing the memory takes longer still.  So what does not
 * fit into a tenant's quota is not refused while something of the tenant's is coming back: a
 * connection that has hung up, a session or memory that is being freed.  It waits for a second at
 * most.  Where nothing is coming back it is refused at once.  Totals of all tenants are not waited
 * for.
 *
 * Operators, who may drain the daemon, can always look at it and drain it: a few places are
 * reserved for connections of theirs that are refused otherwise.  Such a one has a small queue at
 * most, beyond all limits.  Loop thread.
 */
#ifndef WHARF_DAEMON_CONTROL_ROOM_H
#define WHARF_DAEMON_CONTROL_ROOM_H

#include <stdbool.h>

#include "daemon/core/totals.h"
#include "proto/control.h"

struct wharf_connection;
struct wharf_tenant;

/*
 * Whether a request, which is still in the socket, has to wait: the connection is held then, and
 * its packet looked at again later.
 */
bool wharf_room_awaits(struct wharf_connection *connection, const Wharf__Request *request);

/*
 * Charges a connection that was just accepted.  0; -EDQUOT with a text; -EINPROGRESS: it is charged
 * over the quota, and wharf_room_await has to be called when it is in the loop.
 */
int wharf_room_charge(struct wharf_connection *connection, const char **ret_text);

/* Has a connection that is over the quota, and is held, wait until there is room or it is refused.
 */
void wharf_room_await(struct wharf_connection *connection);

/* What a tenant is charged for connections that are over its quota: no others are kept out by it.
 */
struct wharf_use wharf_room_use_over(const struct wharf_tenant *tenant);

/*
 * Whether the queue is a small one, and the connection has or now gets a reserved place: it is to
 * be charged anyway.  `text` is of the limit that it is over.
 */
bool wharf_room_reserve_queue(struct wharf_connection *connection,
                              const Wharf__OpenQueueRequest *open, const char *text);

/* Why a connection with a reserved place may not have that queue; NULL: it may. */
const char *wharf_room_refuses_queue(const struct wharf_connection *connection,
                                     const Wharf__OpenQueueRequest *open);

/* The connection is about to end. */
void wharf_room_forget(struct wharf_connection *connection);

#endif
