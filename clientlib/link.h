/* SPDX-License-Identifier: Apache-2.0 */
/*
 * link.h: the connection to the daemon, and to the next one when it is lost.
 *
 * Nothing here sleeps but wharf_client_link_sleep: each call does what can be done now, so that
 * whichever thread makes the next call drives it on (link_drive.h).  All is guarded by the handle's
 * lock.
 */
#ifndef WHARF_CLIENT_LINK_H
#define WHARF_CLIENT_LINK_H

#include "clientlib/link_state.h"

struct wharf;

/*
 * wharf_client_link_init: DOWN.  `path`, which fits, may be NULL for a link that will never be
 * used.  Returns 0 or -ENOMEM; deinit takes what it left in both cases.
 */
int wharf_client_link_init(struct wharf_client_link *link, const char *path);
void wharf_client_link_deinit(struct wharf_client_link *link, int is_forked);

/*
 * wharf_client_link_listen: reads what is in the socket while UP: wake-ups, a reply to `reply`, the
 * connection's end.  Does nothing while a call waits for a reply, which then does it itself: `mine`
 * is set by that call.
 */
void wharf_client_link_listen(struct wharf *wharf, int mine);

/*
 * The same when completions have not come for a while: at first after a short one, since jobs take
 * moments, then ever more rarely.
 */
void wharf_client_link_listen_if_due(struct wharf *wharf);

/* wharf_client_link_sleep: until there is something for step, or deadline_ns, or a little while. */
void wharf_client_link_sleep(struct wharf *wharf, uint64_t deadline_ns);

/*
 * wharf_client_link_error: whether it makes sense to wait for the daemon: 0, -EPROTO (BROKEN) or
 * -ENOTCONN (away for longer than patience), with a message.
 */
int wharf_client_link_error(const struct wharf *wharf);

/* ---- for link.c's neighbours ---------------------------------------------------------------- */

/* wharf_client_link_lost: the connection is no more, for this reason: try again later. */
__attribute__((format(printf, 3, 4))) void wharf_client_link_lost(struct wharf *wharf, int error,
                                                                  const char *format, ...);

/* wharf_client_link_break: the daemon is not to be trusted, for this reason. */
__attribute__((format(printf, 2, 3))) void wharf_client_link_break(struct wharf *wharf,
                                                                   const char *format, ...);

/*
 * wharf_client_link_read: reads one packet.  Returns 1 with *ret_reply set to a reply, or to NULL
 * for any other packet; 0 if there is none now or the connection is over.  Descriptors that came
 * with it stay in the receiver until close_received.
 */
int wharf_client_link_read(struct wharf *wharf, const Wharf__Reply **ret_reply);
void wharf_client_link_close_received(struct wharf_client_link *link);

/* wharf_client_error_code: an Error's number, negative; -EPROTO for what is none. */
int wharf_client_error_code(const Wharf__Error *error);

/*
 * wharf_client_link_send: numbers and sends a request with n_fds descriptors.  Returns 0, -EAGAIN
 * (no room: the daemon has to read first) or another -errno.
 */
int wharf_client_link_send(struct wharf_client_link *link, Wharf__Request *request, const int *fds,
                           size_t n_fds);

#endif
