/* SPDX-License-Identifier: Apache-2.0 */
/* observer.c: finds out who may see all tenants' statistics. */
#include "daemon/control/observer.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/log.h"
#include "daemon/base/log_level.h"

/* Groups for which there is room at first. */
#define SOME_GROUPS 64

void wharf_observers_init(struct wharf_observers *observers, const char *group)
{
    const struct group *found = group[0] ? getgrnam(group) : NULL;

    *observers = (struct wharf_observers){.has_group = found != NULL};
    if (found)
        observers->group = found->gr_gid;
    else if (group[0])
        wharf_log(WHARF_LOG_WARNING, NULL, "observer_group = %s: there is no such group", group);
}

static bool has(const gid_t *groups, socklen_t nbytes, gid_t group)
{
    for (size_t i = 0; i < nbytes / sizeof(gid_t); i++)
        if (groups[i] == group)
            return true;
    return false;
}

/* Beside the primary one. */
static bool is_in_other(int fd, gid_t group)
{
    gid_t some[SOME_GROUPS];
    socklen_t nbytes = sizeof(some);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, some, &nbytes) == 0)
        return has(some, nbytes, group);
    if (errno != ERANGE)
        return false;
    WHARF_CLEANUP_FREE gid_t *all = malloc(nbytes);
    return all && getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, all, &nbytes) == 0 &&
           has(all, nbytes, group);
}

bool wharf_observer_is(const struct wharf_observers *observers, int fd, const struct ucred *peer)
{
    if (peer->uid == 0 || peer->uid == geteuid())
        return true;
    return observers->has_group &&
           (peer->gid == observers->group || is_in_other(fd, observers->group));
}
