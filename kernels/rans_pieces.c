/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_pieces.c: the host's part in one large stream: its splits, the pieces, and the outcome.
 *
 * The first bad piece, in the order of the stream, is its verdict: see rans_pieces.h.
 */
#include "kernels/rans_pieces.h"

#include <errno.h>

#include "encoders/outcome.h"
#include "encoders/rans/rans.h"
#include "encoders/rans/rans_bits.h"
#include "encoders/rans/rans_image.h"
#include "encoders/rans/rans_stream.h"

/* Positions in bits fit 32 bits, as kernels/decoder.cuh says. */
#define MAX_NBYTES (1u << 28)

static void fill_layout(const struct wharf_rans_stream *stream, struct wharf_rans_layout *layout)
{
    const struct wharf_rans_body *body = &stream->body;

    *layout = (struct wharf_rans_layout){
        .n_bits = stream->shape.n_bits,
        .symbol_nbytes = stream->shape.symbol_nbytes,
        .n_distributions = stream->shape.n_distributions,
        .alphabet = stream->shape.alphabet,
        .model_nbytes = stream->packed_model_nbytes,
        .indexes_at = (uint32_t)stream->body_at - stream->indexes_nbytes,
        .body_at = (uint32_t)stream->body_at,
        .n_splits = body->n_splits,
        .n_symbols = body->n_symbols,
        .n_groups = body->n_groups,
        .cut_nbits = body->cut_nbits,
        .group_nbits = body->group_nbits,
        .cuts_at = (uint32_t)body->cuts_at,
        .groups_at = (uint32_t)body->groups_at,
        .starts_at = (uint32_t)body->starts_at,
        .split_states_at = (uint32_t)(stream->body_at + (size_t)(body->split_states - body->in)),
        .words_at = (uint32_t)(stream->body_at + (size_t)(body->words - body->in)),
        .n_words = (int32_t)body->n_words,
    };
}

static struct wharf_rans_place beginning(const struct wharf_rans_body *body)
{
    return (struct wharf_rans_place){
        .start_nbits = 1,
        .last_group = 0xffffffffu,
        .first_word = (int32_t)body->n_words - 1,
    };
}

/* The split that comes next, of which the cursor goes past. */
static struct wharf_rans_place next_place(const struct wharf_rans_body *body,
                                          struct wharf_rans_cursor *cursor)
{
    struct wharf_rans_place place = {.starts_at = (uint32_t)cursor->starts_at};
    struct wharf_rans_split split;

    place.start_nbits = (uint32_t)wharf_rans_bits(body->in, cursor->starts_at, 4) + 1;
    wharf_rans_next_split(body, cursor, &split);
    place.base_group = split.start[0] -
                       (uint32_t)wharf_rans_bits(body->in, place.starts_at + 4, place.start_nbits);
    place.first_word = (int32_t)split.first_word;
    place.first_group = split.first_group;
    place.last_group = split.last_group;
    return place;
}

static void fill_places(const struct wharf_rans_body *body, struct wharf_rans_place *places)
{
    struct wharf_rans_cursor cursor = wharf_rans_first_split(body);

    places[0] = beginning(body);
    for (uint32_t s = 1; s < body->n_splits; s++)
        places[s] = next_place(body, &cursor);
}

/* Whether the stream is what it should be, and its output fits. */
static bool is_as_asked(const struct wharf_rans_stream_request *request,
                        const struct wharf_rans_stream *stream)
{
    uint32_t symbol_nbytes = stream->shape.symbol_nbytes;
    bool has_kind = request->h_model
                        ? stream->packed_model_nbytes == 0 &&
                              wharf_rans_image_has_shape(request->h_model, &stream->shape)
                        : symbol_nbytes == wharf_rans_unit_nbytes(request->parameter);

    return has_kind && stream->body.n_symbols <= request->out_avail / symbol_nbytes;
}

/* Whether a block can have its tables, and positions fit. */
static bool is_supported(const struct wharf_rans_stream *stream, bool is_registered)
{
    bool is_of_bytes = stream->shape.symbol_nbytes == 1 && stream->shape.n_distributions == 1;

    return (is_registered || is_of_bytes) &&
           stream->body.n_symbols <= MAX_NBYTES / stream->shape.symbol_nbytes;
}

int wharf_rans_stream_job_init(const struct wharf_rans_stream_request *request, uint32_t max_pieces,
                               struct wharf_rans_place *places, uint32_t max_places,
                               struct wharf_rans_stream_job *ret_job,
                               struct wharf_outcome *ret_outcome)
{
    struct wharf_rans_stream stream;

    if (request->in_nbytes > MAX_NBYTES)
        return -ENOTSUP;
    if (!wharf_rans_stream_parse(request->h_in, request->in_nbytes, &stream, ret_outcome))
        return -EILSEQ;
    if (!is_as_asked(request, &stream)) {
        /* Or the model is bad, which comes before output that does not fit: in any case nothing is
         * written. */
        const struct wharf_codec_setting setting = {.parameter = request->parameter,
                                                    .model = request->h_model};
        wharf_rans_decode_reference(request->h_in, request->in_nbytes, NULL, request->out_avail,
                                    &setting, ret_outcome);
        return -EILSEQ;
    }
    if (!is_supported(&stream, request->h_model != NULL))
        return -ENOTSUP;
    *ret_job = (struct wharf_rans_stream_job){.in_nbytes = (uint32_t)request->in_nbytes};
    fill_layout(&stream, &ret_job->layout);
    ret_job->n_pieces = max_pieces < stream.body.n_splits ? max_pieces : stream.body.n_splits;
    if (stream.body.n_splits > max_places)
        return -ENOBUFS;
    fill_places(&stream.body, places);
    return 0;
}

bool wharf_rans_stream_job_settle(const struct wharf_rans_stream_job *job,
                                  const struct wharf_rans_piece_outcome *outcomes,
                                  struct wharf_outcome *ret_outcome)
{
    for (uint32_t i = 0; i < job->n_pieces; i++) {
        if (outcomes[i].reason == WHARF_RANS_REFUSED)
            return false;
        if (outcomes[i].reason != WHARF_REASON_NONE) {
            uint32_t result =
                outcomes[i].reason == WHARF_REASON_STEP_BUDGET ? WHARF_INTERNAL : WHARF_BAD_DATA;

            wharf_outcome_fail(ret_outcome, result, outcomes[i].reason, outcomes[i].bit_offset);
            return true;
        }
    }
    wharf_outcome_ok(ret_outcome, job->in_nbytes,
                     (uint64_t)job->layout.n_symbols * job->layout.symbol_nbytes);
    return true;
}
