/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_time.h: subtracts the processor time of other programs from a worker's time. */
#ifndef WHARF_DAEMON_CPU_CPU_TIME_H
#define WHARF_DAEMON_CPU_CPU_TIME_H

#include <stdint.h>

struct wharf_piece;

/* A moment since which the thread has neither slept nor yielded. */
struct wharf_cpu_time {
    uint64_t base_ns;     /* the moment; 0: there is none */
    uint64_t base_cpu_ns; /* processor time that the thread had used then */
};

/* Makes now that moment. */
void wharf_cpu_time_rebase(struct wharf_cpu_time *time);

/* Adds the time that other programs used up to now to the piece's others_ns. */
void wharf_cpu_time_leave_out(struct wharf_cpu_time *time, struct wharf_piece *piece,
                              uint64_t now_ns);

#endif
