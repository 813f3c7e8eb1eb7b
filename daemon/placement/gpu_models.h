/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_models.h: which registered models each GPU has.
 *
 * A device has a fixed number of places for the models of all tenants.  A tenant has at most its
 * quota
 * (`max_gpu_models`) on each GPU.  A model without a place waits until a job names it.  Then it
 * replaces another model: if the quota is short, the tenant's least recently used one; else one of
 * a tenant above an even share, or one that was idle for a while.  Models that jobs in flight name
 * stay. A model that the worker refused is tried again later, when a job names it.
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

/* A job that names a model is about to be queued: tells GPUs without the model that it is wanted,
 * if the session may use them. */
void wharf_gpu_models_want(struct wharf_core *core, const struct wharf_job *job);

/* An item on a GPU names the model. */
void wharf_gpu_models_use(struct wharf_gpu_view *view, struct wharf_gpu_hold *hold,
                          uint64_t now_ns);

/* For wharf_gpu_memory_set: the state of a model has changed. */
void wharf_gpu_models_count(struct wharf_gpu_view *view, uint32_t gpu, struct wharf_gpu_hold *hold,
                            enum wharf_gpu_memory_state before);

/* When to register a released or refused model again; WHARF_NEVER while no job wants it. */
uint64_t wharf_gpu_models_due_ns(const struct wharf_gpu_hold *hold);

/* Whether the GPU has a place for the model. */
bool wharf_gpu_models_have_place(const struct wharf_gpu_view *view, uint32_t gpu,
                                 const struct wharf_gpu_memory *memory);

/* The model to release for another one; NULL: none at present.  Also serves when there are free
 * places, but too little memory. */
struct wharf_gpu_hold *wharf_gpu_models_victim(const struct wharf_gpu_view *view, uint32_t gpu,
                                               const struct wharf_gpu_memory *memory,
                                               uint64_t now_ns);

#endif
