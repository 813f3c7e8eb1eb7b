/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_time.c: measures how long other programs had a worker's processor.
 *
 * The thread's CPU clock is compared with the monotonic clock over a span without sleeps.  The
 * difference is time that the kernel gave to others.  It is read only for pieces that took
 * suspiciously long.
 */
#include "daemon/cpu/cpu_time.h"

#include <time.h>

#include "daemon/base/clock.h"
#include "daemon/core/job.h"

/* A piece that took twice its estimate, and at least this long, was perhaps interrupted by other
 * programs.  Shorter pieces are not worth the system call. */
#define SUSPICIOUS_NS 50000u

void wharf_cpu_time_rebase(struct wharf_cpu_time *time)
{
    struct timespec cpu;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    time->base_cpu_ns = (uint64_t)cpu.tv_sec * WHARF_NS_PER_S + (uint64_t)cpu.tv_nsec;
    time->base_ns = wharf_now_ns();
}

/*
 * How long others had the processor since the last measurement.  A busy machine takes it for
 * milliseconds at a time.  Charged to a job of microseconds, that would use up its tenant's share
 * for long, and spoil the estimates of all such jobs.
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
