/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_calls.c: the public functions of libwharf-cuda: checks their arguments and starts kernels by
 * kernels/cuda_batch.h.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cuda/cuda_handle.h"
#include "clientlib/cuda/cuda_model.h"
#include "clientlib/cuda/wharf_cuda.h"
#include "clientlib/error_text.h"
#include "clientlib/sized_struct.h"
#include "clientlib/wharf.h"
#include "encoders/line/line.h"
#include "encoders/rans/rans.h"
#include "encoders/rans/rans_image.h"
#include "encoders/rle_values.h"
#include "kernels/chain_sources.h"
#include "kernels/chunk_sizes.h"
#include "kernels/cuda_batch.h"
#include "kernels/rans_pieces.h"

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "arrays of sizes are the device's");
_Static_assert(WHARF_CUDA_MAX_CHUNK_NBYTES == WHARF_DEVICE_CHUNK_MAX_NBYTES, "as the header says");

enum {
    BATCH_NBYTES_0_1 = offsetof(struct wharf_cuda_batch, scratch_nbytes) + sizeof(size_t),
    ENCODING_NBYTES_0_1 = offsetof(struct wharf_cuda_encoding, outcomes) + sizeof(void *),
    IMAGE_ALIGN = 16,
};

static int no_memory(void)
{
    return wharf_client_fail(-ENOMEM, "out of memory");
}

int wharf_cuda_note(int rc)
{
    return rc == 0 ? 0 : wharf_client_fail(rc, "%s", wharf_cuda_error_text());
}

static int no_handle(void)
{
    return wharf_client_fail(-EINVAL, "the handle is NULL");
}

/* ---- handles --------------------------------------------------------------------------------- */

int wharf_cuda_open(struct wharf_cuda **ret_cuda)
{
    struct wharf_cuda *cuda;

    if (!ret_cuda)
        return wharf_client_fail(-EINVAL, "ret_cuda is NULL");
    cuda = calloc(1, sizeof(*cuda));
    if (!cuda)
        return no_memory();
    int rc = wharf_cuda_note(wharf_cuda_decoder_new(&cuda->decoder));
    if (rc == 0)
        rc = wharf_cuda_note(wharf_cuda_load_rans());
    if (rc == 0)
        rc = wharf_cuda_note(wharf_cuda_load_sizes());
    if (rc == 0)
        rc = wharf_cuda_note(wharf_cuda_load_chain());
    if (rc == 0)
        rc = wharf_cuda_note(wharf_cuda_load_inflate(&cuda->inflate));
    if (rc < 0) {
        wharf_cuda_decoder_free(cuda->decoder);
        free(cuda);
        return rc;
    }
    *ret_cuda = cuda;
    return 0;
}

void wharf_cuda_close(struct wharf_cuda *cuda)
{
    if (!cuda)
        return;
    wharf_cuda_decoder_free(cuda->decoder);
    free(cuda);
}

const char *wharf_cuda_version(void)
{
    return WHARF_VERSION;
}

const char *wharf_cuda_error_message(void)
{
    return wharf_error_message();
}

int wharf_cuda_can_decode(uint32_t codec)
{
    return wharf_cuda_has_decoder(codec);
}

int wharf_cuda_can_encode(uint32_t codec)
{
    return codec >= WHARF_CODEC_BDI && codec <= WHARF_CODEC_PALETTE;
}

int wharf_cuda_can_size(uint32_t codec)
{
    return wharf_cuda_can_decode(codec) && wharf_cuda_has_sizes(codec);
}

/* ---- models ---------------------------------------------------------------------------------- */

/* The faster kernel for an image. */
static uint32_t kernel_for_image(const struct wharf_rans_image *image)
{
    bool is_of_bytes = image->symbol_nbytes == 1 && image->n_distributions == 1;

    return is_of_bytes ? WHARF_CODEC_RANS : WHARF_DEVICE_INDEXED | WHARF_CODEC_RANS;
}

static int no_model(enum wharf_reason reason)
{
    return wharf_client_fail(-EBADMSG, "it is no model: %s", wharf_reason_string(reason));
}

static int make_image(const void *model, size_t model_nbytes, void **ret_image, size_t *ret_nbytes)
{
    size_t nbytes;
    enum wharf_reason reason = wharf_rans_image_nbytes(model, model_nbytes, &nbytes);
    void *image;

    if (reason != WHARF_REASON_NONE)
        return no_model(reason);
    nbytes = (nbytes + IMAGE_ALIGN - 1) / IMAGE_ALIGN * IMAGE_ALIGN;
    image = aligned_alloc(IMAGE_ALIGN, nbytes);
    if (!image)
        return no_memory();
    memset(image, 0, nbytes);
    reason = wharf_rans_image_make(model, model_nbytes, image);
    if (reason != WHARF_REASON_NONE) {
        free(image);
        return no_model(reason);
    }
    *ret_image = image;
    *ret_nbytes = nbytes;
    return 0;
}

/* Takes ownership of the image, even on failure. */
static int adopt_image(struct wharf_cuda *cuda, uint32_t codec, void *image, size_t image_nbytes,
                       struct wharf_cuda_model **ret_model)
{
    struct wharf_cuda_model *model = calloc(1, sizeof(*model));

    if (!model) {
        free(image);
        return no_memory();
    }
    *model = (struct wharf_cuda_model){
        .cuda = cuda, .codec = codec, .image = image, .kernel = kernel_for_image(image)};
    int rc =
        wharf_cuda_note(wharf_cuda_copy_in(cuda->decoder, image, image_nbytes, &model->d_image));
    if (rc < 0) {
        wharf_cuda_model_free(model);
        return rc;
    }
    *ret_model = model;
    return 0;
}

int wharf_cuda_model_of_image(struct wharf_cuda *cuda, uint32_t codec, const void *image,
                              size_t image_nbytes, struct wharf_cuda_model **ret_model)
{
    size_t nbytes = (image_nbytes + IMAGE_ALIGN - 1) / IMAGE_ALIGN * IMAGE_ALIGN;
    void *own = aligned_alloc(IMAGE_ALIGN, nbytes);

    if (!own)
        return no_memory();
    memcpy(own, image, image_nbytes);
    return adopt_image(cuda, codec, own, image_nbytes, ret_model);
}

int wharf_cuda_model_new(struct wharf_cuda *cuda, uint32_t codec, const void *model,
                         size_t model_nbytes, struct wharf_cuda_model **ret_model)
{
    void *image;
    size_t nbytes;

    if (!cuda)
        return no_handle();
    if (!model || model_nbytes == 0 || model_nbytes > PTRDIFF_MAX || !ret_model)
        return wharf_client_fail(-EINVAL, "the model has no data or no size, or ret_model is NULL");
    if (codec != WHARF_CODEC_RANS)
        return wharf_client_fail(-EOPNOTSUPP, "only rans has models");
    int rc = make_image(model, model_nbytes, &image, &nbytes);
    if (rc < 0)
        return rc;
    return adopt_image(cuda, codec, image, nbytes, ret_model);
}

void wharf_cuda_model_free(struct wharf_cuda_model *model)
{
    if (!model)
        return;
    wharf_cuda_copy_free(model->d_image);
    free(model->image);
    free(model);
}

/* ---- batches --------------------------------------------------------------------------------- */

/* A chunk, or bitshuffle's framing of elements of a size. */
static bool is_blosc_parameter(uint32_t parameter)
{
    uint32_t element_nbytes = parameter % WHARF_BLOSC_BITSHUFFLE_LZ4;
    uint32_t framing = parameter - element_nbytes;

    return parameter == 0 || (element_nbytes > 0 && (framing == WHARF_BLOSC_BITSHUFFLE_LZ4 ||
                                                     framing == WHARF_BLOSC_BITSHUFFLE_ZSTD));
}

/* ops->unit_nbytes of encoders/codec.h; its table would link all decoders of the CPU. */
static bool is_parameter(uint32_t codec, uint32_t parameter)
{
    switch (codec) {
    case WHARF_CODEC_RLE1:
    case WHARF_CODEC_RLE2:
        return wharf_rle_unit_nbytes(parameter) > 0;
    case WHARF_CODEC_RANS:
        return parameter == WHARF_RANS_PARAMETER_BYTES || parameter == WHARF_RANS_PARAMETER_U16;
    case WHARF_CODEC_BLOSC:
        return is_blosc_parameter(parameter);
    default:
        return parameter == 0;
    }
}

static int check_model(const struct wharf_cuda *cuda, const struct wharf_cuda_batch *batch)
{
    if (!batch->model)
        return 0;
    if (batch->model->codec != batch->codec)
        return wharf_client_fail(-EINVAL, "the model is another codec's");
    if (batch->model->cuda != cuda)
        return wharf_client_fail(-EINVAL, "the model is another handle's");
    return 0;
}

/* Checks all of a batch except its pointers. */
static int check_kind(const struct wharf_cuda *cuda, const struct wharf_cuda_batch *batch)
{
    if (!wharf_cuda_can_decode(batch->codec))
        return wharf_client_fail(-EOPNOTSUPP, "the GPU does not decode codec number %u",
                                 batch->codec);
    if (!batch->model && !is_parameter(batch->codec, batch->parameter))
        return wharf_client_fail(-EINVAL, "%u is no parameter of this codec", batch->parameter);
    if (batch->flags & ~WHARF_JOB_KNOWN_FLAGS)
        return wharf_client_fail(-EINVAL, "unknown flags");
    if (batch->n_chunks > WHARF_CUDA_MAX_CHUNKS)
        return wharf_client_fail(-EINVAL, "more than %zu chunks", WHARF_CUDA_MAX_CHUNKS);
    return check_model(cuda, batch);
}

int wharf_cuda_check_outputs(const struct wharf_cuda_batch *own)
{
    if (own->n_chunks > 0 && (!own->out || !own->out_avail || !own->outcomes))
        return wharf_client_fail(-EINVAL, "an array is NULL");
    if (own->n_chunks > 0 && (own->flags & WHARF_JOB_CHECKSUM) && !own->checksums)
        return wharf_client_fail(-EINVAL, "checksums is NULL, but a flag asks for them");
    return 0;
}

int wharf_cuda_check_scratch(const void *scratch, size_t nbytes, size_t needed)
{
    if (!scratch || (uintptr_t)scratch % WHARF_CUDA_SCRATCH_ALIGN != 0)
        return wharf_client_fail(-EINVAL, "scratch is NULL, or not aligned to %zu",
                                 WHARF_CUDA_SCRATCH_ALIGN);
    if (nbytes < needed)
        return wharf_client_fail(-ENOSPC, "%zu bytes of scratch are too few: it takes %zu", nbytes,
                                 needed);
    return 0;
}

/* The batch's kernel, by its number in cuda_batch.h. */
static uint32_t kernel_of(const struct wharf_cuda *cuda, const struct wharf_cuda_batch *batch)
{
    return batch->model ? batch->model->kernel
                        : wharf_cuda_choose_kernel(cuda->decoder, batch->codec, batch->n_chunks);
}

/* The largest of the kernels that may be chosen.  So the size never decreases with the number of
 * chunks. */
size_t wharf_cuda_scratch_of(const struct wharf_cuda *cuda, const struct wharf_cuda_batch *own)
{
    uint32_t n_chunks = (uint32_t)own->n_chunks, codec = own->codec;
    bool has_model = own->model != NULL;
    const uint32_t kernels[] = {codec, WHARF_DEVICE_BLOCK | codec, WHARF_DEVICE_CREW | codec};
    size_t most = 0;

    for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
        size_t nbytes = wharf_cuda_scratch_nbytes(cuda->decoder, kernels[i], n_chunks, has_model);
        most = nbytes > most ? nbytes : most;
    }
    return most;
}

int wharf_cuda_take_batch(const struct wharf_cuda *cuda, const struct wharf_cuda_batch *batch,
                          struct wharf_cuda_batch *ret_own)
{
    if (!cuda)
        return no_handle();
    if (!batch)
        return wharf_client_fail(-EINVAL, "the batch is NULL");
    int rc =
        wharf_client_copy_struct(ret_own, sizeof(*ret_own), BATCH_NBYTES_0_1, batch, "the batch");
    return rc < 0 ? rc : check_kind(cuda, ret_own);
}

int wharf_cuda_decode_scratch(struct wharf_cuda *cuda, const struct wharf_cuda_batch *batch,
                              size_t *ret_nbytes)
{
    struct wharf_cuda_batch own;
    int rc = wharf_cuda_take_batch(cuda, batch, &own);

    if (rc < 0)
        return rc;
    if (!ret_nbytes)
        return wharf_client_fail(-EINVAL, "ret_nbytes is NULL");
    *ret_nbytes = wharf_cuda_scratch_of(cuda, &own);
    return 0;
}

int wharf_cuda_start_batch(const struct wharf_cuda *cuda, const struct wharf_cuda_batch *own,
                           struct CUstream_st *stream)
{
    const struct wharf_device_arrays arrays = {
        .in = (const uint8_t *const *)own->in,
        .in_nbytes = own->in_nbytes,
        .out = (uint8_t *const *)own->out,
        .out_avail = own->out_avail,
        .checksums = own->flags & WHARF_JOB_CHECKSUM ? own->checksums : NULL,
        .outcomes = own->outcomes,
        .model = own->model ? own->model->d_image : NULL,
        .n_chunks = (uint32_t)own->n_chunks,
        .codec = own->codec,
        .flags = own->flags,
        .parameter = own->parameter,
    };
    return wharf_cuda_note(wharf_cuda_decode_arrays(cuda->decoder, kernel_of(cuda, own), &arrays,
                                                    own->scratch, stream));
}

int wharf_cuda_decode(struct wharf_cuda *cuda, const struct wharf_cuda_batch *batch,
                      struct CUstream_st *stream)
{
    struct wharf_cuda_batch own;
    int rc = wharf_cuda_take_batch(cuda, batch, &own);

    if (rc == 0 && own.n_chunks > 0 && (!own.in || !own.in_nbytes))
        rc = wharf_client_fail(-EINVAL, "an array is NULL");
    if (rc == 0)
        rc = wharf_cuda_check_outputs(&own);
    if (rc < 0 || own.n_chunks == 0)
        return rc;
    rc = wharf_cuda_check_scratch(own.scratch, own.scratch_nbytes,
                                  wharf_cuda_scratch_of(cuda, &own));
    if (rc == 0)
        rc = wharf_cuda_note(wharf_cuda_check_current(cuda->decoder));
    return rc < 0 ? rc : wharf_cuda_start_batch(cuda, &own, stream);
}

int wharf_cuda_sizes(struct wharf_cuda *cuda, const struct wharf_cuda_batch *batch, size_t *sizes,
                     struct CUstream_st *stream)
{
    struct wharf_cuda_batch own;
    int rc = wharf_cuda_take_batch(cuda, batch, &own);

    if (rc < 0)
        return rc;
    if (!wharf_cuda_can_size(own.codec))
        return wharf_client_fail(-EOPNOTSUPP, "streams of codec number %u do not say their size",
                                 own.codec);
    if (own.n_chunks == 0)
        return 0;
    if (!own.in || !own.in_nbytes || !sizes)
        return wharf_client_fail(-EINVAL, "an array is NULL");
    rc = wharf_cuda_note(wharf_cuda_check_current(cuda->decoder));
    if (rc < 0)
        return rc;
    const struct wharf_device_arrays arrays = {
        .in = (const uint8_t *const *)own.in,
        .in_nbytes = own.in_nbytes,
        .n_chunks = (uint32_t)own.n_chunks,
        .codec = own.codec,
        .parameter = own.parameter,
    };
    return wharf_cuda_note(wharf_cuda_start_sizes(&arrays, sizes, stream));
}

/* ---- encoding -------------------------------------------------------------------------------- */

static int take_encoding(const struct wharf_cuda_encoding *encoding,
                         struct wharf_cuda_encoding *ret_own)
{
    if (!encoding)
        return wharf_client_fail(-EINVAL, "the encoding is NULL");
    int rc = wharf_client_copy_struct(ret_own, sizeof(*ret_own), ENCODING_NBYTES_0_1, encoding,
                                      "the encoding");
    if (rc < 0)
        return rc;
    if (!wharf_cuda_can_encode(ret_own->codec))
        return wharf_client_fail(-EOPNOTSUPP, "the GPU does not encode codec number %u",
                                 ret_own->codec);
    if (ret_own->line_nbytes == 0)
        ret_own->line_nbytes = WHARF_LINE_MAX_NBYTES;
    if (ret_own->line_nbytes != WHARF_LINE_MIN_NBYTES &&
        ret_own->line_nbytes != 2 * WHARF_LINE_MIN_NBYTES &&
        ret_own->line_nbytes != WHARF_LINE_MAX_NBYTES)
        return wharf_client_fail(-EINVAL, "lines have 32, 64 or 128 bytes");
    if (ret_own->layout >= WHARF_LINE_N_LAYOUTS || ret_own->reserved != 0)
        return wharf_client_fail(-EINVAL, "there is no such layout, or reserved is not 0");
    if (ret_own->type >= (ret_own->codec == WHARF_CODEC_PALETTE ? WHARF_LINE_N_TYPES : 1))
        return wharf_client_fail(-EINVAL, "there is no such type");
    return 0;
}

int wharf_cuda_encode_bound(const struct wharf_cuda_encoding *encoding, size_t in_nbytes,
                            size_t *ret_nbytes)
{
    struct wharf_cuda_encoding own;
    int rc = take_encoding(encoding, &own);

    if (rc < 0)
        return rc;
    if (!ret_nbytes || in_nbytes > WHARF_CUDA_MAX_CHUNK_NBYTES)
        return wharf_client_fail(-EINVAL, "ret_nbytes is NULL, or more bytes than a chunk has");
    const struct wharf_line_choice choice = {
        .codec = own.codec,
        .line_nbytes = own.line_nbytes,
        .layout = own.layout,
        .type = own.type,
    };
    *ret_nbytes = wharf_line_bound(&choice, in_nbytes);
    return 0;
}

static int check_encoding(const struct wharf_cuda_encoding *own)
{
    if (own->n_chunks > WHARF_CUDA_MAX_CHUNKS)
        return wharf_client_fail(-EINVAL, "more than %zu chunks", WHARF_CUDA_MAX_CHUNKS);
    if (own->n_chunks > 0 &&
        (!own->in || !own->in_nbytes || !own->out || !own->out_avail || !own->outcomes))
        return wharf_client_fail(-EINVAL, "an array is NULL");
    return 0;
}

/* The logarithm of the line's size. */
static uint32_t shift_of(uint32_t line_nbytes)
{
    return line_nbytes == WHARF_LINE_MIN_NBYTES   ? WHARF_LINE_MIN_SHIFT
           : line_nbytes == WHARF_LINE_MAX_NBYTES ? WHARF_LINE_MAX_SHIFT
                                                  : WHARF_LINE_MIN_SHIFT + 1;
}

int wharf_cuda_encode(struct wharf_cuda *cuda, const struct wharf_cuda_encoding *encoding,
                      struct CUstream_st *stream)
{
    struct wharf_cuda_encoding own;
    int rc = cuda ? take_encoding(encoding, &own) : no_handle();

    if (rc == 0)
        rc = check_encoding(&own);
    if (rc < 0 || own.n_chunks == 0)
        return rc;
    rc = wharf_cuda_note(wharf_cuda_check_current(cuda->decoder));
    if (rc < 0)
        return rc;
    const struct wharf_device_arrays arrays = {
        .in = (const uint8_t *const *)own.in,
        .in_nbytes = own.in_nbytes,
        .out = (uint8_t *const *)own.out,
        .out_avail = own.out_avail,
        .outcomes = own.outcomes,
        .n_chunks = (uint32_t)own.n_chunks,
        .codec = own.codec,
    };
    const struct wharf_device_lines lines = {
        .shift = shift_of(own.line_nbytes), .layout = own.layout, .type = own.type};
    return wharf_cuda_note(wharf_cuda_encode_lines(cuda->decoder, &arrays, &lines, stream));
}
