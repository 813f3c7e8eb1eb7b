/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_daemon.h: inside wharf_gpu_daemon. */
#ifndef WHARF_TESTS_GPU_DAEMON_H
#define WHARF_TESTS_GPU_DAEMON_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct wharf;

/* A handle of the running daemon; ends the program if there is none. */
struct wharf *gpu_daemon_open(uint32_t engine, uint32_t max_jobs, size_t arena_nbytes);

/* The running daemon. */
pid_t gpu_daemon_pid(void);

/*
 * Latency and throughput, each for so many seconds: one JSON object a line.  chunk_nbytes: of all
 * chunks, 0 for what is usual of this engine.  asked: the only engine that is asked for, by its
 * name, "all" for CPU, GPU and any in turn.
 */
void gpu_daemon_measure(uint32_t engine, double seconds, size_t chunk_nbytes, const char *asked);

#endif
