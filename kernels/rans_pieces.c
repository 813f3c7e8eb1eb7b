/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rans_pieces.h"

#include <errno.h>

#include "encoders/outcome.h"
#include "encoders/rans/rans.h"
#include "encoders/rans/rans_bits.h"
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
        .indexes_at = (uint32_t)stream->body_at,
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

/* The piece that begins with the split that comes next. */
static struct wharf_rans_piece piece_at(const struct wharf_rans_body *body,
                                        struct wharf_rans_cursor cursor)
{
    uint32_t start_nbits = (uint32_t)wharf_rans_bits(body->in, cursor.starts_at, 4) + 1;
    uint32_t first = (uint32_t)wharf_rans_bits(body->in, cursor.starts_at + 4, start_nbits);
    struct wharf_rans_piece piece = {.number = cursor.number,
                                     .starts_at = (uint32_t)cursor.starts_at,
                                     .start_nbits = start_nbits};
    struct wharf_rans_split split;

    wharf_rans_next_split(body, &cursor, &split);
    piece.base_group = split.start[0] - first;
    piece.first_group = split.first_group;
    piece.last_group = split.last_group;
    piece.first_word = (int32_t)split.first_word;
    return piece;
}

/* Of M splits, and the stream's beginning, max_pieces evenly. */
static uint32_t choose_pieces(const struct wharf_rans_body *body, uint32_t max_pieces,
                              struct wharf_rans_piece *pieces)
{
    struct wharf_rans_cursor cursor = wharf_rans_first_split(body);
    uint64_t kept = max_pieces < body->n_splits ? max_pieces : body->n_splits;
    uint32_t n = 1;

    pieces[0] = (struct wharf_rans_piece){.starts_at = (uint32_t)body->starts_at};
    for (uint64_t s = 1; s < body->n_splits; s++) {
        if (s * kept / body->n_splits > (s - 1) * kept / body->n_splits)
            pieces[n++] = piece_at(body, cursor);
        wharf_rans_skip_split(body, &cursor);
    }
    return n;
}

int wharf_rans_stream_job_init(const uint8_t *h_in, size_t in_nbytes, uint64_t out_avail,
                               uint32_t max_pieces, struct wharf_rans_piece *pieces,
                               struct wharf_rans_stream_job *ret_job,
                               struct wharf_outcome *ret_outcome)
{
    struct wharf_rans_stream stream;

    if (in_nbytes > MAX_NBYTES)
        return -ENOTSUP;
    if (!wharf_rans_stream_parse(h_in, in_nbytes, &stream, ret_outcome))
        return -EILSEQ;
    if (stream.shape.symbol_nbytes != 1 || stream.shape.n_distributions != 1 ||
        stream.body.n_symbols > MAX_NBYTES)
        return -ENOTSUP;
    if (stream.body.n_symbols > out_avail) {
        /* Unless the model is bad, which comes first: in any case nothing is written. */
        wharf_rans_decode_reference(h_in, in_nbytes, NULL, out_avail, NULL, ret_outcome);
        return -EILSEQ;
    }
    *ret_job = (struct wharf_rans_stream_job){.in_nbytes = (uint32_t)in_nbytes};
    fill_layout(&stream, &ret_job->layout);
    ret_job->n_pieces = choose_pieces(&stream.body, max_pieces, pieces);
    return 0;
}

void wharf_rans_stream_job_settle(const struct wharf_rans_stream_job *job,
                                  const struct wharf_rans_piece_outcome *outcomes,
                                  struct wharf_outcome *ret_outcome)
{
    for (uint32_t i = 0; i < job->n_pieces; i++)
        if (outcomes[i].reason != WHARF_REASON_NONE) {
            uint32_t result =
                outcomes[i].reason == WHARF_REASON_STEP_BUDGET ? WHARF_INTERNAL : WHARF_BAD_DATA;

            wharf_outcome_fail(ret_outcome, result, outcomes[i].reason, outcomes[i].bit_offset);
            return;
        }
    wharf_outcome_ok(ret_outcome, job->in_nbytes, job->layout.n_symbols);
}
