/* SPDX-License-Identifier: Apache-2.0 */
/* slices.h: the length of a thread's time slices in Linux, and its turn. */
#ifndef WHARF_DAEMON_CPU_SLICES_H
#define WHARF_DAEMON_CPU_SLICES_H

#include <stdint.h>

/*
 * The loop thread has the shortest slices that Linux allows; workers have longer ones.  With equal
 * slices a busy worker could keep the processor until the next tick, up to 10 ms, after the loop
 * thread has woken.
 */
#define WHARF_SLICE_LOOP_NS 100000u
#define WHARF_SLICE_WORKER_NS 300000u

/*
 * Requests slices of that length for the calling thread, if its policy is SCHED_OTHER.  A thread
 * with shorter slices runs first when it wakes, and loses little when it yields.  Kernels
 * before 6.12 and some system-call filters refuse; nothing changes then.  Returns 0 or -errno.
 */
int wharf_slices_shorten(uint64_t slice_ns);

/*
 * Lets the calling thread, whose policy is SCHED_OTHER, run only where no other thread wants to,
 * until wharf_slices_raise gives it slices of that length again.  Meanwhile it must hold nothing
 * that others wait for.  Refused where the thread could not return: that takes a limit of 20 or
 * more for RLIMIT_NICE, or CAP_SYS_NICE; and where its policy is another.  Both return 0 or -errno.
 */
int wharf_slices_lower(void);
int wharf_slices_raise(uint64_t slice_ns);

#endif
