/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner_lookup.h: the process that finds the owner of a uid, and the groups of a user that have
 * settings; and its messages.
 *
 * It reads /etc/subuid, or asks the service that nsswitch.conf names, and looks up users.  Each of
 * these can take as long as a directory server or a file system likes.  So it is a disposable
 * process.  It sends one unsolicited answer when it has started.  The core sends struct
 * wharf_owner_files once, then struct wharf_owner_question, one at a time; struct
 * wharf_owner_answer answers each.
 */
#ifndef WHARF_DAEMON_DISPOSABLE_OWNER_LOOKUP_H
#define WHARF_DAEMON_DISPOSABLE_OWNER_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/config.h"
#include "daemon/disposable/owner_service.h"

/* As in the settings; "": the machine's. */
struct wharf_owner_files {
    char subuid[sizeof(((struct wharf_config_owners *)0)->subuid)];
    char passwd[sizeof(((struct wharf_config_owners *)0)->passwd)];
    char group[sizeof(((struct wharf_config_owners *)0)->group)];
    /* Groups with settings, in their order. */
    uint32_t n_groups;
    char groups[WHARF_CONFIG_MOST_GROUPS][WHARF_CONFIG_NAME_NBYTES];
};

enum wharf_owner_kind {
    WHARF_OWNER_OF,    /* who owns the uid */
    WHARF_OWNER_GROUP, /* which of the groups the user is in */
};

struct wharf_owner_question {
    uint32_t uid;
    uint32_t kind;
};

/* The answer for a user who is in none of the groups. */
#define WHARF_OWNER_NO_GROUP UINT32_MAX

/* Answers WHARF_OWNER_OF from files and services. */
void wharf_owner_look_up(const struct wharf_owner_files *files, uid_t uid,
                         struct wharf_owner_answer *ret_answer);

/* Answers WHARF_OWNER_GROUP. */
void wharf_owner_find_group(const struct wharf_owner_files *files, uid_t uid,
                            struct wharf_owner_answer *ret_answer);

/* The process's main function; `fd` leads to the core, whose process id is `parent`.  Returns the
 * exit status. */
int wharf_owner_main(int fd, pid_t parent);

#endif
