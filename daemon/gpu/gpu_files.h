/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_files.h: pieces whose sources are in files.
 *
 * For the thread of their GPU; where nothing else is said, under the core lock.
 */
#ifndef WHARF_DAEMON_GPU_GPU_FILES_H
#define WHARF_DAEMON_GPU_GPU_FILES_H

#include <stdbool.h>
#include <stdint.h>

struct wharf_gpu_backend;
struct wharf_job;

/* The number of chunks in a job's next piece, at most `most`, so that one read brings all their
 * sources, of *ret_nbytes; or that are all in memory, *ret_is_file being false. */
uint32_t wharf_gpu_files_run(const struct wharf_job *job, uint32_t most, bool *ret_is_file,
                             uint64_t *ret_nbytes);

/* Takes that piece of a job whose next chunk is in a file.  Returns whether there may be more. */
bool wharf_gpu_files_feed(struct wharf_gpu_backend *backend, struct wharf_job *job,
                          uint32_t n_chunks, uint64_t nbytes, uint64_t now_ns);

/* Without the lock: asks for what was fed; looks which reads have ended. */
void wharf_gpu_files_publish(struct wharf_gpu_backend *backend);
void wharf_gpu_files_reap(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* Hands pieces over whose sources are there.  Returns whether other pieces may be handed over. */
bool wharf_gpu_files_pump(struct wharf_gpu_backend *backend, uint64_t now_ns);

/* Whether there is nothing left of all that; and when to look again if the thread sleeps
 * meanwhile, 0 if it should not. */
bool wharf_gpu_files_are_idle(const struct wharf_gpu_backend *backend);
uint64_t wharf_gpu_files_look_ns(const struct wharf_gpu_backend *backend, uint64_t now_ns);

#endif
