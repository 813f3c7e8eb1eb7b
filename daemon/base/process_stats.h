/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_stats.h: the daemon process's use of resources, as in Prometheus' process_* metrics.
 */
#ifndef WHARF_DAEMON_BASE_PROCESS_STATS_H
#define WHARF_DAEMON_BASE_PROCESS_STATS_H

#include <stdint.h>

struct wharf_process_stats {
    double cpu_s;
    uint64_t n_fds, most_fds;
    uint64_t resident_nbytes, virtual_nbytes;
};

/* Reads all of them.  Takes longer with more open files.  Unknown values are 0.  Any thread. */
void wharf_process_stats_read(struct wharf_process_stats *ret_stats);

#endif
