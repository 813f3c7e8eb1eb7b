/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_run.h: decodes one piece on the calling thread. */
#ifndef WHARF_DAEMON_CPU_RUN_H
#define WHARF_DAEMON_CPU_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/job.h"

/* A worker's private copy of what it decodes. */
struct wharf_cpu_buffer {
    uint8_t *data;
    size_t nbytes;
};

void wharf_cpu_buffer_deinit(struct wharf_cpu_buffer *buffer);

/* Runs a chunk or a slice, without the front lock.  Fills what engines fill in a piece. */
void wharf_cpu_run(struct wharf_cpu_buffer *buffer, struct wharf_piece *piece);

#endif
