/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_device.h: what runs device code in the GPU's tests and benchmarks: a GPU by libwharf-cuda's
 * public calls ("library"), or by kernels that are named ("cuda"); or the SIMT layer in its place
 * ("simt"), with which the programs themselves are tried out on any machine.
 *
 * Functions end the program with a message when something fails: nothing that goes wrong here is
 * a test's result.
 */
#ifndef WHARF_TESTS_GPU_DEVICE_H
#define WHARF_TESTS_GPU_DEVICE_H

#include <stddef.h>

#include "kernels/device_batch.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* Starts something in a stream; 0 or -errno. */
typedef int gpu_start_fn(void *argument, struct CUstream_st *stream);

struct gpu_device_ops {
    const char *engine;
    void (*open)(void);
    void (*close)(void);
    const char *(*name)(void); /* of the card */
    /* Device memory, of nbytes exactly to a memory checker. */
    void *(*alloc)(size_t nbytes);
    void (*free)(void *p);
    /* Memory of the host that the device reads and writes fast. */
    void *(*host_alloc)(size_t nbytes);
    void (*host_free)(void *p);
    void (*write)(void *to, const void *from, size_t nbytes);
    void (*read)(void *to, const void *from, size_t nbytes);
    void (*set)(void *to, int byte, size_t nbytes);
    /* A model's image on the device. */
    const uint8_t *(*add_model)(const void *image, size_t nbytes);
    void (*remove_model)(const uint8_t *d_image);
    /* Starts something and waits for it.  Returns the milliseconds on the device. */
    float (*run)(gpu_start_fn *start, void *argument);
    /* Decodes and waits.  Returns the milliseconds on the device. */
    float (*decode)(const struct wharf_device_batch *batch);
    /* The kernel for n_chunks chunks of a codec, as a batch names it. */
    uint32_t (*choose_kernel)(uint32_t codec, size_t n_chunks);
    /* One line of JSON members about a codec's kernel, "" where there are none. */
    const char *(*kernel_facts)(uint32_t codec);
};

extern const struct gpu_device_ops gpu_device_cuda;
extern const struct gpu_device_ops gpu_device_simt;
extern const struct gpu_device_ops gpu_device_library;

/* What "cuda" and "library" run from now on becomes a CUDA graph first, which is replayed: a first
 * time, and once more, which is what counts. */
void gpu_device_use_graphs(void);

#ifdef __cplusplus
}
#endif

#endif
