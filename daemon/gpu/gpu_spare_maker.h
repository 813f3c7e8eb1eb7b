/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_spare_maker.h: makes the arenas that gpu_spares.h has ready, and frees them.
 */
#ifndef WHARF_DAEMON_GPU_GPU_SPARE_MAKER_H
#define WHARF_DAEMON_GPU_GPU_SPARE_MAKER_H

#include <stdbool.h>
#include <stdint.h>

struct wharf_core;

/* Makes one that is missing, or frees one of a size that nobody asks for any more to make room for
 * it, if that GPU's thread is who makes them.  Without the lock.  Returns whether there may be
 * more. */
bool wharf_gpu_spare_maker_refill(struct wharf_core *core, uint32_t gpu);

/* Frees all, when no worker has them any more.  Without the lock. */
void wharf_gpu_spare_maker_deinit(struct wharf_core *core);

#endif
