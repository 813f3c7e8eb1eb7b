/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner_service.h: what a directory service says of a uid.
 */
#ifndef WHARF_DAEMON_DISPOSABLE_OWNER_SERVICE_H
#define WHARF_DAEMON_DISPOSABLE_OWNER_SERVICE_H

#include <stdint.h>
#include <sys/types.h>

/* All uids from `first` to `last`, the one that was asked for among them, have the same owner, who
 * may be the uid itself. */
struct wharf_owner_answer {
    int32_t error; /* 0, or negative: nobody could say */
    uint32_t first;
    uint32_t last;
    uint32_t owner; /* or the number of the first group that the user is in */
};

/*
 * owner_subid.c, or owner_subid_none.c where libsubid's header was not there at build time: what a
 * service says.  Returns 1 with the owner and the range, 0: it is nobody's subordinate uid,
 * -ENOENT: no service is configured, or -errno: it did not say.
 */
int wharf_owner_ask_service(uid_t uid, struct wharf_owner_answer *ret_answer);

#endif
