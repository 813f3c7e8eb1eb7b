/* SPDX-License-Identifier: Apache-2.0 */
#include "encoders/outcome.h"
#include "encoders/rans/rans.h"
#include "encoders/rans/rans_image.h"
#include "encoders/rans/rans_loop.h"
#include "encoders/rans/rans_stream.h"
#include "encoders/rans/rans_walk.h"

uint32_t wharf_rans_unit_nbytes(uint32_t parameter)
{
    switch (parameter) {
    case WHARF_RANS_PARAMETER_BYTES:
        return 1;
    case WHARF_RANS_PARAMETER_U16:
        return 2;
    default:
        return 0;
    }
}

/* Memory for the tables of a model that stands in a stream. */
struct tables {
    uint32_t totals[WHARF_RANS_MAX_DISTRIBUTIONS];
    struct wharf_rans_range ranges[WHARF_RANS_INLINE_NSLOTS];
    uint16_t slot_symbols[WHARF_RANS_INLINE_NSLOTS + 1]; /* as wharf_rans_loop_job wants it */
};

/* What the setting adds to rule 1. */
static bool is_of_setting(const struct wharf_rans_stream *stream,
                          const struct wharf_codec_setting *setting)
{
    if (setting && setting->model)
        return stream->packed_model_nbytes == 0 &&
               wharf_rans_image_has_shape(setting->model, &stream->shape);
    return stream->shape.symbol_nbytes == wharf_rans_unit_nbytes(setting ? setting->parameter : 0);
}

/* Rule 2: the model's tables, into memory that it has, or those of the registered one. */
static bool take_model(const struct wharf_rans_stream *stream,
                       const struct wharf_codec_setting *setting, struct wharf_rans_model *model)
{
    if (setting && setting->model) {
        wharf_rans_image_model(setting->model, model);
        return true;
    }
    model->shape = stream->shape;
    return stream->packed_model_nbytes > 0 &&
           wharf_rans_model_unpack(stream->packed_model, stream->packed_model_nbytes, model);
}

/* Rules 2, 5 and those that the setting adds to 1; the model's tables. */
static bool prepare(const struct wharf_rans_stream *stream, uint64_t out_avail,
                    const struct wharf_codec_setting *setting, struct wharf_rans_model *model,
                    struct wharf_outcome *ret_outcome)
{
    if (!is_of_setting(stream, setting)) {
        wharf_outcome_fail(ret_outcome, WHARF_BAD_DATA, WHARF_REASON_RANS_HEADER, 0);
        return false;
    }
    if (!take_model(stream, setting, model)) {
        wharf_outcome_fail(ret_outcome, WHARF_BAD_DATA, WHARF_REASON_RANS_MODEL,
                           8 * WHARF_RANS_HEADER_NBYTES);
        return false;
    }
    if ((uint64_t)stream->body.n_symbols * stream->shape.symbol_nbytes > out_avail) {
        wharf_outcome_fail(ret_outcome, WHARF_OUTPUT_TOO_SMALL, WHARF_REASON_OUTPUT_FULL,
                           8 * stream->body_at);
        return false;
    }
    return true;
}

/* Decodes with one of the tuned forms, if there is one; whether that went well. */
static bool decode_tuned(const struct wharf_rans_task *task)
{
    wharf_rans_loop_fn *loop = wharf_rans_loop();
    const struct wharf_rans_model *model = task->model;
    const struct wharf_rans_shape *shape = &model->shape;
    uint32_t packed[1u << WHARF_RANS_PACKED_MAX_NBITS];
    bool can_pack = shape->n_distributions == 1 && shape->symbol_nbytes == 1 &&
                    shape->n_bits <= WHARF_RANS_PACKED_MAX_NBITS;

    if (!loop)
        return false;
    if (model->packed_slots || !can_pack)
        return loop(&(struct wharf_rans_loop_job){*task, model->packed_slots});
    wharf_rans_pack_slots(model, packed);
    return loop(&(struct wharf_rans_loop_job){*task, packed});
}

enum wharf_reason wharf_rans_run(const struct wharf_rans_task *task, bool tuned, uint64_t *ret_bit)
{
    if (tuned && decode_tuned(task))
        return WHARF_REASON_NONE;
    return task->asker->result == WHARF_OK ? wharf_rans_walk_all(task, ret_bit) : WHARF_REASON_NONE;
}

static void decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                   const struct wharf_codec_setting *setting, bool tuned,
                   struct wharf_outcome *ret_outcome)
{
    struct wharf_rans_stream stream;
    struct tables tables;
    struct wharf_rans_model model = {
        .totals = tables.totals,
        .slot_symbols = tables.slot_symbols,
        .ranges = tables.ranges,
    };
    struct wharf_rans_asker asker = {.setting = setting, .result = WHARF_OK};
    struct wharf_rans_task task = {
        .asker = &asker, .body = &stream.body, .model = &model, .out = out};
    enum wharf_reason reason;
    uint64_t bit = 0;

    if (!wharf_rans_stream_parse(in, in_nbytes, &stream, ret_outcome))
        return;
    task.indexes = stream.indexes;
    if (!prepare(&stream, out_avail, setting, &model, ret_outcome))
        return;
    reason = wharf_rans_run(&task, tuned, &bit);
    if (asker.result != WHARF_OK)
        wharf_outcome_fail(ret_outcome, asker.result, WHARF_REASON_NONE, 0);
    else if (reason != WHARF_REASON_NONE)
        wharf_outcome_fail(ret_outcome, WHARF_BAD_DATA, reason, 8 * stream.body_at + bit);
    else
        wharf_outcome_ok(ret_outcome, in_nbytes,
                         (uint64_t)stream.body.n_symbols * stream.shape.symbol_nbytes);
}

void wharf_rans_decode(const uint8_t *in, size_t in_nbytes, uint8_t *out, size_t out_avail,
                       const struct wharf_codec_setting *setting, struct wharf_outcome *ret_outcome)
{
    decode(in, in_nbytes, out, out_avail, setting, true, ret_outcome);
}

void wharf_rans_decode_reference(const uint8_t *in, size_t in_nbytes, uint8_t *out,
                                 size_t out_avail, const struct wharf_codec_setting *setting,
                                 struct wharf_outcome *ret_outcome)
{
    decode(in, in_nbytes, out, out_avail, setting, false, ret_outcome);
}
