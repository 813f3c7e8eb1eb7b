/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_memory_parts.h: what the two parts of wharf_gpu_memory share. */
#ifndef WHARF_TESTS_GPU_MEMORY_PARTS_H
#define WHARF_TESTS_GPU_MEMORY_PARTS_H

#include "clientlib/wharf.h"
#include "tests/gpu/gpu_client.h"
#include "tests/lib/test_wharfd.h"

struct gpu_source;

/* Ends the program where that is not to be expected: of calls of the library, of CUDA. */
void gpu_memory_must(const char *what, int r);
void gpu_memory_must_cuda(const char *what, int r);

/* The daemon, and a handle of it once it was started. */
extern struct test_wharfd gpu_memory_wharfd;
struct wharf *gpu_memory_open(uint32_t engine, uint32_t max_jobs, size_t arena_nbytes);

/* GPU memory of at least nbytes that is registered. */
struct gpu_client_memory gpu_memory_register(struct wharf *wharf, size_t nbytes);

/* Prints a line each: how many bytes a second are decoded from the arena into the arena, from there
 * into GPU memory, and from GPU memory into GPU memory. */
void gpu_memory_measure(const char *codec, const char *path, size_t chunk_nbytes, double seconds);

/* The same from the arena into GPU memory, and from a file into GPU memory and into the arena. */
void gpu_memory_measure_files(const char *codec, const char *path, size_t chunk_nbytes,
                              double seconds);

/* The same for n_processes that each have a batch of n_chunks in flight, with all in GPU memory:
 * prints one line. */
void gpu_memory_measure_share(const char *codec, const char *path, size_t chunk_nbytes,
                              unsigned n_processes, uint32_t n_chunks, double seconds);

/* For that: of a file that is packed.  No CUDA call may have been made by this process. */
void gpu_memory_share(const struct gpu_source *source, const char *name, unsigned n_processes,
                      uint32_t n_chunks, double seconds);

#endif
