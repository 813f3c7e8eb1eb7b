/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_stats.h: what the daemon's own process uses, as Prometheus' process_* metrics have it.
 */
#ifndef WHARF_DAEMON_BASE_PROCESS_STATS_H
#define WHARF_DAEMON_BASE_PROCESS_STATS_H

#include <stdint.h>

struct wharf_process_stats {
    double cpu_s;
    uint64_t n_fds, most_fds;
    uint64_t resident_nbytes, virtual_nbytes;
};

/* Reads them; takes the longer the more files are open.  What cannot be read is 0.  Any thread. */
void wharf_process_stats_read(struct wharf_process_stats *ret_stats);

#endif
