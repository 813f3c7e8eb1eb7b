/* SPDX-License-Identifier: Apache-2.0 */
/*
 * observer.h: who may see all tenants' statistics: root, the daemon's user and the members of
 * observer_group.
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

/* Looks the group up at the start, because that can take long.  Logs an unknown group. */
void wharf_observers_init(struct wharf_observers *observers, const char *group);

/* Whether the client at that socket is an observer, by its groups at the time of connecting. */
bool wharf_observer_is(const struct wharf_observers *observers, int fd, const struct ucred *peer);

#endif
