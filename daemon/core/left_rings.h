/* SPDX-License-Identifier: Apache-2.0 */
/*
 * left_rings.h: rings of an ended session that the client has not released.
 *
 * The daemon created C and D and allocated their pages.  They remain its memory while the client
 * has a descriptor, a mapping, or the unread packet that carries the descriptors.  An unread packet
 * also counts against the descriptors in flight, which the kernel limits.  The daemon cannot take
 * the rings back, since both are sealed.  So they stay charged to the tenant.  Otherwise a client
 * could open and close queues until the machine has no memory, or the daemon can send no
 * descriptors.
 *
 * wharf_segment_is_held asks the kernel whether an inode is open elsewhere.
 */
#ifndef WHARF_DAEMON_CORE_LEFT_RINGS_H
#define WHARF_DAEMON_CORE_LEFT_RINGS_H

#include <stdbool.h>

#include "daemon/core/segment.h"
#include "daemon/core/totals.h"

struct wharf_session;

/* C and D, or one of them. */
struct wharf_left_rings {
    struct wharf_segment rings[2]; /* not mapped; fd -1: released */
};

#define WHARF_NO_LEFT_RINGS                                                                        \
    {                                                                                              \
        {                                                                                          \
            {.fd = -1},                                                                            \
            {                                                                                      \
                .fd = -1                                                                           \
            }                                                                                      \
        }                                                                                          \
    }

/* Takes those rings of an unused session that the client still holds.  Any thread. */
void wharf_left_rings_take(struct wharf_left_rings *left, struct wharf_session *session);

/* The charge for them, which was part of the session's. */
struct wharf_use wharf_left_rings_use(const struct wharf_left_rings *left);

/* Closes the rings that the client has released, or all of them.  Returns the charge that ends. */
struct wharf_use wharf_left_rings_let_go(struct wharf_left_rings *left, bool even_if_held);

#endif
