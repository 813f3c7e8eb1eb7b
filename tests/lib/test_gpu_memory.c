/* SPDX-License-Identifier: Apache-2.0 */
/* test_gpu_memory.c: stands in for a client's GPU memory with sealed memfds. */
#include "tests/lib/test_gpu_memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "tests/lib/test_client.h"

struct test_gpu_memory test_gpu_memory_new(const char *name, size_t nbytes)
{
    struct test_gpu_memory memory = {
        .fd = memfd_create(name ? name : "gpu memory", MFD_CLOEXEC | MFD_ALLOW_SEALING),
        .nbytes = (nbytes + 4095) & ~(size_t)4095,
    };

    if (memory.fd < 0 || ftruncate(memory.fd, (off_t)memory.nbytes) < 0 ||
        fcntl(memory.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0) {
        perror("memory in place of a GPU's");
        abort();
    }
    memory.at = mmap(NULL, memory.nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd, 0);
    if (memory.at == MAP_FAILED) {
        perror("memory in place of a GPU's");
        abort();
    }
    return memory;
}

void test_gpu_memory_free(struct test_gpu_memory *memory)
{
    munmap(memory->at, memory->nbytes);
    close(memory->fd);
}

int test_gpu_memory_register(struct wharf *wharf, const struct test_gpu_memory *memory)
{
    return wharf_register_gpu(wharf, memory->fd, (uintptr_t)memory->at, memory->nbytes);
}

struct test_client *test_gpu_memory_client(const char *path, uint64_t nbytes)
{
    struct test_client *client = test_client_new();
    struct test_gpu_memory memory = test_gpu_memory_new(NULL, nbytes);

    client->optional_features = (uint64_t)1 << WHARF__FEATURE__FEATURE_GPU_MEMORY |
                                (uint64_t)1 << WHARF__FEATURE__FEATURE_GPU_SOURCES;
    if (test_client_connect(client, path) < 0 || test_client_hello(client) < 0 ||
        test_client_open_with(client, 64, 1 << 20, 0, WHARF_ENGINE_AUTO) < 0 ||
        test_client_register_gpu(client, 1, memory.fd, nbytes) < 0) {
        fprintf(stderr, "no client with memory in place of a GPU's: %s\n", client->error);
        abort();
    }
    test_gpu_memory_free(&memory);
    return client;
}
