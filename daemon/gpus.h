/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpus.h: the GPUs that the daemon has: one backend for each, which gpu_state.h describes.
 */
#ifndef WHARF_DAEMON_GPUS_H
#define WHARF_DAEMON_GPUS_H

struct wharf_config;
struct wharf_front;

/*
 * Starts a backend for each GPU that the configuration names, if there are any.  Where it names an
 * engine this waits until their workers are ready, and is -ENODEV if one does not get so; with auto
 * they get ready in their own time, and where there is no GPU nothing is started.  0 or -errno;
 * stop is good either way.
 */
int wharf_gpus_start(struct wharf_front *front, const struct wharf_config *config);

/* Ends all, after the pieces that they have. */
void wharf_gpus_stop(struct wharf_front *front);

#endif
