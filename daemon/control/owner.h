/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner.h: which tenant pays for a client with a given uid.  Loop thread only.
 *
 * A user can use any of its subordinate uids, and must not become that many tenants.  The tenant of
 * a uid is the first of these that applies:
 *
 *     uid:N        the uid itself, if it has a section [tenant uid:N], is root, or is the overflow
 *                  uid, which stands for all uids without a mapping here
 *     block:N      its block, if [owners] blocks has the uid
 *     uid:OWNER    the tenant of its owner, by these same rules, if it is a subordinate uid
 *     uid:N        the uid itself, if it has no owner
 *     unknown      if the look-up of the owner failed
 *
 * If the configuration has sections [group NAME], a user's groups are looked up too; the first one
 * with a section gives the tenant its limits.
 *
 * A disposable process looks owners up (owner_lookup.h); the answers are cached.  Meanwhile the
 * client's socket waits here, unread; it is not a connection yet.  There is room for some, half of
 * it for one uid, and less while look-ups hang; for others the owner that was known last counts, or
 * the tenant `unknown`.
 */
#ifndef WHARF_DAEMON_CONTROL_OWNER_H
#define WHARF_DAEMON_CONTROL_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

struct wharf_owners;
struct wharf_server;

/* Starts the process that looks up.  0 or -errno, having logged why. */
int wharf_owners_new(struct wharf_server *server, struct wharf_owners **ret_owners);
/* NULL is allowed. */
void wharf_owners_free(struct wharf_owners *owners);

/* Takes ownership of an accepted socket, and makes a connection of it when the owner is known,
 * perhaps at once. */
void wharf_owners_admit(struct wharf_owners *owners, int fd, uid_t uid, pid_t pid);

/* Takes the server's new configuration; every uid is looked up again. */
void wharf_owners_reload(struct wharf_owners *owners);

/* The daemon drains: passes waiting sockets on at once, so that they are refused. */
void wharf_owners_end(struct wharf_owners *owners);

#endif
