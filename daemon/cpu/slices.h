/* SPDX-License-Identifier: Apache-2.0 */
/* slices.h: how long a thread has a processor before Linux looks who else wants it. */
#ifndef WHARF_DAEMON_CPU_SLICES_H
#define WHARF_DAEMON_CPU_SLICES_H

#include <stdint.h>

/*
 * The loop thread has the shortest slices that Linux gives, and those of workers are longer: with
 * slices of one length a busy worker could keep the processor until the next tick, up to 10 ms,
 * when the loop thread wakes.
 */
#define WHARF_SLICE_LOOP_NS 100000u
#define WHARF_SLICE_WORKER_NS 300000u

/*
 * Asks for slices of that length for the calling thread, if it is an ordinary one: a thread with
 * shorter slices goes first when it wakes, and loses little when it gives way.  Where they cannot
 * be had, by kernels before 6.12 and under some filters of system calls, nothing changes.  Returns
 * 0, or -errno: what is in the way.
 */
int wharf_slices_shorten(uint64_t slice_ns);

#endif
