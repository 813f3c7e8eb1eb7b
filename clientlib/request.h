/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h: a program's own question to the daemon, and the answer.
 */
#ifndef WHARF_CLIENT_REQUEST_H
#define WHARF_CLIENT_REQUEST_H

#include "proto/control.h"

struct wharf;

/*
 * Sends the request on the connection of the moment, by wharf_client_link_send.  Returns 0,
 * -EAGAIN, another -errno, or 1 if there is nothing to ask any more.
 */
typedef int wharf_client_send_fn(struct wharf *wharf, void *data);

/* An answer, unpacked; large. */
struct wharf_client_answer {
    struct wharf_control_memory memory;
    const Wharf__Reply *reply; /* in it; NULL if there was nothing to ask */
};

/*
 * wharf_client_request: sends and waits, from one connection to the next if need be, at most for
 * the handle's patience.  The caller has request_lock and the lock, which is let go of meanwhile.
 * Returns 0 with the answer; the daemon's own error, with its text as the message; -ETIMEDOUT,
 * -ENOTCONN or -EPROTO.
 */
int wharf_client_request(struct wharf *wharf, wharf_client_send_fn *send, void *data,
                         struct wharf_client_answer *answer);

/*
 * wharf_client_request_done: the same for a request that is answered with Done.  An embedded handle
 * has nobody to ask: 0.
 */
int wharf_client_request_done(struct wharf *wharf, wharf_client_send_fn *send, void *data,
                              struct wharf_client_answer *answer);

/*
 * wharf_client_request_removal: the same for a request to forget what this daemon was told of; the
 * next one is not told of it, and not asked.  -EBUSY is the one error after which the daemon still
 * has it; with -ETIMEDOUT nobody knows.
 */
int wharf_client_request_removal(struct wharf *wharf, Wharf__Request *request,
                                 struct wharf_client_answer *answer);

/* What is done with request_lock and the lock.  Returns 0 or -errno. */
typedef int wharf_client_ask_fn(struct wharf *wharf, void *data,
                                struct wharf_client_answer *answer);

/*
 * wharf_client_with_answer: takes both locks of a handle that was checked, does that, and leaves.
 * Returns what it returned, or -ENOMEM.
 */
int wharf_client_with_answer(struct wharf *wharf, wharf_client_ask_fn *ask, void *data);

/*
 * wharf_client_ask: wharf_client_request_done with no locks held and nothing checked.  What
 * differs: on an embedded handle, -ENOTCONN.
 */
int wharf_client_ask(struct wharf *wharf, wharf_client_send_fn *send, void *data);

#endif
