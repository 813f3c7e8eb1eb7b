/* SPDX-License-Identifier: Apache-2.0 */
/* owner_process.h: the core's handle of a process that looks up owners of uids. */
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
    bool is_up;                      /* it has reported its start */
    struct wharf_source source;      /* its socket; unused after it was killed */
    struct wharf_source exit_source; /* its pidfd */
    struct wharf_owner_killed *killed;
    struct wharf_list link;        /* in that list */
    void (*tell)(const char *end); /* called at its end; or NULL */
};

/* Killed processes that have not ended yet. */
struct wharf_owner_killed {
    struct wharf_list list;
    unsigned n;
};

/* Starts one, and adds its socket and pidfd to the loop.  0 or -errno. */
int wharf_owner_process_new(struct wharf_loop *loop, const struct wharf_owner_files *files,
                            wharf_source_fn *on_answer, void *context,
                            struct wharf_owner_killed *killed,
                            struct wharf_owner_process **ret_process);

/* Kills it and ignores its socket.  It stays in the list of killed processes until it has ended,
 * which can take as long as the call that it hangs in.  If it has ended by itself, or is about to,
 * `tell` is called with a text: "has ended by SIGSEGV". */
void wharf_owner_process_kill(struct wharf_owner_process *process, void (*tell)(const char *end));

/* The same at the end of the daemon, without waiting for its end.  NULL is allowed. */
void wharf_owner_process_free(struct wharf_owner_process *process);

/* 0; or -errno: it has ended. */
int wharf_owner_process_ask(struct wharf_owner_process *process, enum wharf_owner_kind kind,
                            uid_t uid);

/* 1: an answer; 0: the report of its start; -EAGAIN; or -errno: it has ended. */
int wharf_owner_process_receive(struct wharf_owner_process *process,
                                struct wharf_owner_answer *ret_answer);

/* Whether an answer is there to be received. */
bool wharf_owner_process_has_answered(const struct wharf_owner_process *process);

#endif
