/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_gpu_memory.h: what a client has instead of GPU memory that it made itself, for a worker with
 * the device's code on the CPU: a sealed memfd.
 */
#ifndef WHARF_TESTS_TEST_GPU_MEMORY_H
#define WHARF_TESTS_TEST_GPU_MEMORY_H

#include <stddef.h>
#include <stdint.h>

struct test_client;
struct wharf;

struct test_gpu_memory {
    int fd;
    uint8_t *at;
    size_t nbytes;
};

/* So many bytes, in whole pages, zeros; on GPU `name` as in "gpu:1", or NULL: on the one there is.
 * What does not work ends the program. */
struct test_gpu_memory test_gpu_memory_new(const char *name, size_t nbytes);
void test_gpu_memory_free(struct test_gpu_memory *memory);

/* As wharf_register_gpu(). */
int test_gpu_memory_register(struct wharf *wharf, const struct test_gpu_memory *memory);

/* A raw client of the daemon at `path`, with a queue for any engine, an arena of a MiB, and so much
 * of such memory as region 1. */
struct test_client *test_gpu_memory_client(const char *path, uint64_t nbytes);

#endif
