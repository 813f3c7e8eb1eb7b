/* SPDX-License-Identifier: Apache-2.0 */
/* region_place.h: entering regions into sessions.  Loop thread. */
#ifndef WHARF_DAEMON_CONTROL_REGION_PLACE_H
#define WHARF_DAEMON_CONTROL_REGION_PLACE_H

struct wharf_connection;
struct wharf_region;

/* wharf_region_begin reserves and charges a place for a region, and prevents leases of the session.
 * wharf_region_enter enters the region; or, if r is an error, returns the charge.  -EEXIST and
 * -EDQUOT come with *ret_text; after -ETIME call wharf_connection_part_from_blocked. */
int wharf_region_begin(struct wharf_connection *connection, const struct wharf_region *wanted,
                       struct wharf_region **ret_place, const char **ret_text);
int wharf_region_enter(struct wharf_connection *connection, const struct wharf_region *wanted,
                       struct wharf_region *place, int r);

/* Ends a connection whose session cannot be changed, because a blocked worker has a lease of it.
 * The client can reconnect. */
void wharf_connection_part_from_blocked(struct wharf_connection *connection);

#endif
