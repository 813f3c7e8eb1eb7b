/* SPDX-License-Identifier: Apache-2.0 */
/* brotli_stream.c: a stream decoder of Brotli (RFC 7932), by libbrotlidec. */
#include "clientlib/cli/brotli_stream.h"

#include <brotli/decode.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/outcome.h"

enum { IN_NBYTES = 64 << 10 };

struct brotli {
    struct wharf_stream base;
    BrotliDecoderState *state;
    uint8_t in[IN_NBYTES];
    size_t at; /* in `in`: what is taken */
    size_t in_nbytes;
    uint64_t offset; /* of in[0] in the source */
    uint64_t n_out;
    bool has_last;  /* there is no more input than what is in `in` */
    bool is_over;   /* the stream's end was met */
    bool has_ended; /* and what follows it was looked at, or it failed */
    struct wharf_outcome outcome;
};

static struct brotli *brotli_of(const struct wharf_stream *stream)
{
    return (struct brotli *)stream;
}

static enum wharf_stream_event fail(struct brotli *brotli, uint32_t result, uint32_t reason)
{
    uint64_t in_nbytes = brotli->offset + brotli->at;

    brotli->has_ended = true;
    brotli->outcome =
        (struct wharf_outcome){result, reason, 8 * in_nbytes, in_nbytes, brotli->n_out};
    return WHARF_STREAM_END;
}

static bool is_out_of_memory(BrotliDecoderErrorCode error)
{
    return error <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES &&
           error >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES;
}

static enum wharf_stream_event fail_by_library(struct brotli *brotli)
{
    if (is_out_of_memory(BrotliDecoderGetErrorCode(brotli->state)))
        return fail(brotli, WHARF_NO_MEMORY, WHARF_REASON_NONE);
    return fail(brotli, WHARF_BAD_DATA, WHARF_REASON_BROTLI_STREAM);
}

/* Behind the stream's end. */
static enum wharf_stream_event look_behind(struct brotli *brotli)
{
    if (brotli->at < brotli->in_nbytes)
        return fail(brotli, WHARF_BAD_DATA, WHARF_REASON_INPUT_LEFT);
    if (!brotli->has_last)
        return WHARF_STREAM_INPUT;
    brotli->has_ended = true;
    wharf_outcome_ok(&brotli->outcome, brotli->offset + brotli->at, brotli->n_out);
    return WHARF_STREAM_END;
}

/* Output that the library holds: where it lies there, until the next call. */
static bool take_output(struct brotli *brotli, const uint8_t **ret_span, size_t *ret_nbytes)
{
    size_t nbytes = 0;
    const uint8_t *span;

    if (!BrotliDecoderHasMoreOutput(brotli->state))
        return false;
    span = BrotliDecoderTakeOutput(brotli->state, &nbytes);
    if (nbytes == 0)
        return false;
    *ret_span = span;
    *ret_nbytes = nbytes;
    brotli->n_out += nbytes;
    return true;
}

static enum wharf_stream_event next(struct wharf_stream *stream, const uint8_t **ret_span,
                                    size_t *ret_nbytes)
{
    struct brotli *brotli = brotli_of(stream);

    while (!brotli->has_ended) {
        const uint8_t *from = brotli->in + brotli->at;
        size_t avail_in = brotli->in_nbytes - brotli->at;
        size_t avail_out = 0;
        BrotliDecoderResult result;

        if (take_output(brotli, ret_span, ret_nbytes))
            return WHARF_STREAM_OUTPUT;
        if (brotli->is_over)
            return look_behind(brotli);
        result =
            BrotliDecoderDecompressStream(brotli->state, &avail_in, &from, &avail_out, NULL, NULL);
        brotli->at = brotli->in_nbytes - avail_in;
        if (result == BROTLI_DECODER_RESULT_ERROR)
            return fail_by_library(brotli);
        brotli->is_over = result == BROTLI_DECODER_RESULT_SUCCESS;
        if (result != BROTLI_DECODER_RESULT_NEEDS_MORE_INPUT ||
            BrotliDecoderHasMoreOutput(brotli->state))
            continue;
        return brotli->has_last ? fail(brotli, WHARF_BAD_DATA, WHARF_REASON_INPUT_TRUNCATED)
                                : WHARF_STREAM_INPUT;
    }
    return WHARF_STREAM_END;
}

static uint8_t *space(struct wharf_stream *stream, size_t *ret_nbytes)
{
    struct brotli *brotli = brotli_of(stream);

    memmove(brotli->in, brotli->in + brotli->at, brotli->in_nbytes - brotli->at);
    brotli->offset += brotli->at;
    brotli->in_nbytes -= brotli->at;
    brotli->at = 0;
    *ret_nbytes = IN_NBYTES - brotli->in_nbytes;
    return brotli->in + brotli->in_nbytes;
}

static void fill(struct wharf_stream *stream, size_t nbytes, bool last)
{
    struct brotli *brotli = brotli_of(stream);

    brotli->in_nbytes += nbytes;
    brotli->has_last = last;
}

static void outcome(const struct wharf_stream *stream, struct wharf_outcome *ret_outcome)
{
    *ret_outcome = brotli_of(stream)->outcome;
}

static uint64_t verified(const struct wharf_stream *stream)
{
    const struct brotli *brotli = brotli_of(stream);

    return brotli->has_ended && brotli->outcome.result == WHARF_OK ? brotli->n_out : 0;
}

static uint64_t member_start(const struct wharf_stream *stream)
{
    (void)stream;
    return 0;
}

/* A good stream has nothing behind it. */
static const uint8_t *rest(const struct wharf_stream *stream, size_t *ret_nbytes)
{
    *ret_nbytes = 0;
    return brotli_of(stream)->in;
}

static void free_stream(struct wharf_stream *stream)
{
    struct brotli *brotli = brotli_of(stream);

    if (brotli->state)
        BrotliDecoderDestroyInstance(brotli->state);
    free(brotli);
}

struct wharf_stream *wharf_cli_brotli_stream_new(void)
{
    static const struct wharf_stream_ops ops = {
        free_stream, next, space, fill, outcome, verified, member_start, rest,
    };
    struct brotli *brotli = calloc(1, sizeof(*brotli));

    if (!brotli)
        return NULL;
    brotli->base.ops = &ops;
    brotli->state = BrotliDecoderCreateInstance(NULL, NULL, NULL);
    if (brotli->state)
        return &brotli->base;
    free_stream(&brotli->base);
    return NULL;
}
