/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner.h: which tenant a client's user id belongs to.  Loop thread.
 *
 * Whoever may use a range of subordinate uids can be any of them, and would be as many tenants.  So
 * a uid is charged to, in this order:
 *
 *     uid:N        itself, if it has a section [tenant uid:N], is root or is the overflow uid,
 * which stands for all that have no uid here block:N      the block that it is in, of those that
 * [owners] blocks excepts uid:OWNER    the one whose subordinate uid it is, for whom the same
 * holds; or itself unknown      if nobody could say
 *
 * Owners are looked up by a process of their own (owner_lookup.h), and remembered.  Meanwhile a
 * client's socket waits here: nothing is read from it, and no connection is made of it yet.
 */
#ifndef WHARF_DAEMON_CONTROL_OWNER_H
#define WHARF_DAEMON_CONTROL_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

struct wharf_owners;
struct wharf_server;

/* Sockets that may wait for owners to be known. */
#define WHARF_OWNERS_MOST_WAITING 256

/* Who is charged where nobody could say who is to be. */
#define WHARF_OWNERS_UNKNOWN "unknown"

/* Users who subordinate to each other further than this are nobody's. */
#define WHARF_OWNERS_MOST_STEPS 8

/* Starts the process.  0 or -errno, having logged why. */
int wharf_owners_new(struct wharf_server *server, struct wharf_owners **ret_owners);
/* NULL is allowed. */
void wharf_owners_free(struct wharf_owners *owners);

/* Takes over an accepted socket; a connection is made of it when the owner is known, which may be
 * at once. */
void wharf_owners_admit(struct wharf_owners *owners, int fd, uid_t uid, pid_t pid);

/* Whether so many sockets wait that no more should come. */
bool wharf_owners_are_busy(const struct wharf_owners *owners);

/* Takes over the configuration, and forgets who owns what. */
void wharf_owners_reload(struct wharf_owners *owners);

/* The daemon drains: those that wait are turned away. */
void wharf_owners_end(struct wharf_owners *owners);

#endif
