/* SPDX-License-Identifier: Apache-2.0 */
/*
 * observer.h: who may see what all tenants do: root, the daemon's own user and the members of the
 * group that observer_group names.
 */
#ifndef WHARF_DAEMON_CONTROL_OBSERVER_H
#define WHARF_DAEMON_CONTROL_OBSERVER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

struct wharf_observers {
    bool has_group;
    gid_t group;
};

/* Looks the group up, which can take long: at the start.  An unknown one is logged. */
void wharf_observers_init(struct wharf_observers *observers, const char *group);

/* Whether the client at that socket is one, by the groups that it had when it connected. */
bool wharf_observer_is(const struct wharf_observers *observers, int fd, const struct ucred *peer);

#endif
