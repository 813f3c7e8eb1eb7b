/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_decode.c: the codec's decoder: from a stream to bytes, in the order of rans_format.h.
 *
 * A tuned form (rans_loop.h) goes first, alone or, with a crew, in ranges between splits by
 * several threads.  It only says whether all was good.  If it was not, rans_walk.h goes through
 * the stream again from its start and finds the verdict: there is one verifier, whatever decoded
 * first.
 */
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
    uint16_t slot_symbols[WHARF_RANS_INLINE_NSLOTS + WHARF_RANS_MORE_SLOTS];
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

/* Memory for what tuned forms look slots up in, besides. */
union extra {
    uint32_t packed[1u << WHARF_RANS_PACKED_MAX_NBITS];
    struct wharf_rans_buckets buckets;
};

/* Has `job` look up in what its model has, or in what can be made of it. */
static void take_extra(struct wharf_rans_loop_job *job, union extra *extra)
{
    const struct wharf_rans_model *model = job->task.model;
    const struct wharf_rans_shape *shape = &model->shape;

    job->packed = model->packed_slots;
    job->buckets = NULL;
    if (model->packed_slots || shape->n_distributions > 1 || shape->symbol_nbytes > 1)
        return;
    if (shape->n_bits <= WHARF_RANS_PACKED_MAX_NBITS &&
        wharf_rans_pack_slots(model, extra->packed)) {
        job->packed = extra->packed;
    } else {
        wharf_rans_fill_buckets(model, &extra->buckets);
        job->buckets = &extra->buckets;
    }
}

/* ---- by several threads ------------------------------------------------------------------- */

/* Parts that threads are given: fewer, larger ones where there are more splits. */
#define MAX_PARTS 256u

/* Parts of a task: part i begins before the split of cursors[i], the first one at the beginning. */
struct parts {
    const struct wharf_rans_loop_job *job;
    const struct wharf_codec_setting *setting;
    uint32_t n;
    struct wharf_rans_cursor cursors[MAX_PARTS];
};

/* How many times as long as the others a part may be: nobody can interrupt who decodes it, and how
 * long that takes is estimated as if all were equal.  Encoders put splits at equal distances. */
#define MOST_TIMES_AVERAGE 4u

/* Past a split; false if the decode is to end, with asker->result. */
static bool skip_split(const struct wharf_rans_task *task, struct wharf_rans_cursor *cursor)
{
    if (cursor->number % WHARF_RANS_POLL_NSKIPPED == 0)
        task->asker->result = wharf_decode_poll(task->asker->setting);
    wharf_rans_skip_split(task->body, cursor);
    return task->asker->result == WHARF_OK;
}

/* Whether the parts are about equal, and the decode is not to end.  A split is at its window's
 * first group. */
static bool divide(const struct wharf_rans_loop_job *job, const struct wharf_codec_setting *setting,
                   struct parts *parts)
{
    const struct wharf_rans_body *body = job->task.body;
    struct wharf_rans_cursor cursor = wharf_rans_first_split(body);
    uint64_t n_groups = body->n_symbols / WHARF_RANS_N_LANES + 1, from = 0;

    parts->job = job;
    parts->setting = setting;
    parts->n = body->n_splits < MAX_PARTS ? body->n_splits : MAX_PARTS;
    uint64_t most = MOST_TIMES_AVERAGE * (n_groups / parts->n + 1);
    for (uint32_t i = 1; i < parts->n; i++) {
        struct wharf_rans_split split;
        while (cursor.number < (uint64_t)i * body->n_splits / parts->n)
            if (!skip_split(&job->task, &cursor))
                return false;
        parts->cursors[i] = cursor;
        if (!wharf_rans_next_split(body, &cursor, &split) || split.first_group > from + most)
            return false;
        from = split.first_group;
    }
    return n_groups <= from + most;
}

static bool decode_parts(void *context, uint32_t first, uint32_t n, struct wharf_decode_poll *poll)
{
    const struct parts *parts = context;
    struct wharf_codec_setting setting = *parts->setting;
    struct wharf_rans_asker asker = {.setting = &setting, .result = WHARF_OK};
    struct wharf_rans_loop_job job = *parts->job;
    wharf_rans_loop_fn *loop = wharf_rans_loop(job.buckets != NULL);

    setting.poll = poll;
    job.task.asker = &asker;
    job.task.from = first > 0 ? &parts->cursors[first] : NULL;
    job.task.to = first + n < parts->n ? &parts->cursors[first + n] : NULL;
    return loop ? loop(&job) : wharf_rans_walk_part(&job.task);
}

/* Whether others can help with it. */
static bool is_shared(const struct wharf_rans_task *task)
{
    const struct wharf_codec_setting *setting = task->asker->setting;

    return setting && setting->crew && task->body->n_splits > 1 &&
           (uint64_t)task->body->n_symbols * task->model->shape.symbol_nbytes >=
               WHARF_RANS_LEAST_SHARED_NBYTES;
}

/* Whether that went well. */
static bool decode_shared(const struct wharf_rans_loop_job *job)
{
    const struct wharf_codec_setting *setting = job->task.asker->setting;
    wharf_rans_loop_fn *loop = wharf_rans_loop(job->buckets != NULL);
    struct parts parts;

    if (!divide(job, setting, &parts))
        return job->task.asker->result == WHARF_OK && loop && loop(job);
    if (setting->crew->run(setting->crew, parts.n, decode_parts, &parts))
        return true;
    /* It was stopped, or what is wrong has to be found. */
    job->task.asker->result = wharf_decode_poll(setting);
    return false;
}

/* With one of the tuned forms, if there is one, or by several; whether that went well. */
static bool decode_tuned(const struct wharf_rans_task *task)
{
    struct wharf_rans_loop_job job = {.task = *task};
    wharf_rans_loop_fn *loop;
    union extra extra;

    if (wharf_rans_loop(false))
        take_extra(&job, &extra);
    loop = wharf_rans_loop(job.buckets != NULL);
    return is_shared(task) ? decode_shared(&job) : loop && loop(&job);
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

    if (!wharf_rans_stream_parse_asking(in, in_nbytes, setting, &stream, ret_outcome))
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
