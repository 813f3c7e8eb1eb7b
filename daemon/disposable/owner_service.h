/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner_service.h: asks a directory service for the owner of a uid.
 */
#ifndef WHARF_DAEMON_DISPOSABLE_OWNER_SERVICE_H
#define WHARF_DAEMON_DISPOSABLE_OWNER_SERVICE_H

#include <stdint.h>
#include <sys/types.h>

/* All uids from `first` to `last`, which include the requested one, have the same owner.  It may be
 * the uid itself. */
struct wharf_owner_answer {
    int32_t error; /* 0; negative: the look-up failed */
    uint32_t first;
    uint32_t last;
    uint32_t owner; /* or the number of the first group that the user is in */
};

/*
 * owner_subid.c; or owner_subid_none.c if libsubid's header was missing at build time.  Returns 1
 * with the owner and the range; 0: the uid is not subordinate; -ENOENT: no service is configured;
 * or -errno: the service failed.
 */
int wharf_owner_ask_service(uid_t uid, struct wharf_owner_answer *ret_answer);

#endif
