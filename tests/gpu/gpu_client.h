/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_client.h: GPU memory as a client of the daemon makes and offers it, and what such a client
 * does with it.  Functions return 0, or anything else with wharf_cuda_error_text.
 */
#ifndef WHARF_TESTS_GPU_CLIENT_H
#define WHARF_TESTS_GPU_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct gpu_client_memory {
    uint8_t *at; /* device address */
    size_t nbytes;
    int fd; /* its descriptor, for others */
};

/* Of the GPU of that number is all that the calling thread makes from now on; of the first one
 * before. */
int gpu_client_use(int device);

/* nbytes is a multiple of 2 MiB.  Filled with 0xa5. */
int gpu_client_make(size_t nbytes, struct gpu_client_memory *ret_memory);
/* Closes the descriptor too, unless that is -1. */
int gpu_client_free(struct gpu_client_memory *memory);

/* Are over when they return. */
int gpu_client_set(uint8_t *to, int byte, size_t nbytes);
int gpu_client_put(uint8_t *to, const void *from, size_t nbytes);
int gpu_client_get(void *to, const uint8_t *from, size_t nbytes);

/* How many bytes differ, found out by a kernel that is launched at once, in a stream of its own. */
int gpu_client_compare(const uint8_t *a, const uint8_t *b, size_t nbytes, unsigned *ret_n);

/* What is free of the GPU's memory. */
int gpu_client_room(size_t *ret_nbytes);

#ifdef __cplusplus
}
#endif

#endif
