/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_time.h: what others take of a worker's time. */
#ifndef WHARF_DAEMON_CPU_CPU_TIME_H
#define WHARF_DAEMON_CPU_CPU_TIME_H

#include <stdint.h>

struct wharf_piece;

/* At some moment since which the thread has neither slept nor yielded. */
struct wharf_cpu_time {
    uint64_t base_ns;     /* the time; 0: there is no such moment */
    uint64_t base_cpu_ns; /* what the thread had used of its processor */
};

/* That moment is now. */
void wharf_cpu_time_rebase(struct wharf_cpu_time *time);

/* Takes out of the piece's time up to now what other programs have had of it. */
void wharf_cpu_time_leave_out(struct wharf_cpu_time *time, struct wharf_piece *piece,
                              uint64_t now_ns);

#endif
