/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_rings.h: keeps the charge for rings that clients hold after their session's end
 * (left_rings.h).
 *
 * The kernel does not notify the daemon when the last holder is gone.  So the daemon polls, with
 * intervals that double.
 */
#ifndef WHARF_DAEMON_CONTROL_KEPT_RINGS_H
#define WHARF_DAEMON_CONTROL_KEPT_RINGS_H

struct wharf_left_rings;
struct wharf_server;
struct wharf_tenant;

/* Keeps the rings and their charge until the client releases them; meanwhile room.h counts them as
 * coming back.  Out of memory, gives both back at once. */
void wharf_kept_rings_add(struct wharf_server *server, struct wharf_tenant *tenant,
                          struct wharf_left_rings *left);

/* Closes all. */
void wharf_kept_rings_free(struct wharf_server *server);

#endif
