/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h: a program's own question to the daemon, and the answer.
 */
#ifndef WHARF_CLIENT_REQUEST_H
#define WHARF_CLIENT_REQUEST_H

#include "proto/control.h"

struct wharf;

/*
 * Sends the request on the present connection, by wharf_client_link_send.  Returns 0, -EAGAIN,
 * another -errno, or 1 if the request is no longer needed.
 */
typedef int wharf_client_send_fn(struct wharf *wharf, void *data);

/* An answer, unpacked; large. */
struct wharf_client_answer {
    struct wharf_control_memory memory;
    const Wharf__Reply *reply; /* in the packet; NULL if no request was needed */
};

/*
 * wharf_client_request: sends a request and waits for the reply, on new connections if necessary,
 * at most for the handle's patience.  The caller has request_lock and the lock, which is released
 * meanwhile.  Returns 0 with the answer; the daemon's error, with its text as the message; or
 * -ETIMEDOUT, -ENOTCONN or -EPROTO.
 */
int wharf_client_request(struct wharf *wharf, wharf_client_send_fn *send, void *data,
                         struct wharf_client_answer *answer);

/*
 * wharf_client_request_done: the same for a request that is answered with Done.  Returns 0 on an
 * embedded handle.
 */
int wharf_client_request_done(struct wharf *wharf, wharf_client_send_fn *send, void *data,
                              struct wharf_client_answer *answer);

/*
 * wharf_client_request_removal: the same for a request that removes a registration; a new daemon
 * does not have it and is not asked.  Only after -EBUSY the daemon still has it; after -ETIMEDOUT
 * that is unknown.
 */
int wharf_client_request_removal(struct wharf *wharf, Wharf__Request *request,
                                 struct wharf_client_answer *answer);

/* Called with request_lock and the lock.  Returns 0 or -errno. */
typedef int wharf_client_ask_fn(struct wharf *wharf, void *data,
                                struct wharf_client_answer *answer);

/*
 * wharf_client_with_answer: takes both locks of a checked handle, calls `ask`, and leaves.  Returns
 * its result, or -ENOMEM.
 */
int wharf_client_with_answer(struct wharf *wharf, wharf_client_ask_fn *ask, void *data);

/*
 * wharf_client_ask: wharf_client_request_done for an unchecked handle without locks.  Returns
 * -ENOTCONN on an embedded handle.
 */
int wharf_client_ask(struct wharf *wharf, wharf_client_send_fn *send, void *data);

#endif
