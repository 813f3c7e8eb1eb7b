/* SPDX-License-Identifier: Apache-2.0 */
/* fd_filter_process.h: the core's handle of one filter process; fd_filter_protocol.h has the
 * messages. */
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
    bool is_up;                      /* it has reported its start */
    struct wharf_source source;      /* its socket; unused after it was killed */
    struct wharf_source exit_source; /* its pidfd */
    struct wharf_tenant *blamed;     /* the tenant for whose descriptor it was killed */
    struct wharf_list link;          /* in the list of killed processes */
};

/* Starts one, and adds its socket and pidfd to the loop.  0 or -errno. */
int wharf_fd_filter_process_new(struct wharf_loop *loop, void *context, wharf_source_fn *on_answer,
                                wharf_source_fn *on_exit,
                                struct wharf_fd_filter_process **ret_process);
/* Frees the handle; the process has ended or was killed. */
void wharf_fd_filter_process_free(struct wharf_fd_filter_process *process);

/* Kills it and ignores its socket; its pidfd reports its end. */
void wharf_fd_filter_process_retire(struct wharf_fd_filter_process *process);

/* Whether an answer is there to be received. */
bool wharf_fd_filter_process_has_answered(const struct wharf_fd_filter_process *process);

/* Receives an answer with its packet (at most WHARF_CONTROL_MAX_NBYTES) and perhaps a descriptor;
 * without one *ret_fd is unchanged.  0; or -errno: it has ended, or sent an impossible answer. */
int wharf_fd_filter_process_receive(struct wharf_fd_filter_process *process,
                                    struct wharf_fd_filter_answer *ret_answer, uint8_t *packet,
                                    int *ret_fd);

/* Waits for its end and logs how it ended; logs that one does not start. */
void wharf_fd_filter_process_log_end(const struct wharf_fd_filter_process *process);
void wharf_fd_filter_process_log_late(void);

#endif
