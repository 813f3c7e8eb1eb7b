/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_card.c: runs batches on this machine's first GPU, for measurements. */
#include "clientlib/cli/gpu_card.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cuda/wharf_cuda.h"

/* ---- the libraries ------------------------------------------------------------------------- */

/* CUDA's driver interface, as far as it is used: handles are pointers, addresses 64-bit numbers. */
typedef unsigned long long gpu_address;
struct driver {
    int (*init)(unsigned flags);
    int (*get_device)(int *device, int number);
    int (*get_name)(char *name, int name_nbytes, int device);
    int (*retain_context)(void **context, int device);
    int (*release_context)(int device);
    int (*set_context)(void *context);
    int (*get_room)(size_t *free_nbytes, size_t *all_nbytes);
    int (*alloc)(gpu_address *memory, size_t nbytes);
    int (*free)(gpu_address memory);
    int (*copy_in)(gpu_address to, const void *from, size_t nbytes);
    int (*copy_out)(void *to, gpu_address from, size_t nbytes);
    int (*new_event)(void **event, unsigned flags);
    int (*free_event)(void *event);
    int (*record)(void *event, void *stream);
    int (*wait)(void *event);
    int (*elapsed)(float *ms, void *start, void *end);
    int (*error_text)(int error, const char **text);
};

static const char *const driver_names[] = {
    "cuInit",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxSetCurrent",
    "cuMemGetInfo_v2",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemcpyHtoD_v2",
    "cuMemcpyDtoH_v2",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuEventElapsedTime",
    "cuGetErrorString",
};

struct library {
    __typeof__(wharf_cuda_open) *open;
    __typeof__(wharf_cuda_close) *close;
    __typeof__(wharf_cuda_version) *version;
    __typeof__(wharf_cuda_error_message) *error_message;
    __typeof__(wharf_cuda_can_decode) *can_decode;
    __typeof__(wharf_cuda_decode_scratch) *decode_scratch;
    __typeof__(wharf_cuda_decode) *decode;
};

static const char *const library_names[] = {
    "wharf_cuda_open",          "wharf_cuda_close",      "wharf_cuda_version",
    "wharf_cuda_error_message", "wharf_cuda_can_decode", "wharf_cuda_decode_scratch",
    "wharf_cuda_decode",
};

struct wharf_cli_card {
    void *driver_handle;
    void *library_handle;
    struct driver driver;
    struct library library;
    int device;
    bool has_context;
    struct wharf_cuda *cuda;
    char name[96];
};

/* Fills a struct of function pointers, which are in the names' order. */
static int load(const char *file, const char *const *names, size_t n, void *functions,
                void **ret_handle, char *message, size_t message_nbytes)
{
    void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);

    *ret_handle = handle;
    if (!handle) {
        snprintf(message, message_nbytes, "%s", dlerror());
        return -ENOENT;
    }
    for (size_t i = 0; i < n; i++) {
        void *found = dlsym(handle, names[i]);

        if (!found) {
            snprintf(message, message_nbytes, "%s has no %s: it is of another version", file,
                     names[i]);
            return -ENOENT;
        }
        memcpy((char *)functions + i * sizeof(found), &found, sizeof(found));
    }
    return 0;
}
_Static_assert(sizeof(struct driver) == sizeof(driver_names), "a name for each function");
_Static_assert(sizeof(struct library) == sizeof(library_names), "a name for each function");

/* ---- the card ------------------------------------------------------------------------------ */

/* 0, or -EIO after saying what the driver said. */
static int check(const struct wharf_cli_card *card, int error, char *message, size_t message_nbytes)
{
    const char *text = NULL;

    if (error == 0)
        return 0;
    if (card->driver.error_text(error, &text) != 0 || !text)
        text = "an unknown error";
    snprintf(message, message_nbytes, "CUDA's driver says: %s", text);
    return error == 2 ? -ENOMEM : -EIO; /* CUDA_ERROR_OUT_OF_MEMORY */
}

static int take_context(struct wharf_cli_card *card, char *message, size_t message_nbytes)
{
    const struct driver *driver = &card->driver;
    void *context;
    int r = check(card, driver->init(0), message, message_nbytes);

    if (r == 0)
        r = check(card, driver->get_device(&card->device, 0), message, message_nbytes);
    if (r == 0)
        r = check(card, driver->get_name(card->name, sizeof(card->name), card->device), message,
                  message_nbytes);
    if (r == 0)
        r = check(card, driver->retain_context(&context, card->device), message, message_nbytes);
    card->has_context = r == 0;
    return r == 0 ? check(card, driver->set_context(context), message, message_nbytes) : r;
}

static int open_card(struct wharf_cli_card *card, char *message, size_t message_nbytes)
{
    int r = load("libwharf-cuda.so.0", library_names, sizeof(library_names) / sizeof(char *),
                 &card->library, &card->library_handle, message, message_nbytes);

    if (r == 0)
        r = load("libcuda.so.1", driver_names, sizeof(driver_names) / sizeof(char *), &card->driver,
                 &card->driver_handle, message, message_nbytes);
    if (r == 0)
        r = take_context(card, message, message_nbytes);
    if (r < 0)
        return r;
    r = card->library.open(&card->cuda);
    if (r < 0)
        snprintf(message, message_nbytes, "%s", card->library.error_message());
    return r;
}

int wharf_cli_card_open(struct wharf_cli_card **ret_card, char *message, size_t message_nbytes)
{
    struct wharf_cli_card *card = calloc(1, sizeof(*card));

    if (!card) {
        snprintf(message, message_nbytes, "out of memory");
        return -ENOMEM;
    }
    int r = open_card(card, message, message_nbytes);
    if (r < 0)
        wharf_cli_card_close(card);
    else
        *ret_card = card;
    return r;
}

/* The libraries stay loaded: a driver's threads may run in them. */
void wharf_cli_card_close(struct wharf_cli_card *card)
{
    if (!card)
        return;
    if (card->cuda)
        card->library.close(card->cuda);
    if (card->has_context)
        card->driver.release_context(card->device);
    free(card);
}

const char *wharf_cli_card_name(const struct wharf_cli_card *card)
{
    return card->name;
}

const char *wharf_cli_card_version(const struct wharf_cli_card *card)
{
    return card->library.version();
}

int wharf_cli_card_can_decode(const struct wharf_cli_card *card, uint32_t codec)
{
    return card->library.can_decode(codec);
}

size_t wharf_cli_card_copies(const struct wharf_cli_card *card, uint64_t in_nbytes,
                             uint64_t out_nbytes, uint64_t wanted_nbytes)
{
    size_t free_nbytes = 0, all_nbytes;
    uint64_t n = wanted_nbytes / (out_nbytes + 1) + 1;

    if (card->driver.get_room(&free_nbytes, &all_nbytes) != 0)
        return 1;
    /* A half of it is for scratch, and for others. */
    uint64_t most = free_nbytes / 2 / (in_nbytes + out_nbytes + 1);
    return most == 0 ? 1 : n < most ? (size_t)n : (size_t)most;
}

/* ---- batches ------------------------------------------------------------------------------- */

enum { ALIGN = 256 };

struct wharf_cli_card_batch {
    struct wharf_cli_card *card;
    const struct wharf_cli_bench_chunk *chunks;
    size_t n_chunks, n_copies;
    size_t in_nbytes, out_nbytes; /* of one copy, with gaps */
    gpu_address in, out, arrays, outcomes, scratch;
    void *start, *end;
    struct wharf_cuda_batch batch;
};

static size_t round_up(size_t nbytes)
{
    return (nbytes + ALIGN - 1) / ALIGN * ALIGN;
}

static const void *pointer(gpu_address address)
{
    return (const void *)(uintptr_t)address;
}

/* The sources' bytes, each copy at its place. */
static int write_sources(struct wharf_cli_card_batch *batch)
{
    uint8_t *image = calloc(1, batch->in_nbytes + 1);
    size_t at = 0;
    int r = 0;

    if (!image)
        return 2;
    for (size_t i = 0; i < batch->n_chunks; i++) {
        memcpy(image + at, batch->chunks[i].packed, batch->chunks[i].packed_nbytes);
        at += round_up(batch->chunks[i].packed_nbytes);
    }
    for (size_t i = 0; i < batch->n_copies && r == 0; i++)
        r = batch->card->driver.copy_in(batch->in + i * batch->in_nbytes, image, batch->in_nbytes);
    free(image);
    return r;
}

/* What struct wharf_cuda_batch points to: four arrays, one behind the other. */
static int write_arrays(struct wharf_cli_card_batch *batch)
{
    size_t n = batch->n_chunks * batch->n_copies;
    uint64_t *image = malloc(4 * n * sizeof(*image) + 1);

    if (!image)
        return 2;
    for (size_t copy = 0, at = 0; copy < batch->n_copies; copy++) {
        gpu_address in = batch->in + copy * batch->in_nbytes;
        gpu_address out = batch->out + copy * batch->out_nbytes;

        for (size_t i = 0; i < batch->n_chunks; i++, at++) {
            const struct wharf_cli_bench_chunk *chunk = &batch->chunks[i];

            image[at] = in;
            image[n + at] = chunk->packed_nbytes;
            image[2 * n + at] = out;
            image[3 * n + at] = chunk->raw_nbytes;
            in += round_up(chunk->packed_nbytes);
            out += round_up(chunk->raw_nbytes);
        }
    }
    int r = batch->card->driver.copy_in(batch->arrays, image, 4 * n * sizeof(*image));
    free(image);
    batch->batch.in = pointer(batch->arrays);
    batch->batch.in_nbytes = pointer(batch->arrays + n * sizeof(*image));
    batch->batch.out = pointer(batch->arrays + 2 * n * sizeof(*image));
    batch->batch.out_avail = pointer(batch->arrays + 3 * n * sizeof(*image));
    batch->batch.outcomes = (struct wharf_outcome *)(uintptr_t)batch->outcomes;
    return r;
}
_Static_assert(sizeof(size_t) == 8 && sizeof(void *) == 8, "entries of the arrays");

static int make_batch(struct wharf_cli_card_batch *batch, char *message, size_t message_nbytes)
{
    const struct driver *driver = &batch->card->driver;
    size_t n = batch->n_chunks * batch->n_copies;
    int error = 0;

    for (size_t i = 0; i < batch->n_chunks; i++) {
        batch->in_nbytes += round_up(batch->chunks[i].packed_nbytes);
        batch->out_nbytes += round_up(batch->chunks[i].raw_nbytes);
    }
    batch->batch = (struct wharf_cuda_batch)WHARF_CUDA_BATCH_INIT;
    batch->batch.codec = batch->chunks[0].codec;
    batch->batch.parameter = batch->chunks[0].parameter;
    batch->batch.flags = batch->chunks[0].flags;
    batch->batch.n_chunks = n;
    int r = batch->card->library.decode_scratch(batch->card->cuda, &batch->batch,
                                                &batch->batch.scratch_nbytes);
    if (r < 0) {
        snprintf(message, message_nbytes, "%s", batch->card->library.error_message());
        return r;
    }
    if (!error)
        error = driver->alloc(&batch->in, batch->in_nbytes * batch->n_copies);
    if (!error)
        error = driver->alloc(&batch->out, batch->out_nbytes * batch->n_copies);
    if (!error)
        error = driver->alloc(&batch->arrays, 4 * n * sizeof(uint64_t));
    if (!error)
        error = driver->alloc(&batch->outcomes, n * sizeof(struct wharf_outcome));
    if (!error)
        error = driver->alloc(&batch->scratch, batch->batch.scratch_nbytes);
    batch->batch.scratch = (void *)(uintptr_t)batch->scratch;
    if (!error)
        error = driver->new_event(&batch->start, 0);
    if (!error)
        error = driver->new_event(&batch->end, 0);
    if (!error)
        error = write_sources(batch);
    if (!error)
        error = write_arrays(batch);
    return check(batch->card, error, message, message_nbytes);
}

int wharf_cli_card_batch_new(struct wharf_cli_card *card,
                             const struct wharf_cli_bench_chunk *chunks, size_t n_chunks,
                             size_t n_copies, struct wharf_cli_card_batch **ret_batch,
                             char *message, size_t message_nbytes)
{
    struct wharf_cli_card_batch *batch = calloc(1, sizeof(*batch));

    if (!batch) {
        snprintf(message, message_nbytes, "out of memory");
        return -ENOMEM;
    }
    batch->card = card;
    batch->chunks = chunks;
    batch->n_chunks = n_chunks;
    batch->n_copies = n_copies;
    int r = make_batch(batch, message, message_nbytes);
    if (r < 0)
        wharf_cli_card_batch_free(batch);
    else
        *ret_batch = batch;
    return r;
}

void wharf_cli_card_batch_free(struct wharf_cli_card_batch *batch)
{
    if (!batch)
        return;
    const struct driver *driver = &batch->card->driver;
    const gpu_address memory[] = {batch->in, batch->out, batch->arrays, batch->outcomes,
                                  batch->scratch};
    for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++)
        if (memory[i])
            driver->free(memory[i]);
    if (batch->start)
        driver->free_event(batch->start);
    if (batch->end)
        driver->free_event(batch->end);
    free(batch);
}

int wharf_cli_card_batch_decode(struct wharf_cli_card_batch *batch, uint64_t *ret_ns)
{
    const struct driver *driver = &batch->card->driver;
    float ms = 0;

    if (driver->record(batch->start, NULL) != 0)
        return -EIO;
    int r = batch->card->library.decode(batch->card->cuda, &batch->batch, NULL);
    if (r < 0)
        return r;
    if (driver->record(batch->end, NULL) != 0 || driver->wait(batch->end) != 0 ||
        driver->elapsed(&ms, batch->start, batch->end) != 0)
        return -EIO;
    *ret_ns = (uint64_t)((double)ms * 1e6);
    return 0;
}

typedef int each_fn(void *context, size_t chunk, const struct wharf_outcome *outcome,
                    const uint8_t *out);

static int each_of_copy(const struct wharf_cli_card_batch *batch, size_t copy,
                        const struct wharf_outcome *outcomes, const uint8_t *out, each_fn *each,
                        void *context)
{
    size_t first = copy * batch->n_chunks;
    int r = 0;

    for (size_t i = 0; i < batch->n_chunks && r == 0; i++) {
        r = each(context, first + i, &outcomes[first + i], out);
        out += round_up(batch->chunks[i].raw_nbytes);
    }
    return r;
}

int wharf_cli_card_batch_each(struct wharf_cli_card_batch *batch, each_fn *each, void *context)
{
    const struct driver *driver = &batch->card->driver;
    size_t n = batch->batch.n_chunks;
    struct wharf_outcome *outcomes = malloc(n * sizeof(*outcomes) + 1);
    uint8_t *out = malloc(batch->out_nbytes + 1);
    int r = outcomes && out ? 0 : -ENOMEM;

    if (r == 0 && driver->copy_out(outcomes, batch->outcomes, n * sizeof(*outcomes)))
        r = -EIO;
    for (size_t copy = 0; copy < batch->n_copies && r == 0; copy++) {
        r = driver->copy_out(out, batch->out + copy * batch->out_nbytes, batch->out_nbytes) ? -EIO
                                                                                            : 0;
        if (r == 0)
            r = each_of_copy(batch, copy, outcomes, out, each, context);
    }
    free(outcomes);
    free(out);
    return r;
}

static int compare_chunk(void *context, size_t chunk, const struct wharf_outcome *outcome,
                         const uint8_t *out)
{
    const struct wharf_cli_card_batch *batch = context;
    const struct wharf_cli_bench_chunk *wanted = &batch->chunks[chunk % batch->n_chunks];

    if (outcome->result != WHARF_OK || outcome->out_nbytes != wanted->raw_nbytes)
        return -EBADMSG;
    return wanted->raw && memcmp(out, wanted->raw, wanted->raw_nbytes) != 0 ? -EBADMSG : 0;
}

int wharf_cli_card_batch_compare(struct wharf_cli_card_batch *batch)
{
    return wharf_cli_card_batch_each(batch, compare_chunk, batch);
}
