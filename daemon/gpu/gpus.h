/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpus.h: the GPUs that the daemon has: one backend for each, which gpu_state.h describes.
 */
#ifndef WHARF_DAEMON_GPU_GPUS_H
#define WHARF_DAEMON_GPU_GPUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wharf_config;
struct wharf_core;

/* The worker that the configuration names, or the one that was installed with this program, or the
 * one that was built with it.  0, or -errno with the one that would be the best. */
int wharf_gpus_find_program(const struct wharf_config *config, char program[], size_t nbytes);

/* Drivers make these; where there are none nobody need be asked. */
bool wharf_gpus_have_device_node(void);

/*
 * Starts a backend for each GPU that the configuration names, if there are any; of all that there
 * are, for the first one, whose worker tells how many these are.  Where an engine is named this
 * waits until their workers are ready, and is -ENODEV if one does not get so; of all GPUs, if none
 * does.  With auto they get ready in their own time, and where there is no GPU nothing is started.
 * 0 or -errno; stop is good either way.
 */
int wharf_gpus_start(struct wharf_core *core, const struct wharf_config *config);

/* How many GPUs there should be, and how many take jobs.  Under the core lock. */
uint32_t wharf_gpus_expected(const struct wharf_core *core);
uint32_t wharf_gpus_up(const struct wharf_core *core);

/* Ends all, after the pieces that they have. */
void wharf_gpus_stop(struct wharf_core *core);

#endif
