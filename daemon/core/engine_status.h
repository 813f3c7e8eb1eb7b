/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_status.h: which engines there are, and how much waits for them.
 *
 * Under the core lock.
 */
#ifndef WHARF_DAEMON_CORE_ENGINE_STATUS_H
#define WHARF_DAEMON_CORE_ENGINE_STATUS_H

#include <stdbool.h>
#include <stdint.h>

struct wharf_core;
struct wharf_job;

/* Whether its worker takes items. */
bool wharf_place_is_up(const struct wharf_core *core, uint32_t gpu);

/* Whether jobs of sessions that want this engine (enum wharf_engine) can go to the GPU now. */
bool wharf_place_has_gpu(const struct wharf_core *core, uint32_t engine);

/* How many jobs are queued, in all pools; and how many of them the CPU could take. */
uint32_t wharf_place_n_queued(const struct wharf_core *core);
uint32_t wharf_place_n_for_cpu(const struct wharf_core *core);

/* Whether every job that wharf_place_n_for_cpu counts is in pool ANY, so that all may turn out to
 * be the GPUs'. */
bool wharf_place_may_be_gpus(const struct wharf_core *core);

/* Whether there is a GPU that takes clients' own memory, or will be. */
bool wharf_place_may_import(const struct wharf_core *core);

/* Whether GPUs can do what the job asks for: decode a codec that they have. */
bool wharf_place_gpu_codes(const struct wharf_core *core, const struct wharf_job *job);

#endif
