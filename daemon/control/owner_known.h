/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner_known.h: what is known of uids' owners and of users' groups: the rules of owner.h, and the
 * answers that are remembered.  Loop thread only.
 */
#ifndef WHARF_DAEMON_CONTROL_OWNER_KNOWN_H
#define WHARF_DAEMON_CONTROL_OWNER_KNOWN_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/base/config.h"
#include "daemon/base/uid_ranges.h"
#include "daemon/control/member_cache.h"
#include "daemon/control/owner_cache.h"

struct wharf_owner_answer;
struct wharf_server;

/* The tenant of all uids whose owner could not be found. */
#define WHARF_OWNERS_UNKNOWN "unknown"

/* An owner can be a subordinate uid itself; after this many steps the tenant is `unknown`. */
#define WHARF_OWNERS_MOST_STEPS 8

struct wharf_owner_known {
    struct wharf_server *server;
    struct wharf_owner_cache cache;
    struct wharf_member_cache members;
    struct wharf_uid_ranges blocks;
};

/* From a socket's uid to its tenant: `at` is the owner found so far, after n_steps. */
struct wharf_owner_walk {
    uid_t at;
    unsigned n_steps;
    char tenant[WHARF_CONFIG_NAME_NBYTES]; /* when it is known */
};

/* Of zeroed memory.  0 or -ENOMEM; deinit works in both cases. */
int wharf_owner_known_init(struct wharf_owner_known *known, struct wharf_server *server);
void wharf_owner_known_deinit(struct wharf_owner_known *known);

/* Takes the server's new configuration.  Owners of before serve only while a look-up fails. */
void wharf_owner_known_reload(struct wharf_owner_known *known);

/* Follows owners as far as the cache, or `answer` if not NULL, reaches.  Returns whether the tenant
 * is known. */
bool wharf_owner_known_resolve(struct wharf_owner_known *known, struct wharf_owner_walk *walk,
                               const struct wharf_owner_range *answer);

/* The same when no question can be asked: uses outdated answers too, and ends with some tenant. */
void wharf_owner_known_resolve_by_old(struct wharf_owner_known *known,
                                      struct wharf_owner_walk *walk);

/* Remembers an owner; or that the look-up failed, for which the last known owner stays valid. */
void wharf_owner_known_add(struct wharf_owner_known *known, uid_t uid,
                           const struct wharf_owner_answer *answer);
void wharf_owner_known_add_failure(struct wharf_owner_known *known, uid_t uid);

/* Remembers a user's group, and gives the tenant its limits.  Returns its name; NULL: the look-up
 * failed. */
const char *wharf_owner_known_add_group(struct wharf_owner_known *known, uid_t uid,
                                        const struct wharf_owner_answer *answer);

#endif
