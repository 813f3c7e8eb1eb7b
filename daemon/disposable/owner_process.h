/* SPDX-License-Identifier: Apache-2.0 */
/* owner_process.h: the process that looks up owners of uids, as the core has it. */
#ifndef WHARF_DAEMON_DISPOSABLE_OWNER_PROCESS_H
#define WHARF_DAEMON_DISPOSABLE_OWNER_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/base/list.h"
#include "daemon/base/loop.h"
#include "daemon/disposable/owner_lookup.h"

struct wharf_owner_process {
    struct wharf_loop *loop;
    void *context; /* the caller's */
    pid_t pid;
    bool is_up;                      /* it has said so */
    struct wharf_source source;      /* its socket, or nothing after it was killed */
    struct wharf_source exit_source; /* its pidfd */
    struct wharf_owner_killed *killed;
    struct wharf_list link;        /* in that list */
    void (*tell)(const char *end); /* of its end; NULL: nobody is told */
};

/* Those that were killed and have not ended yet. */
struct wharf_owner_killed {
    struct wharf_list list;
    unsigned n;
};

/* Starts one, whose socket and pidfd are in the loop then.  0 or -errno. */
int wharf_owner_process_new(struct wharf_loop *loop, const struct wharf_owner_files *files,
                            wharf_source_fn *on_answer, void *context,
                            struct wharf_owner_killed *killed,
                            struct wharf_owner_process **ret_process);

/* Kills it; nothing more is heard of it.  It is among the killed ones until it has ended, which can
 * take as long as what it hangs in.  One that has ended by itself, or is about to, has `tell`
 * called then with how: "has ended by SIGSEGV". */
void wharf_owner_process_kill(struct wharf_owner_process *process, void (*tell)(const char *end));

/* The daemon ends: likewise, but nobody waits for its end.  NULL is allowed. */
void wharf_owner_process_free(struct wharf_owner_process *process);

/* 0 or -errno: it has ended. */
int wharf_owner_process_ask(struct wharf_owner_process *process, enum wharf_owner_kind kind,
                            uid_t uid);

/* 1: an answer; 0: it has said that it has started; -EAGAIN; or -errno: it has ended. */
int wharf_owner_process_receive(struct wharf_owner_process *process,
                                struct wharf_owner_answer *ret_answer);

/* Whether an answer is there to be received. */
bool wharf_owner_process_has_answered(const struct wharf_owner_process *process);

#endif
