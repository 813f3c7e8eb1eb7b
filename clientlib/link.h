/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h: the connection to the daemon, and to the next one when it is lost.
 *
 * Only wharf_client_link_sleep sleeps.  Each other call does what is possible now, and the next
 * call of any thread continues (link_drive.h).  Guarded by the handle's lock.
 */
#ifndef WHARF_CLIENT_LINK_H
#define WHARF_CLIENT_LINK_H

#include "clientlib/link_state.h"

struct wharf;

/*
 * wharf_client_link_init: initially DOWN.  `path`, which fits, may be NULL for a link that is never
 * used.  Returns 0 or -ENOMEM; deinit works in both cases.
 */
int wharf_client_link_init(struct wharf_client_link *link, const char *path);
void wharf_client_link_deinit(struct wharf_client_link *link, int is_forked);

/*
 * wharf_client_link_listen: while UP, reads packets from the socket: wake-ups, a reply for `reply`,
 * the connection's end.  While a call waits for a reply, only that call, with `mine`, does it.
 */
void wharf_client_link_listen(struct wharf *wharf, int mine);

/*
 * The same if no completion has come for a while: soon at first, since most jobs are short, then
 * ever more rarely.
 */
void wharf_client_link_listen_if_due(struct wharf *wharf);

/* wharf_client_link_sleep: sleeps until there is work for wharf_client_link_step, until
 * deadline_ns, or for a little while. */
void wharf_client_link_sleep(struct wharf *wharf, uint64_t deadline_ns);

/*
 * wharf_client_link_error: 0 if waiting for the daemon makes sense; else -EPROTO (BROKEN) or
 * -ENOTCONN (away for longer than patience), with a message.
 */
int wharf_client_link_error(const struct wharf *wharf);

/* wharf_client_link_is_lost: whether that makes none. */
int wharf_client_link_is_lost(const struct wharf_client_link *link);

/* ---- for link.c's neighbours ---------------------------------------------------------------- */

/* wharf_client_link_lost: closes the connection for this reason; it is tried again later. */
__attribute__((format(printf, 3, 4))) void wharf_client_link_lost(struct wharf *wharf, int error,
                                                                  const char *format, ...);

/* wharf_client_link_break: makes the link BROKEN: the daemon cannot be trusted, for this reason. */
__attribute__((format(printf, 2, 3))) void wharf_client_link_break(struct wharf *wharf,
                                                                   const char *format, ...);

/*
 * wharf_client_link_read: reads one packet.  Returns 1 with *ret_reply set to a reply, or to NULL
 * for any other packet; 0 if there is none now or the connection is over.  Descriptors that came
 * with it stay in the receiver until close_received.
 */
int wharf_client_link_read(struct wharf *wharf, const Wharf__Reply **ret_reply);
void wharf_client_link_close_received(struct wharf_client_link *link);

/* wharf_client_error_code: an Error's number, negative; -EPROTO if it is not a valid one. */
int wharf_client_error_code(const Wharf__Error *error);

/*
 * wharf_client_link_send: numbers and sends a request with n_fds descriptors.  Returns 0, -EAGAIN
 * (no room: the daemon has to read first) or another -errno.
 */
int wharf_client_link_send(struct wharf_client_link *link, Wharf__Request *request, const int *fds,
                           size_t n_fds);

#endif
