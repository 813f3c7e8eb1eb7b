/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_device_simt: the SIMT layer in a GPU's place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/simt/simt_batch.h"
#include "tests/gpu/gpu_device.h"

static void simt_open(void) {}

static void simt_close(void) {}

static const char *simt_name(void)
{
    return "simt";
}

static void *simt_alloc(size_t nbytes)
{
    void *p = malloc(nbytes ? nbytes : 1);
    if (!p) {
        perror("simt: memory");
        exit(3);
    }
    return p;
}

static void simt_copy(void *to, const void *from, size_t nbytes)
{
    if (nbytes)
        memcpy(to, from, nbytes);
}

static void simt_set(void *to, int byte, size_t nbytes)
{
    if (nbytes)
        memset(to, byte, nbytes);
}

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static const uint8_t *simt_add_model(const void *image, size_t nbytes)
{
    void *p = simt_alloc(nbytes);
    simt_copy(p, image, nbytes);
    return p;
}

static void simt_remove_model(const uint8_t *d_image)
{
    free((void *)d_image);
}

static float simt_run(gpu_start_fn *start, void *argument)
{
    double begun = now_ms();
    if (start(argument, NULL) < 0) {
        fprintf(stderr, "simt: nothing could be started\n");
        exit(3);
    }
    return (float)(now_ms() - begun);
}

static float simt_decode(const struct wharf_device_batch *batch)
{
    double start = now_ms();
    if (wharf_simt_decode_batch(batch, WHARF_SIMT_RANDOM, batch->n_chunks, NULL) < 0) {
        fprintf(stderr, "simt: codec %u has no device decoder\n", batch->codec);
        exit(3);
    }
    return (float)(now_ms() - start);
}

static uint32_t simt_choose_kernel(uint32_t codec, size_t n_chunks)
{
    (void)n_chunks;
    return codec;
}

static const char *simt_kernel_facts(uint32_t codec)
{
    (void)codec;
    return "";
}

const struct gpu_device_ops gpu_device_simt = {
    .engine = "simt",
    .open = simt_open,
    .close = simt_close,
    .name = simt_name,
    .alloc = simt_alloc,
    .free = free,
    .host_alloc = simt_alloc,
    .host_free = free,
    .write = simt_copy,
    .read = simt_copy,
    .set = simt_set,
    .add_model = simt_add_model,
    .remove_model = simt_remove_model,
    .run = simt_run,
    .decode = simt_decode,
    .choose_kernel = simt_choose_kernel,
    .kernel_facts = simt_kernel_facts,
};
