/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_models.h: which registered models a GPU's worker has.
 *
 * A device has places for so many, of all tenants.  A tenant has at most its quota of them
 * (`max_gpu_models`) on each GPU.  One that there is no place for waits until a job names it; then,
 * as soon as there is one, it is given that of another model: the one of the tenant's own that was
 * used longest ago, if its quota is what is short; else one of a tenant with more than an even
 * share, or one that nobody has used for a while.  None is let go that a job in flight names.  What
 * the worker did not take is tried again when it is wanted again, after a while.
 *
 * Under the core lock.
 */
#ifndef WHARF_DAEMON_PLACEMENT_GPU_MODELS_H
#define WHARF_DAEMON_PLACEMENT_GPU_MODELS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/core/residency.h"

struct wharf_core;
struct wharf_gpu_view;
struct wharf_job;

/* A job names a model and is about to be queued: GPUs that do not have it are told that it is
 * wanted, if the session may use them. */
void wharf_gpu_models_want(struct wharf_core *core, const struct wharf_job *job);

/* An item of a GPU names it. */
void wharf_gpu_models_use(struct wharf_gpu_view *view, struct wharf_gpu_hold *hold,
                          uint64_t now_ns);

/* For wharf_gpu_memory_set: a model's hold has another state. */
void wharf_gpu_models_count(struct wharf_gpu_view *view, uint32_t gpu, struct wharf_gpu_hold *hold,
                            enum wharf_gpu_memory_state before);

/* When a model that was let go or refused is to be had again: WHARF_NEVER while nobody wants it. */
uint64_t wharf_gpu_models_due_ns(const struct wharf_gpu_hold *hold);

/* Whether there is a place for it. */
bool wharf_gpu_models_have_place(const struct wharf_gpu_view *view, uint32_t gpu,
                                 const struct wharf_gpu_memory *memory);

/* Whom to let go for it, or NULL: nobody at present.  Places may be free, and only memory for it be
 * short. */
struct wharf_gpu_hold *wharf_gpu_models_victim(const struct wharf_gpu_view *view, uint32_t gpu,
                                               const struct wharf_gpu_memory *memory,
                                               uint64_t now_ns);

#endif
