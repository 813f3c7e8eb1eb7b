/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_stage.h: the places of pieces in their sessions' staging areas (core/file_staging.h).
 *
 * For the thread of their GPU, under the core lock.
 */
#ifndef WHARF_DAEMON_GPU_GPU_STAGE_H
#define WHARF_DAEMON_GPU_GPU_STAGE_H

#include <stdint.h>

struct wharf_gpu_backend;
struct wharf_gpu_piece;
struct wharf_session;

/* Called once. */
void wharf_gpu_stage_init(struct wharf_gpu_backend *backend);

/* Has a piece of one chunk, which is in no list and has no place, read. */
void wharf_gpu_stage_await(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece);

/* A piece leaves the GPU: gives its place back, if it has one. */
void wharf_gpu_stage_release(struct wharf_gpu_backend *backend, struct wharf_gpu_piece *piece);

/* Looks whether the session's area has room again: then jobs that waited for it are placed anew. */
void wharf_gpu_stage_tell_of_room(struct wharf_gpu_backend *backend, struct wharf_session *session);

/* Gives places back that were left to their reads. */
void wharf_gpu_stage_see_to_left(struct wharf_gpu_backend *backend, uint64_t now_ns);

#endif
