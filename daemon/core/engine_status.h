/* SPDX-License-Identifier: Apache-2.0 */
/*
 * engine_status.h: which engines are available, and how many jobs wait for them.
 *
 * Under the core lock.
 */
#ifndef WHARF_DAEMON_CORE_ENGINE_STATUS_H
#define WHARF_DAEMON_CORE_ENGINE_STATUS_H

#include <stdbool.h>
#include <stdint.h>

struct wharf_core;
struct wharf_job;

/* Whether the GPU's worker takes items. */
bool wharf_place_is_up(const struct wharf_core *core, uint32_t gpu);

/* Whether jobs of sessions that want this engine (enum wharf_engine) can go to the GPU now. */
bool wharf_place_has_gpu(const struct wharf_core *core, uint32_t engine);

/* How many jobs are queued, in all pools; and how many of them the CPU could take. */
uint32_t wharf_place_n_queued(const struct wharf_core *core);
uint32_t wharf_place_n_for_cpu(const struct wharf_core *core);

/* How many jobs of pool STREAM are more than GPUs could begin at once. */
uint32_t wharf_place_n_streams_left(const struct wharf_core *core);

/* Whether all jobs that wharf_place_n_for_cpu counts are in pool ANY, so that GPUs could take them
 * all. */
bool wharf_place_may_be_gpus(const struct wharf_core *core);

/* Whether some GPU imports clients' GPU memory, now or later. */
bool wharf_place_may_import(const struct wharf_core *core);

/* Whether GPUs can run the job: it decodes, and its codec has a device decoder. */
bool wharf_place_gpu_codes(const struct wharf_core *core, const struct wharf_job *job);

#endif
