/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_device_library: libwharf-cuda's public calls, as a program makes them, on the first GPU that
 * CUDA shows.  A batch is taken apart into arrays, one call for all neighbours that have codec,
 * parameter, flags and model in common.  Outcomes go straight where the batch wants them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cuda/cuda_model.h"
#include "clientlib/cuda/wharf_cuda.h"
#include "kernels/cuda_error.h"
#include "tests/gpu/gpu_device.h"

enum { MAX_MODELS = 64 };

static struct {
    struct wharf_cuda *cuda;
    /* Models have no address that a chunk could name: theirs here. */
    struct wharf_cuda_model *models[MAX_MODELS];
    void *d_scratch;
    size_t scratch_nbytes;
} library;

static const struct gpu_device_ops *base(void)
{
    return &gpu_device_cuda;
}

static void must(int rc)
{
    if (rc == 0)
        return;
    fprintf(stderr, "libwharf-cuda: %s: %s\n", strerror(-rc), wharf_cuda_error_message());
    exit(3);
}

static void *must_calloc(size_t n, size_t nbytes)
{
    void *p = calloc(n ? n : 1, nbytes);
    if (!p) {
        perror("libwharf-cuda: memory");
        exit(3);
    }
    return p;
}

static void library_open(void)
{
    base()->open();
    must(wharf_cuda_open(&library.cuda));
}

static void library_close(void)
{
    wharf_cuda_close(library.cuda);
    if (library.d_scratch)
        base()->free(library.d_scratch);
    base()->close();
}

static const char *library_name(void)
{
    return base()->name();
}

static void *library_alloc(size_t nbytes)
{
    return base()->alloc(nbytes);
}

static void library_free(void *p)
{
    base()->free(p);
}

static void *library_host_alloc(size_t nbytes)
{
    return base()->host_alloc(nbytes);
}

static void library_host_free(void *p)
{
    base()->host_free(p);
}

static void library_copy(void *to, const void *from, size_t nbytes)
{
    base()->write(to, from, nbytes);
}

static void library_set(void *to, int byte, size_t nbytes)
{
    base()->set(to, byte, nbytes);
}

static float library_run(gpu_start_fn *start, void *argument)
{
    return base()->run(start, argument);
}

/* A model's address is that of its entry here. */
static const uint8_t *library_add_model(const void *image, size_t nbytes)
{
    unsigned i = 0;
    while (i < MAX_MODELS && library.models[i])
        i++;
    if (i == MAX_MODELS) {
        fprintf(stderr, "libwharf-cuda: more than %d models\n", MAX_MODELS);
        exit(3);
    }
    must(wharf_cuda_model_of_image(library.cuda, WHARF_CODEC_RANS, image, nbytes,
                                   &library.models[i]));
    return (const uint8_t *)&library.models[i];
}

static struct wharf_cuda_model *model_at(const uint8_t *entry)
{
    return entry ? *(struct wharf_cuda_model *const *)entry : NULL;
}

static void library_remove_model(const uint8_t *entry)
{
    unsigned i = (unsigned)((struct wharf_cuda_model *const *)entry - library.models);
    wharf_cuda_model_free(library.models[i]);
    library.models[i] = NULL;
}

/* One call: chunks that have all but their memory in common.  `device_part` holds the arrays. */
struct call {
    struct wharf_cuda_batch batch;
    void *device_part;
};

static int start_call(void *argument, struct CUstream_st *stream)
{
    const struct call *call = argument;
    return wharf_cuda_decode(library.cuda, &call->batch, stream);
}

static int are_alike(const struct wharf_device_chunk *a, const struct wharf_device_chunk *b)
{
    return a->codec == b->codec && a->parameter == b->parameter && a->flags == b->flags &&
           a->model == b->model;
}

/* The arrays of n chunks in one piece of device memory. */
static void fill_call(struct call *call, const struct wharf_device_chunk *chunks, size_t n)
{
    struct arrays {
        const void *in;
        void *out;
        size_t in_nbytes, out_avail;
    };
    size_t nbytes = n * (sizeof(struct arrays) + sizeof(uint32_t));
    char *image = must_calloc(1, nbytes);
    const void **in = (const void **)image;
    void **out = (void **)(in + n);
    size_t *in_nbytes = (size_t *)(out + n), *out_avail = in_nbytes + n;
    uint32_t *checksums = (uint32_t *)(out_avail + n);

    for (size_t i = 0; i < n; i++) {
        in[i] = chunks[i].in;
        out[i] = chunks[i].out;
        in_nbytes[i] = chunks[i].in_nbytes;
        out_avail[i] = chunks[i].out_avail;
        checksums[i] = chunks[i].checksum;
    }
    char *there = base()->alloc(nbytes);
    base()->write(there, image, nbytes);
    call->device_part = there;
    call->batch.in = (const void *const *)there;
    call->batch.out = (void *const *)(there + ((char *)out - image));
    call->batch.in_nbytes = (const size_t *)(there + ((char *)in_nbytes - image));
    call->batch.out_avail = (const size_t *)(there + ((char *)out_avail - image));
    call->batch.checksums = (const uint32_t *)(there + ((char *)checksums - image));
    free(image);
}

/* Scratch as large as is asked for, and full of what was there before. */
static void lend_scratch(struct wharf_cuda_batch *batch)
{
    size_t nbytes;
    must(wharf_cuda_decode_scratch(library.cuda, batch, &nbytes));
    if (nbytes > library.scratch_nbytes) {
        if (library.d_scratch)
            base()->free(library.d_scratch);
        library.d_scratch = base()->alloc(nbytes);
        library.scratch_nbytes = nbytes;
        base()->set(library.d_scratch, 0x5a, nbytes);
    }
    batch->scratch = library.d_scratch;
    batch->scratch_nbytes = nbytes;
}

static float run_call(const struct wharf_device_chunk *chunks, size_t n,
                      struct wharf_outcome *outcomes)
{
    struct call call = {.batch = WHARF_CUDA_BATCH_INIT};

    call.batch.codec = chunks[0].codec;
    call.batch.parameter = chunks[0].parameter;
    call.batch.flags = chunks[0].flags;
    call.batch.model = model_at(chunks[0].model);
    call.batch.n_chunks = n;
    call.batch.outcomes = outcomes;
    fill_call(&call, chunks, n);
    lend_scratch(&call.batch);
    float ms = base()->run(start_call, &call);
    base()->free(call.device_part);
    return ms;
}

/* The batch's kernel is not looked at: the library chooses. */
static float library_decode(const struct wharf_device_batch *batch)
{
    struct wharf_device_chunk *chunks = must_calloc(batch->n_chunks, sizeof(*chunks));
    float ms = 0;

    base()->read(chunks, batch->chunks, batch->n_chunks * sizeof(*chunks));
    for (size_t i = 0, n; i < batch->n_chunks; i += n) {
        for (n = 1; i + n < batch->n_chunks && are_alike(&chunks[i], &chunks[i + n]);)
            n++;
        ms += run_call(chunks + i, n, batch->outcomes + i);
    }
    free(chunks);
    return ms;
}

static uint32_t library_choose_kernel(uint32_t codec, size_t n_chunks)
{
    return base()->choose_kernel(codec, n_chunks);
}

static const char *library_kernel_facts(uint32_t codec)
{
    return base()->kernel_facts(codec);
}

const struct gpu_device_ops gpu_device_library = {
    .engine = "library",
    .open = library_open,
    .close = library_close,
    .name = library_name,
    .alloc = library_alloc,
    .free = library_free,
    .host_alloc = library_host_alloc,
    .host_free = library_host_free,
    .write = library_copy,
    .read = library_copy,
    .set = library_set,
    .add_model = library_add_model,
    .remove_model = library_remove_model,
    .run = library_run,
    .decode = library_decode,
    .choose_kernel = library_choose_kernel,
    .kernel_facts = library_kernel_facts,
};
