/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_daemon.h: inside wharf_gpu_daemon. */
#ifndef WHARF_TESTS_GPU_DAEMON_H
#define WHARF_TESTS_GPU_DAEMON_H

#include <stddef.h>
#include <stdint.h>

struct wharf;

/* A handle of the running daemon; ends the program if there is none. */
struct wharf *gpu_daemon_open(uint32_t engine, uint32_t max_jobs, size_t arena_nbytes);

/* Latency and throughput, each for so many seconds: one JSON object a line. */
void gpu_daemon_measure(uint32_t engine, double seconds);

#endif
