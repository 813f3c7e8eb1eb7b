/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/cpu/cpu_time.h"

#include <time.h>

#include "daemon/base/clock.h"
#include "daemon/core/job.h"

/* A piece that took twice as long as was expected, and so long at least, was perhaps interrupted by
 * other programs.  Shorter ones are not worth the system call. */
#define SUSPICIOUS_NS 50000u

void wharf_cpu_time_rebase(struct wharf_cpu_time *time)
{
    struct timespec cpu;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    time->base_cpu_ns = (uint64_t)cpu.tv_sec * WHARF_NS_PER_S + (uint64_t)cpu.tv_nsec;
    time->base_ns = wharf_now_ns();
}

/*
 * For how long others have had the processor since the last such look.  A machine that is busy
 * with other things takes it for milliseconds at a time: charged to a job of microseconds, that
 * would be its tenant's share for long, and the price of all such jobs.
 */
static uint64_t stolen_ns(struct wharf_cpu_time *time)
{
    uint64_t before_ns = time->base_ns, before_cpu_ns = time->base_cpu_ns;

    wharf_cpu_time_rebase(time);
    uint64_t passed_ns = time->base_ns - before_ns;
    uint64_t used_ns = time->base_cpu_ns - before_cpu_ns;
    return passed_ns > used_ns ? passed_ns - used_ns : 0;
}

void wharf_cpu_time_leave_out(struct wharf_cpu_time *time, struct wharf_piece *piece,
                              uint64_t now_ns)
{
    uint64_t own_ns = now_ns - piece->begun_ns - piece->others_ns;

    if (own_ns < SUSPICIOUS_NS || own_ns < 2 * piece->estimate_ns)
        return;
    uint64_t stolen = stolen_ns(time);
    piece->others_ns += stolen < own_ns ? stolen : own_ns;
}
