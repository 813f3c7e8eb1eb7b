/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_here.h: a lone short chunk, decoded by the thread that heard the doorbell.
 *
 * Waking a worker for it would cost another wake-up, which takes as long as the chunk.  So while
 * all workers sleep, the loop thread decodes what has just come, if it is one chunk that is
 * estimated to be short, and if it has not done so just before: two thirds of its time are for
 * listening.  Estimates can be wrong: after a limit the chunk is put back, for a worker to begin
 * anew.  And clients' memory can keep who touches it waiting: a tenant whose memory did so has this
 * no more, for a thousand times as long.
 */
#ifndef WHARF_DAEMON_CPU_CPU_HERE_H
#define WHARF_DAEMON_CPU_CPU_HERE_H

#include <stdint.h>

#include "daemon/cpu/cpu_run.h"

struct wharf_cpu_here {
    struct wharf_cpu_buffer buffer;
    uint64_t rest_until_ns;
};

/* By the loop thread, under the core lock, which it gives up meanwhile. */
void wharf_cpu_here_run(struct wharf_core *core, struct wharf_cpu_here *here);

#endif
