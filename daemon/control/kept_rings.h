/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_rings.h: keeps what clients hold of sessions that are over (left_rings.h) charged.
 *
 * The kernel does not tell when the last holder is gone.  So it is asked again and again, after as
 * long as it has been asked.
 */
#ifndef WHARF_DAEMON_CONTROL_KEPT_RINGS_H
#define WHARF_DAEMON_CONTROL_KEPT_RINGS_H

struct wharf_left_rings;
struct wharf_server;
struct wharf_tenant;

/* Keeps them until they are let go of, and their charge; this is an end of the tenant's that is
 * under way.  Out of memory both are given back at once. */
void wharf_kept_rings_add(struct wharf_server *server, struct wharf_tenant *tenant,
                          struct wharf_left_rings *left);

/* Lets go of all. */
void wharf_kept_rings_free(struct wharf_server *server);

#endif
