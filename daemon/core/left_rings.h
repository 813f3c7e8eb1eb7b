/* SPDX-License-Identifier: Apache-2.0 */
/*
 * left_rings.h: rings of a session that is over, which its client has not let go of.
 *
 * The daemon made C and D and gave them their pages, so these are its own memory for as long as a
 * client has a descriptor or a mapping, or leaves the packet unread in which they came; and a
 * packet counts among the descriptors that the daemon has in flight, of which the kernel allows no
 * more than it allows open files.  Nothing takes that from the client: both are sealed.  So they
 * stay charged to the tenant, who could otherwise open and close queues until the machine has no
 * memory left, or the daemon can send no descriptors to anybody.
 *
 * The kernel says of an inode whether there is another opening (wharf_segment_is_held).
 */
#ifndef WHARF_DAEMON_CORE_LEFT_RINGS_H
#define WHARF_DAEMON_CORE_LEFT_RINGS_H

#include <stdbool.h>

#include "daemon/core/segment.h"
#include "daemon/core/totals.h"

struct wharf_session;

/* C and D, or one of them. */
struct wharf_left_rings {
    struct wharf_segment rings[2]; /* not mapped; fd -1: nobody has it any more */
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

/* Takes the rings of a session, which nobody uses any more, that are held.  Any thread. */
void wharf_left_rings_take(struct wharf_left_rings *left, struct wharf_session *session);

/* What is charged for them, which was part of what the session was charged. */
struct wharf_use wharf_left_rings_use(const struct wharf_left_rings *left);

/* Closes those that are not held any more, or all of them.  Returns what need not be charged any
 * more. */
struct wharf_use wharf_left_rings_let_go(struct wharf_left_rings *left, bool even_if_held);

#endif
