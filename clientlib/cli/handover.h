/* SPDX-License-Identifier: Apache-2.0 */
/*
 * handover.h: input and output of a task as files that the daemon reads and writes itself.
 *
 * Where the daemon does not take a file, this process reads or writes it, as it does without a
 * daemon.  So it does where a GPU decodes: that is sooner from memory.  And so it does after
 * anything has gone wrong with a file that was handed over: what was asked of the daemon is then
 * done again through memory, and ends as it would have without files.  A write of the daemon's that
 * is still under way does no harm: it has the same bytes, and the output has no name yet.
 */
#ifndef WHARF_CLI_HANDOVER_H
#define WHARF_CLI_HANDOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "clientlib/cli/task.h"

struct wharf_cli_handover {
    struct wharf_cli_service *service;
    /* What jobs call the first bytes of the input and of its output.  NULL: not handed over. */
    const uint8_t *in;
    uint8_t *out;
    void *in_file, *out_file; /* addresses of the whole files */
    bool is_off;              /* from now on all goes through memory; read and set atomically */
};

/* Hands over what the daemon takes: the input, and the output, in which the input's begins at
 * out_begin; UINT64_MAX: not the output.  The loads have their memory. */
void wharf_cli_handover_begin(struct wharf_cli_handover *handover, struct wharf_cli_task *task,
                              uint64_t out_begin);

/* Nothing that uses the files is in flight.  The handle may have been closed meanwhile. */
void wharf_cli_handover_end(struct wharf_cli_handover *handover);

static inline void wharf_cli_handover_stop(struct wharf_cli_handover *handover)
{
    __atomic_store_n(&handover->is_off, true, __ATOMIC_RELAXED);
}
/* Whether the input is the daemon's to read. */
static inline bool wharf_cli_handover_is_on(const struct wharf_cli_handover *handover)
{
    return handover->in && !__atomic_load_n(&handover->is_off, __ATOMIC_RELAXED);
}

#endif
