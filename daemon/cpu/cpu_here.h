/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_here.h: inline decode: the thread that got the doorbell decodes a lone short chunk.
 *
 * Waking a worker would take as long as the chunk.  So while all workers sleep, the loop thread
 * decodes a new chunk itself, if it is alone and estimated to be short.  It spends at most a third
 * of its time on that.  Estimates can be wrong: after a limit it puts the chunk back, and a worker
 * starts over.  A client's memory can also block the thread.  Such a tenant is excluded for a
 * thousand times as long as it blocked.
 */
#ifndef WHARF_DAEMON_CPU_CPU_HERE_H
#define WHARF_DAEMON_CPU_CPU_HERE_H

#include <stdint.h>

#include "daemon/cpu/cpu_run.h"

struct wharf_cpu_here {
    struct wharf_cpu_buffer buffer;
    uint64_t rest_until_ns;
};

/* For the loop thread, under the core lock, which it releases meanwhile. */
void wharf_cpu_here_run(struct wharf_core *core, struct wharf_cpu_here *here);

#endif
