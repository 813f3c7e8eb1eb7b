/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reaper.h: a thread that frees the memory of dead sessions and regions, because unmapping and
 * freeing pages takes about 50 ms for a GiB.
 */
#ifndef WHARF_DAEMON_CONTROL_REAPER_H
#define WHARF_DAEMON_CONTROL_REAPER_H

#include "daemon/core/left_rings.h"
#include "daemon/core/segment.h"
#include "daemon/core/session.h"
#include "daemon/core/tenant.h"

struct wharf_loop;
struct wharf_reaper;
struct wharf_shared_charge;

struct wharf_reaped {
    struct wharf_tenant *tenant;
    struct wharf_use use; /* the whole charge, including that of `left` */
    struct wharf_left_rings left;
    struct wharf_shared_charge *shared; /* NULL, or of the area for its files */
};

/* Wakes the loop when something was freed.  0 or -errno. */
int wharf_reaper_new(struct wharf_loop *loop, struct wharf_reaper **ret_reaper);

/* Ends the thread when all is freed. */
void wharf_reaper_free(struct wharf_reaper *reaper);

/*
 * Frees an unused session, or an unused segment that was charged to a tenant.  Returns true if
 * wharf_reaper_next will report it.  Without memory for that, frees it on the caller's thread and
 * returns false; then the caller returns the charge.
 */
bool wharf_reaper_session(struct wharf_reaper *reaper, struct wharf_session *session);
bool wharf_reaper_segment(struct wharf_reaper *reaper, const struct wharf_segment *segment,
                          struct wharf_tenant *tenant, const struct wharf_use *use);

/* Takes the next report of freed memory, whose charge can be returned.  Returns whether there was
 * one.  Rings that the client still holds, and their charge, pass to the caller in `left`. */
bool wharf_reaper_next(struct wharf_reaper *reaper, struct wharf_reaped *ret_reaped);

#endif
