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

/* Who has a say in a decode. */
struct wharf_cpu_others {
    struct wharf_decode_poll *poll; /* is asked on the way whether to go on */
    struct wharf_decode_crew *crew; /* can help; NULL: nobody */
    bool *ret_waits_for_file;       /* whether it does, atomically; NULL: nobody asks */
};

/*
 * Runs a chunk or a slice, without the core lock.  Fills what engines fill in a piece.  What
 * the poll says in the place of going on becomes the outcome.  A source that is
 * longer than what a buffer keeps is charged to the tenant meanwhile; the core is for that.
 */
void wharf_cpu_run(struct wharf_core *core, struct wharf_cpu_buffer *buffer,
                   struct wharf_piece *piece, const struct wharf_cpu_others *others);

#endif
