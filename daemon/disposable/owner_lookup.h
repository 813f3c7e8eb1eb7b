/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner_lookup.h: the process that finds out whose subordinate uid a uid is, and what it is asked.
 *
 * It also says in which of the groups that have settings a user is.
 *
 * It reads /etc/subuid, or asks the service that nsswitch.conf names for that, and looks up users;
 * each of that can take as long as a directory server, or a file system, likes.  So it is a process
 * of its own that the core kills.  It sends an answer to nothing when it has started.  The core
 * sends struct wharf_owner_files once, and then struct wharf_owner_question, one at a time; each is
 * answered by struct wharf_owner_answer.
 */
#ifndef WHARF_DAEMON_DISPOSABLE_OWNER_LOOKUP_H
#define WHARF_DAEMON_DISPOSABLE_OWNER_LOOKUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/config.h"
#include "daemon/disposable/owner_service.h"

/* As the settings have them: "" is the machine's. */
struct wharf_owner_files {
    char subuid[sizeof(((struct wharf_config_owners *)0)->subuid)];
    char passwd[sizeof(((struct wharf_config_owners *)0)->passwd)];
    char group[sizeof(((struct wharf_config_owners *)0)->group)];
    /* Groups with settings, in their order. */
    uint32_t n_groups;
    char groups[WHARF_CONFIG_MOST_GROUPS][WHARF_CONFIG_NAME_NBYTES];
};

enum wharf_owner_kind {
    WHARF_OWNER_OF,    /* whose the uid is */
    WHARF_OWNER_GROUP, /* in which of the groups the user is */
};

struct wharf_owner_question {
    uint32_t uid;
    uint32_t kind;
};

/* The group of a user who is in none of them. */
#define WHARF_OWNER_NO_GROUP UINT32_MAX

/* The answer to a question, by the files and services that there are. */
void wharf_owner_look_up(const struct wharf_owner_files *files, uid_t uid,
                         struct wharf_owner_answer *ret_answer);

/* The answer to the other question. */
void wharf_owner_find_group(const struct wharf_owner_files *files, uid_t uid,
                            struct wharf_owner_answer *ret_answer);

/* The process's main function; `fd` leads to the core, whose process id is `parent`.  Returns the
 * exit status. */
int wharf_owner_main(int fd, pid_t parent);

#endif
