/* SPDX-License-Identifier: Apache-2.0 */
/* region_place.h: entering regions into sessions.  Loop thread. */
#ifndef WHARF_DAEMON_CONTROL_REGION_PLACE_H
#define WHARF_DAEMON_CONTROL_REGION_PLACE_H

struct wharf_connection;
struct wharf_region;

/* A region that is to be: a place for it, which is charged, and workers are kept away from the
 * session until it is entered; or, if that came to an error, what it was charged is given back.
 * -EEXIST and -EDQUOT: *ret_text; -ETIME: wharf_connection_part_from_blocked. */
int wharf_region_begin(struct wharf_connection *connection, const struct wharf_region *wanted,
                       struct wharf_region **ret_place, const char **ret_text);
int wharf_region_enter(struct wharf_connection *connection, const struct wharf_region *wanted,
                       struct wharf_region *place, int r);

/* Its session's regions and models cannot be changed: a worker has the session and is blocked in
 * its memory.  The client can go on with another one. */
void wharf_connection_part_from_blocked(struct wharf_connection *connection);

#endif
