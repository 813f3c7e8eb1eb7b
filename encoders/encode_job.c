/* SPDX-License-Identifier: Apache-2.0 */
/* encode_job.c: runs one job that compresses (encode_job.h). */
#include "encoders/encode_job.h"

#include <errno.h>

#include "encoders/outcome.h"

/* The row of the choice's encoder, or NULL. */
static const struct wharf_encoder_row *row_of(const struct wharf_codec_ops *ops,
                                              const struct wharf_encode_choice *choice)
{
    const struct wharf_encoder_row *row = ops->encoder_rows;

    if (choice->encoder == 0)
        return row;
    while (row->name && wharf_encoder_number(ops, row) != choice->encoder)
        row++;
    return row->name ? row : NULL;
}

static struct wharf_encoder_options options_of(const struct wharf_encoder_row *row,
                                               const struct wharf_encode_choice *choice)
{
    return (struct wharf_encoder_options){
        .name = row->name,
        .level = choice->level ? (int)choice->level : WHARF_LEVEL_DEFAULT,
        .parameter = choice->parameter,
    };
}

uint32_t wharf_encode_flaw(const struct wharf_encode_choice *choice)
{
    const struct wharf_codec_row *codec = wharf_codec_find(choice->codec);
    const struct wharf_encoder_row *row;
    int level;

    if (!codec)
        return WHARF_REASON_REQUEST_CODEC;
    if (!wharf_codec_unit_nbytes(codec->ops, choice->parameter))
        return WHARF_REASON_REQUEST_PARAMETER;
    row = row_of(codec->ops, choice);
    if (!row || choice->level > INT32_MAX)
        return WHARF_REASON_REQUEST_ENCODER;
    struct wharf_encoder_options options = options_of(row, choice);
    return wharf_encoder_choose(codec->ops, &options, &row, &level) < 0
               ? WHARF_REASON_REQUEST_ENCODER
               : WHARF_REASON_NONE;
}

bool wharf_encode_lines(const struct wharf_encode_choice *choice,
                        struct wharf_line_choice *ret_lines)
{
    const struct wharf_codec_ops *ops = wharf_codec_find(choice->codec)->ops;
    const struct wharf_encoder_row *row = row_of(ops, choice);

    if (choice->codec < WHARF_CODEC_BDI || choice->codec > WHARF_CODEC_PALETTE || !row)
        return false;
    *ret_lines = wharf_line_choice_of(choice->codec, (uint32_t)(row - ops->encoder_rows));
    return true;
}

int wharf_encode_bound(const struct wharf_encode_choice *choice, size_t in_nbytes,
                       size_t *ret_nbytes)
{
    const struct wharf_codec_row *codec = wharf_codec_find(choice->codec);
    struct wharf_encode_choice own = *choice;
    struct wharf_encoder *encoder;
    struct wharf_outcome outcome;

    if (!codec || !wharf_codec_unit_nbytes(codec->ops, own.parameter) ||
        in_nbytes > PTRDIFF_MAX / 2)
        return -EINVAL;
    /* An encoder that only a daemon has: the default's bound is for it too. */
    if (wharf_encode_flaw(&own))
        own.encoder = own.level = 0;
    uint32_t result = wharf_encode_begin(&own, &encoder, &outcome);
    if (result != WHARF_OK)
        return result == WHARF_NO_MEMORY ? -ENOMEM : -EINVAL;
    *ret_nbytes = codec->ops->encoder->bound(encoder, in_nbytes);
    wharf_encode_free(&own, encoder);
    return 0;
}

uint32_t wharf_encode_begin(const struct wharf_encode_choice *choice,
                            struct wharf_encoder **ret_encoder, struct wharf_outcome *ret_outcome)
{
    uint32_t flaw = wharf_encode_flaw(choice);

    if (flaw) {
        wharf_outcome_fail(ret_outcome, WHARF_BAD_REQUEST, flaw, 0);
        return WHARF_BAD_REQUEST;
    }
    const struct wharf_codec_ops *ops = wharf_codec_find(choice->codec)->ops;
    struct wharf_encoder_options options = options_of(row_of(ops, choice), choice);
    int r = ops->encoder->new (&options, ret_encoder);
    if (r == -ENOMEM)
        wharf_outcome_fail(ret_outcome, WHARF_NO_MEMORY, WHARF_REASON_NONE, 0);
    else if (r < 0) /* a parameter that only decoders have */
        wharf_outcome_fail(ret_outcome, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_PARAMETER, 0);
    return r < 0 ? ret_outcome->result : (uint32_t)WHARF_OK;
}

void wharf_encode_free(const struct wharf_encode_choice *choice, struct wharf_encoder *encoder)
{
    wharf_codec_find(choice->codec)->ops->encoder->free(encoder);
}

void wharf_encode_chunk(const struct wharf_encode_choice *choice, struct wharf_encoder *encoder,
                        const struct wharf_encode_chunk *chunk, struct wharf_outcome *ret_outcome)
{
    const struct wharf_encoder_ops *ops = wharf_codec_find(choice->codec)->ops->encoder;
    uint8_t nowhere[1];
    size_t nbytes = 0;
    int r = ops->encode(encoder, chunk->in, chunk->in_nbytes, chunk->out ? chunk->out : nowhere,
                        chunk->out_avail, &nbytes);

    if (r == 0)
        wharf_outcome_ok(ret_outcome, chunk->in_nbytes, nbytes);
    else if (r == -ENOSPC)
        wharf_outcome_fail(ret_outcome, WHARF_OUTPUT_TOO_SMALL, WHARF_REASON_OUTPUT_FULL, 0);
    else if (r == -EILSEQ)
        wharf_outcome_fail(ret_outcome, WHARF_BAD_DATA, WHARF_REASON_NOT_ENCODABLE, 0);
    else
        wharf_outcome_fail(ret_outcome, r == -ENOMEM ? WHARF_NO_MEMORY : WHARF_INTERNAL,
                           WHARF_REASON_NONE, 0);
}
