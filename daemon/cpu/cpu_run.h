/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_run.h: decodes one piece on the calling thread. */
#ifndef WHARF_DAEMON_CPU_CPU_RUN_H
#define WHARF_DAEMON_CPU_CPU_RUN_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/core/piece.h"
#include "encoders/codec.h"

struct wharf_core;

/* A worker's private copy of what it decodes. */
struct wharf_cpu_buffer {
    uint8_t *data;
    size_t nbytes;
};

void wharf_cpu_buffer_deinit(struct wharf_cpu_buffer *buffer);

/* What a decode consults while it runs. */
struct wharf_cpu_others {
    struct wharf_decode_poll *poll; /* asked regularly whether to go on */
    struct wharf_decode_crew *crew; /* helpers; NULL: none */
    bool *ret_waits_for_file;       /* set, atomically, while it waits for a file; or NULL */
};

/*
 * Runs a chunk or a slice, without the core lock.  Fills the members of the piece that engines
 * fill.  If the poll stops it, the poll's answer is the outcome.  A source that exceeds the
 * buffer's usual size is charged to the tenant meanwhile, which is what `core` is for.
 */
void wharf_cpu_run(struct wharf_core *core, struct wharf_cpu_buffer *buffer,
                   struct wharf_piece *piece, const struct wharf_cpu_others *others);

#endif
