/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.h: the front's side of the process that receives clients' descriptors (gate_protocol.h).
 * Loop thread.
 */
#ifndef WHARF_DAEMON_CONTROL_GATE_H
#define WHARF_DAEMON_CONTROL_GATE_H

#include <stdint.h>
#include <sys/types.h>

#include "proto/control.h"

struct wharf_connection;
struct wharf_gate;
struct wharf_server;

/* A tenant whose descriptors have hung so many gates gets no more through, as long as these are
 * there and for wharf_config_barred_ns after the last one. */
#define WHARF_GATE_MOST_HUNG 2

/*
 * wharf_gate_new: starts the first process.  wharf_gate_wait waits until it has started: a daemon
 * whose gate cannot, because a library is not found or a limit is in the way, could serve new
 * clients, but none that come with the memory that an earlier daemon left them.  Both return 0 or
 * -errno, having logged why.
 */
int wharf_gate_new(struct wharf_server *server, struct wharf_gate **ret_gate);
int wharf_gate_wait(struct wharf_gate *gate);
void wharf_gate_free(struct wharf_gate *gate);

/*
 * The connection's next packet is a request with a descriptor: it is held until the packet has come
 * back from the gate, and then the request is carried out; or else it is refused.
 */
void wharf_gate_ask(struct wharf_gate *gate, struct wharf_connection *connection);

/* The connection ends: whatever comes back from the gate for it is dropped. */
void wharf_gate_forget(struct wharf_gate *gate, struct wharf_connection *connection);

#endif
