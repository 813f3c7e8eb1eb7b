/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.h: the process that receives clients' descriptors, and the front's side of it.
 *
 * DESIGN.md says why it is a process of its own.  The front sends it the socket of a client whose
 * next packet has descriptors, and one byte, enum wharf_gate_kind: what the packet asks for.  It
 * receives the packet, keeps the descriptor if it is exactly one and of that kind, closes
 * everything else, and sends back:
 *
 *     struct wharf_gate_answer, then the packet's bytes; and the descriptor, if it was kept
 *
 * It does one packet at a time, and closes before it answers: a close that hangs is the fault of
 * the client whose answer is awaited.  First of all it sends an answer to nothing: it has started.
 */
#ifndef WHARF_DAEMON_CONTROL_GATE_H
#define WHARF_DAEMON_CONTROL_GATE_H

#include <stdint.h>
#include <sys/types.h>

#include "proto/control.h"

struct wharf_connection;
struct wharf_gate;
struct wharf_server;

enum wharf_gate_kind {
    WHARF_GATE_MEMFD = 0, /* a plain memfd that is sealed against changing its size */
    WHARF_GATE_GPU = 1,   /* one of the GPU driver's, as exported memory is */
};

struct wharf_gate_answer {
    int32_t error;   /* of receiving, negative; 0 */
    int32_t verdict; /* on the one descriptor: 0, or why it was not kept, as of
                         wharf_segment_check and wharf_segment_check_gpu */
    uint32_t n_fds;  /* that came */
    uint32_t packet_nbytes;
};

/* A tenant whose descriptors have hung so many gates gets no more through, as long as these are
 * there and for wharf_config_barred_ns after the last one. */
#define WHARF_GATE_MOST_HUNG 2

/* ---- the front's side: loop thread --------------------------------------------------------- */

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

/* ---- the gate ------------------------------------------------------------------------------ */

/* Its main function; `fd` leads to the front, whose process id is `parent`.  Returns the exit
 * status. */
int wharf_gate_main(int fd, pid_t parent);

#endif
