/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner.h: which tenant pays for a client with a given uid.  Loop thread only.
 *
 * A user with a range of subordinate uids can be any of these, and would be as many tenants.  The
 * tenant of a uid is the first of these that applies:
 *
 *     uid:N        the uid itself, if it has a section [tenant uid:N], is root, or is the overflow
 *                  uid, which stands for all who have no uid here
 *     block:N      its block, if [owners] blocks has the uid
 *     uid:OWNER    the tenant of its owner, by these same rules, if it is a subordinate uid
 *     uid:N        the uid itself, if nobody owns it
 *     unknown      if nobody could say who owns it
 *
 * Where the configuration has sections [group NAME], a user's groups are looked up as well: the
 * first one gives the tenant limits.
 *
 * A process of its own looks owners up (owner_lookup.h); the answers are remembered.  Meanwhile the
 * client's socket waits here: nothing is read from it, and it is not a connection yet.
 */
#ifndef WHARF_DAEMON_CONTROL_OWNER_H
#define WHARF_DAEMON_CONTROL_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

struct wharf_owners;
struct wharf_server;

/* How many sockets wait for their owners at most, before no more are accepted. */
#define WHARF_OWNERS_MOST_WAITING 256

/* The tenant of all uids whose owner could not be found. */
#define WHARF_OWNERS_UNKNOWN "unknown"

/* An owner can be somebody's subordinate uid in turn; after so many steps it is `unknown`. */
#define WHARF_OWNERS_MOST_STEPS 8

/* Starts the process that looks up.  0 or -errno, having logged why. */
int wharf_owners_new(struct wharf_server *server, struct wharf_owners **ret_owners);
/* NULL is allowed. */
void wharf_owners_free(struct wharf_owners *owners);

/* Takes over an accepted socket; a connection is made of it when the owner is known, which may be
 * at once. */
void wharf_owners_admit(struct wharf_owners *owners, int fd, uid_t uid, pid_t pid);

/* Whether WHARF_OWNERS_MOST_WAITING sockets wait: accept no more. */
bool wharf_owners_are_busy(const struct wharf_owners *owners);

/* Takes the server's new configuration, and has every uid looked up anew. */
void wharf_owners_reload(struct wharf_owners *owners);

/* The daemon drains: sockets that wait are passed on at once, and turned away. */
void wharf_owners_end(struct wharf_owners *owners);

#endif
