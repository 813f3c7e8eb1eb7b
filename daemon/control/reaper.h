/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reaper.h: a thread that frees the memory of dead sessions and regions, so that nobody else waits
 * for it: unmapping and emptying takes some 50 ms for a GiB.
 */
#ifndef WHARF_DAEMON_CONTROL_REAPER_H
#define WHARF_DAEMON_CONTROL_REAPER_H

#include "daemon/core/left_rings.h"
#include "daemon/core/segment.h"
#include "daemon/core/session.h"
#include "daemon/core/tenant.h"

struct wharf_loop;
struct wharf_reaper;

struct wharf_reaped {
    struct wharf_tenant *tenant;
    struct wharf_use use; /* all of it, that of rings that are left included */
    struct wharf_left_rings left;
};

/* Wakes the loop when something was freed.  0 or -errno. */
int wharf_reaper_new(struct wharf_loop *loop, struct wharf_reaper **ret_reaper);

/* Ends the thread when all is freed. */
void wharf_reaper_free(struct wharf_reaper *reaper);

/*
 * Frees a session, or a segment, whose use was charged to a tenant.  Nobody uses them any more.
 * Returns true if wharf_reaper_next will tell of it, or false if there was no memory to remember
 * it: then it has been freed on the caller's thread, and the caller gives its use back.
 */
bool wharf_reaper_session(struct wharf_reaper *reaper, struct wharf_session *session);
bool wharf_reaper_segment(struct wharf_reaper *reaper, const struct wharf_segment *segment,
                          struct wharf_tenant *tenant, const struct wharf_use *use);

/* What was freed, one at a time: whose use can be given back.  Returns whether there was one.  Of a
 * session its client may still hold rings, which are the caller's, with what is charged for them.
 */
bool wharf_reaper_next(struct wharf_reaper *reaper, struct wharf_reaped *ret_reaped);

#endif
