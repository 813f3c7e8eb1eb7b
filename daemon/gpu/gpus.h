/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpus.h: starts and stops the daemon's GPUs, a backend (gpu_state.h) for each.
 */
#ifndef WHARF_DAEMON_GPU_GPUS_H
#define WHARF_DAEMON_GPU_GPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wharf_config;
struct wharf_core;

/* Finds the worker program: the one that the configuration names, that was installed with this
 * program, or that was built with it.  0; or -errno, with the preferred path. */
int wharf_gpus_find_program(const struct wharf_config *config, char program[], size_t nbytes);

/* Whether there is a device node of a GPU driver; without one there is no GPU. */
bool wharf_gpus_have_device_node(void);

/*
 * Starts a backend for each GPU that the configuration names.  For `all` it first starts one, whose
 * worker reports how many GPUs there are.  If the configuration names an engine, waits until the
 * workers are ready; -ENODEV if a named GPU's worker fails, or, for `all`, every worker.  With auto
 * it does not wait, and starts nothing without a device node.  0 or -errno; stop is allowed in both
 * cases.
 */
int wharf_gpus_start(struct wharf_core *core, const struct wharf_config *config);

/* The number of expected GPUs, and of GPUs that take jobs.  Under the core lock. */
uint32_t wharf_gpus_expected(const struct wharf_core *core);
uint32_t wharf_gpus_up(const struct wharf_core *core);

/* Stops all, after their current pieces. */
void wharf_gpus_stop(struct wharf_core *core);

#endif
