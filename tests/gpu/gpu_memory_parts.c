/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_memory_parts.c: the daemon, handles and memory, for both parts of wharf_gpu_memory. */
#include "tests/gpu/gpu_memory_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "kernels/cuda_error.h"

#define GRANULARITY ((size_t)2 << 20)

struct test_wharfd gpu_memory_wharfd;

void gpu_memory_must(const char *what, int r)
{
    if (r >= 0)
        return;
    printf("# %s: %s\n", what, wharf_error_message());
    exit(1);
}

void gpu_memory_must_cuda(const char *what, int r)
{
    if (r == 0)
        return;
    printf("# %s: %s\n", what, wharf_cuda_error_text());
    exit(1);
}

struct wharf *gpu_memory_open(uint32_t engine, uint32_t max_jobs, size_t arena_nbytes)
{
    return test_wharfd_open(&gpu_memory_wharfd, engine, max_jobs, arena_nbytes);
}

static size_t whole(size_t nbytes)
{
    return (nbytes + GRANULARITY - 1) / GRANULARITY * GRANULARITY;
}

static int register_memory(struct wharf *wharf, const struct gpu_client_memory *memory)
{
    return wharf_register_gpu(wharf, memory->fd, (uintptr_t)memory->at, memory->nbytes);
}

struct gpu_client_memory gpu_memory_register(struct wharf *wharf, size_t nbytes)
{
    struct gpu_client_memory memory;

    gpu_memory_must_cuda("making memory", gpu_client_make(whole(nbytes), &memory));
    gpu_memory_must("registering memory", register_memory(wharf, &memory));
    close(memory.fd);
    memory.fd = -1;
    return memory;
}
