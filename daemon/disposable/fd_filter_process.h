/* SPDX-License-Identifier: Apache-2.0 */
/* fd_filter_process.h: one process that receives clients' descriptors, as the core has it;
 * fd_filter_protocol.h says what is sent to it and back. */
#ifndef WHARF_DAEMON_DISPOSABLE_FD_FILTER_PROCESS_H
#define WHARF_DAEMON_DISPOSABLE_FD_FILTER_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/base/list.h"
#include "daemon/base/loop.h"
#include "daemon/disposable/fd_filter_protocol.h"

struct wharf_tenant;

struct wharf_fd_filter_process {
    struct wharf_loop *loop;
    void *context; /* the caller's */
    pid_t pid;
    bool is_up;                      /* it has said so */
    struct wharf_source source;      /* its socket, or nothing after it was killed */
    struct wharf_source exit_source; /* its pidfd */
    struct wharf_tenant *blamed;     /* whom it was killed for */
    struct wharf_list link;          /* in the list of those that were killed */
};

/* Starts one, whose socket and pidfd are in the loop then.  0 or -errno. */
int wharf_fd_filter_process_new(struct wharf_loop *loop, void *context, wharf_source_fn *on_answer,
                                wharf_source_fn *on_exit,
                                struct wharf_fd_filter_process **ret_process);
/* Ends nothing: it has ended, or was killed. */
void wharf_fd_filter_process_free(struct wharf_fd_filter_process *process);

/* Kills it, and hears no more of it; its pidfd tells when it is gone. */
void wharf_fd_filter_process_retire(struct wharf_fd_filter_process *process);

/* Whether an answer is there to be received. */
bool wharf_fd_filter_process_has_answered(const struct wharf_fd_filter_process *process);

/* Receives an answer, its packet (of WHARF_CONTROL_MAX_NBYTES at most) and a descriptor, which is
 * left as it was if none came.  0 or -errno: it has ended, or is out of its mind. */
int wharf_fd_filter_process_receive(struct wharf_fd_filter_process *process,
                                    struct wharf_fd_filter_answer *ret_answer, uint8_t *packet,
                                    int *ret_fd);

/* Logs how it has ended, or is about to: waits for that; and that one does not start. */
void wharf_fd_filter_process_log_end(const struct wharf_fd_filter_process *process);
void wharf_fd_filter_process_log_late(void);

#endif
