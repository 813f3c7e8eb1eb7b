/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_stream.h: what a client's CUDA streams do that wait for jobs of the daemon, and let jobs
 * begin.  All of it but gpu_stream_sync is only enqueued.  Functions return 0, or anything else
 * with wharf_cuda_error_text.
 */
#ifndef WHARF_TESTS_GPU_STREAM_H
#define WHARF_TESTS_GPU_STREAM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gpu_stream; /* a CUDA stream */

/* What streams found, in memory of the host that the device writes. */
struct gpu_stream_counts {
    uint64_t n_looks;   /* outputs that were looked at */
    uint64_t n_results; /* words that did not say what was expected */
    uint64_t n_bytes;   /* bytes that were not those expected */
};

int gpu_stream_new(struct gpu_stream **ret_stream);
int gpu_stream_free(struct gpu_stream *stream);
/* Until all that was enqueued is done. */
int gpu_stream_sync(struct gpu_stream *stream);
/* 1: it is; 0: not yet; below 0: an error. */
int gpu_stream_is_done(struct gpu_stream *stream);

/* Makes memory of the host reachable for the device, whole pages, and its address there; and ends
 * that. */
int gpu_stream_pin(void *host, size_t nbytes, uint64_t *ret_device);
int gpu_stream_unpin(void *host);

/* Device memory of the test's own. */
int gpu_stream_make(size_t nbytes, uint8_t **ret_memory);

int gpu_stream_set(struct gpu_stream *stream, uint8_t *to, int byte, size_t nbytes);
int gpu_stream_copy(struct gpu_stream *stream, uint8_t *to, const uint8_t *from, size_t nbytes);

/* By addresses of the device: lets the job begin; waits for the job. */
int gpu_stream_write_start(struct gpu_stream *stream, uint64_t word, uint32_t serial);
int gpu_stream_wait_done(struct gpu_stream *stream, uint64_t word, uint32_t serial);

/* A kernel that reads the done word and, if that says OK, compares the output. */
int gpu_stream_look(struct gpu_stream *stream, uint64_t word, uint32_t expected_result,
                    const uint8_t *output, const uint8_t *expected, size_t nbytes, uint64_t counts);

/* Stores the device's time, in nanoseconds. */
int gpu_stream_stamp(struct gpu_stream *stream, uint64_t at);

/* A kernel on all multiprocessors that ends when *stop, of the host, is not 0. */
int gpu_stream_spin(struct gpu_stream *stream, uint64_t stop);

#ifdef __cplusplus
}
#endif

#endif
