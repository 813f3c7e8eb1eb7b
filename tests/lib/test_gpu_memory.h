/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_gpu_memory.h: a stand-in for a client's own GPU memory, for workers that run device code on
 * the CPU: a sealed memfd.
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

/* nbytes of zeros, in whole pages, on the GPU `name`, such as "gpu:1"; NULL: on the only one.
 * Failures end the program. */
struct test_gpu_memory test_gpu_memory_new(const char *name, size_t nbytes);
void test_gpu_memory_free(struct test_gpu_memory *memory);

/* The same as wharf_register_gpu(). */
int test_gpu_memory_register(struct wharf *wharf, const struct test_gpu_memory *memory);

/* A raw client of the daemon at `path`, with a queue for any engine, an arena of 1 MiB, and nbytes
 * of such memory as region 1. */
struct test_client *test_gpu_memory_client(const char *path, uint64_t nbytes);

#endif
