/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_recoil.c: streams and models of the paper's own program: read, decoded, and taken over.
 *
 * Models go by way of our packed form, so that tables are made in one place.  Splits whose windows
 * overlap, which that program writes when they are many, are left out of a body that is written
 * anew; the words stay.
 */
#include "encoders/rans/rans_recoil.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/outcome.h"
#include "encoders/rans/rans_loop.h"
#include "encoders/rans/rans_mark.h"
#include "encoders/rans/rans_write.h"

/* ---- models ------------------------------------------------------------------------------ */

/* Words of one distribution: up to the last that is the sum of all, before the next one begins with
 * 0; its last symbols may have no slots.  0 if there is none. */
static size_t distribution_nwords(const uint8_t *cdf, size_t n_words, uint32_t sum)
{
    size_t n = 0;

    while (n < n_words && wharf_load_le16(cdf + 2 * n) != sum)
        n++;
    if (n == n_words)
        return 0;
    while (n < n_words && wharf_load_le16(cdf + 2 * n) == sum)
        n++;
    return n;
}

/* Whether the sums rise, from 0 to `sum`. */
static bool sums_are_good(const uint8_t *cdf, size_t n_words, uint32_t sum)
{
    if (wharf_load_le16(cdf) != 0 || wharf_load_le16(cdf + 2 * (n_words - 1)) != sum)
        return false;
    for (size_t i = 1; i < n_words; i++)
        if (wharf_load_le16(cdf + 2 * i) < wharf_load_le16(cdf + 2 * (i - 1)))
            return false;
    return true;
}

int wharf_rans_cdf_shape(const uint8_t *cdf, size_t cdf_nbytes, struct wharf_rans_shape *shape)
{
    uint32_t sum = (1u << shape->n_bits) - 1;
    size_t n_words = cdf_nbytes / 2;
    size_t each = distribution_nwords(cdf, n_words, sum);
    struct wharf_rans_shape found = *shape;

    if (cdf_nbytes % 2 != 0 || each < 2 || n_words % each != 0 ||
        each - 1 > WHARF_RANS_MAX_ALPHABET || n_words / each > WHARF_RANS_MAX_DISTRIBUTIONS)
        return -EINVAL;
    found.alphabet = (uint32_t)each - 1;
    found.n_distributions = (uint32_t)(n_words / each);
    if (!wharf_rans_shape_is_good(&found, WHARF_RANS_REGISTERED_NSLOTS))
        return -EINVAL;
    for (size_t at = 0; at < n_words; at += each)
        if (!sums_are_good(cdf + 2 * at, each, sum))
            return -EINVAL;
    *shape = found;
    return 0;
}

/* The frequencies of a model file, n_ranges of them. */
static void read_frequencies(const uint8_t *cdf, const struct wharf_rans_shape *shape,
                             uint32_t *ret_frequencies)
{
    for (uint32_t d = 0; d < shape->n_distributions; d++) {
        for (uint32_t s = 0; s < shape->alphabet; s++, cdf += 2)
            *ret_frequencies++ = wharf_load_le16(cdf + 2) - wharf_load_le16(cdf);
        cdf += 2;
    }
}

void wharf_rans_cdf_write(const struct wharf_rans_shape *shape, const uint32_t *frequencies,
                          uint8_t *out)
{
    uint32_t sum = 0;

    for (uint32_t s = 0; s <= shape->alphabet; s++) {
        out[2 * s] = (uint8_t)sum;
        out[2 * s + 1] = (uint8_t)(sum >> 8);
        sum += s < shape->alphabet ? frequencies[s] : 0;
    }
}

int wharf_rans_recoil_normalise(const uint64_t *counts, uint32_t n_bits, uint32_t *ret_frequencies)
{
    /* One more stands for the slot that nobody gets. */
    uint64_t all_counts[257];
    uint32_t frequencies[257];
    uint32_t largest = 0;
    int rc;

    for (uint32_t s = 0; s < 256; s++) {
        /* What did not occur is rarer than anything that did; all stay below 2^53. */
        all_counts[s] = counts[s] ? counts[s] << 20 : 1;
        if (counts[s] > counts[largest])
            largest = s;
    }
    all_counts[256] = 1;
    rc = wharf_rans_normalise(all_counts, 257, n_bits, frequencies);
    if (rc < 0)
        return rc;
    memcpy(ret_frequencies, frequencies, 256 * sizeof(*frequencies));
    ret_frequencies[largest] += frequencies[256] - 1;
    return 0;
}

/* ---- bodies ------------------------------------------------------------------------------ */

/* The splits that keep rule 4, with what they say of those that are kept before them. */
static uint32_t keep_splits(const struct wharf_rans_body *body, struct wharf_rans_mark *marks)
{
    struct wharf_rans_cursor cursor = wharf_rans_first_split(body);
    struct wharf_rans_split split;
    int64_t word_before = (int64_t)body->n_words;
    int64_t group_before = -1;
    uint32_t n = 0;

    if (!wharf_rans_can_have_marks(body))
        return 0;
    while (wharf_rans_next_split(body, &cursor, &split)) {
        if (!wharf_rans_split_follows(body, &split, word_before, group_before))
            continue;
        marks[n++] = wharf_rans_mark_of(&split);
        word_before = split.first_word;
        group_before = split.last_group;
    }
    return n;
}

/* The body with those of its splits that can stay. */
static int rewrite(const struct wharf_rans_body *body, uint8_t **ret_changed, size_t *ret_nbytes)
{
    struct wharf_rans_mark *marks = malloc(body->n_splits * sizeof(*marks));
    size_t words_nbytes = (size_t)body->n_words * WHARF_RANS_WORD_NBYTES;
    struct wharf_rans_plan plan;
    size_t fields_nbytes;

    if (!marks)
        return -ENOMEM;
    plan = wharf_rans_plan_of(body, marks, 1 + keep_splits(body, marks));
    fields_nbytes = wharf_rans_fields_nbytes(&plan);
    *ret_nbytes = fields_nbytes + words_nbytes;
    *ret_changed = malloc(*ret_nbytes);
    if (*ret_changed) {
        wharf_rans_write_fields(&plan, *ret_changed);
        memcpy(*ret_changed + fields_nbytes, body->words, words_nbytes);
    }
    free(marks);
    return *ret_changed ? 0 : -ENOMEM;
}

int wharf_rans_recoil_parse(const uint8_t *in, size_t in_nbytes, struct wharf_rans_body *ret_body,
                            uint8_t **ret_changed, enum wharf_reason *ret_reason)
{
    struct wharf_rans_body body;
    uint32_t result;
    size_t nbytes;
    int rc;

    *ret_changed = NULL;
    if (wharf_rans_body_parse(in, in_nbytes, ret_body, ret_reason))
        return 0;
    if (*ret_reason != WHARF_REASON_RANS_SPLIT)
        return -EILSEQ;
    wharf_rans_body_take_apart(in, in_nbytes, NULL, &body, ret_reason, &result);
    rc = rewrite(&body, ret_changed, &nbytes);
    if (rc < 0)
        return rc;
    return wharf_rans_body_parse(*ret_changed, nbytes, ret_body, ret_reason) ? 0 : -EILSEQ;
}

/* Rule 3, of indexes. */
static bool indexes_are_good(const struct wharf_rans_recoil *recoil,
                             const struct wharf_rans_body *body)
{
    if (recoil->shape.n_distributions == 1)
        return !recoil->indexes;
    if (!recoil->indexes || recoil->n_indexes != body->n_symbols)
        return false;
    for (size_t i = 0; i < recoil->n_indexes; i++)
        if (recoil->indexes[i] >= recoil->shape.n_distributions)
            return false;
    return true;
}

static size_t body_nbytes(const struct wharf_rans_body *body)
{
    return (size_t)(body->words - body->in) + (size_t)body->n_words * WHARF_RANS_WORD_NBYTES;
}

static int parse(const struct wharf_rans_recoil *recoil, struct wharf_rans_body *body,
                 uint8_t **ret_changed, enum wharf_reason *ret_reason)
{
    int rc = wharf_rans_recoil_parse(recoil->stream, recoil->stream_nbytes, body, ret_changed,
                                     ret_reason);

    if (rc < 0 || indexes_are_good(recoil, body))
        return rc;
    free(*ret_changed);
    *ret_changed = NULL;
    *ret_reason = WHARF_REASON_RANS_HEADER;
    return -EILSEQ;
}

int wharf_rans_recoil_size(const struct wharf_rans_recoil *recoil, uint64_t *ret_nbytes,
                           enum wharf_reason *ret_reason)
{
    struct wharf_rans_body body;
    uint8_t *changed;
    int rc = parse(recoil, &body, &changed, ret_reason);

    if (rc < 0)
        return rc;
    *ret_nbytes = (uint64_t)body.n_symbols * recoil->shape.symbol_nbytes;
    free(changed);
    return 0;
}

/* ---- decoding ---------------------------------------------------------------------------- */

/* A model's tables, from the heap. */
struct tables {
    struct wharf_rans_model model;
    uint32_t *frequencies;
    uint8_t *packed;
    size_t packed_nbytes;
};

static void tables_deinit(struct tables *tables)
{
    free(tables->model.totals);
    free(tables->model.slot_symbols);
    free(tables->model.ranges);
    free(tables->frequencies);
    free(tables->packed);
}

static int make_packed(const struct wharf_rans_recoil *recoil, struct tables *tables)
{
    tables->frequencies =
        malloc(wharf_rans_n_ranges(&recoil->shape) * sizeof(*tables->frequencies));
    if (!tables->frequencies)
        return -ENOMEM;
    read_frequencies(recoil->cdf, &recoil->shape, tables->frequencies);
    tables->packed_nbytes = wharf_rans_model_pack(&recoil->shape, tables->frequencies, NULL, 0);
    tables->packed = malloc(tables->packed_nbytes);
    if (!tables->packed)
        return -ENOMEM;
    wharf_rans_model_pack(&recoil->shape, tables->frequencies, tables->packed,
                          tables->packed_nbytes);
    return 0;
}

/* By way of the packed form, so that there is one place where tables are made. */
static int tables_init(struct tables *tables, const struct wharf_rans_recoil *recoil)
{
    const struct wharf_rans_shape *shape = &recoil->shape;
    struct wharf_rans_model *model = &tables->model;
    int rc = make_packed(recoil, tables);

    if (rc < 0)
        return rc;
    model->shape = *shape;
    model->totals = malloc(shape->n_distributions * sizeof(*model->totals));
    model->slot_symbols =
        malloc((wharf_rans_n_slots(shape) + WHARF_RANS_MORE_SLOTS) * sizeof(*model->slot_symbols));
    model->ranges = malloc(wharf_rans_n_ranges(shape) * sizeof(*model->ranges));
    if (!model->totals || !model->slot_symbols || !model->ranges)
        return -ENOMEM;
    return wharf_rans_model_unpack(tables->packed, tables->packed_nbytes, model) ? 0 : -EINVAL;
}

static void decode_body(const struct wharf_rans_recoil *recoil, const struct wharf_rans_body *body,
                        const struct wharf_rans_model *model, bool plain, uint8_t *out,
                        struct wharf_outcome *ret_outcome)
{
    struct wharf_rans_asker asker = {.result = WHARF_OK};
    const struct wharf_rans_task task = {
        .asker = &asker, .body = body, .model = model, .indexes = recoil->indexes, .out = out};
    uint64_t bit = 0;
    enum wharf_reason reason = wharf_rans_run(&task, !plain, &bit);

    if (reason != WHARF_REASON_NONE)
        wharf_outcome_fail(ret_outcome, WHARF_BAD_DATA, reason, bit);
    else
        wharf_outcome_ok(ret_outcome, recoil->stream_nbytes,
                         (uint64_t)body->n_symbols * recoil->shape.symbol_nbytes);
}

int wharf_rans_recoil_decode(const struct wharf_rans_recoil *recoil, bool plain, uint8_t *out,
                             struct wharf_outcome *ret_outcome)
{
    struct tables tables = {0};
    struct wharf_rans_body body;
    enum wharf_reason reason;
    uint8_t *changed;
    int rc = parse(recoil, &body, &changed, &reason);

    if (rc == -EILSEQ)
        wharf_outcome_fail(ret_outcome, WHARF_BAD_DATA, reason, 0);
    if (rc < 0)
        return rc == -EILSEQ ? 0 : rc;
    rc = tables_init(&tables, recoil);
    if (rc == 0)
        decode_body(recoil, &body, &tables.model, plain, out, ret_outcome);
    /* The words of a changed body begin earlier. */
    if (rc == 0 && changed && ret_outcome->bit_offset > 0)
        ret_outcome->bit_offset += 8 * (recoil->stream_nbytes - body_nbytes(&body));
    tables_deinit(&tables);
    free(changed);
    return rc;
}

/* ---- importing --------------------------------------------------------------------------- */

static size_t write_stream(const struct wharf_rans_recoil *recoil, const struct tables *tables,
                           const struct wharf_rans_body *body, uint8_t *out)
{
    size_t model_nbytes = recoil->leaves_model_out ? 0 : tables->packed_nbytes;
    size_t nbytes = WHARF_RANS_HEADER_NBYTES + model_nbytes + recoil->n_indexes + body_nbytes(body);

    if (!out)
        return nbytes;
    wharf_rans_write_header(&recoil->shape, (uint32_t)model_nbytes, (uint32_t)recoil->n_indexes,
                            out);
    out += WHARF_RANS_HEADER_NBYTES;
    memcpy(out, tables->packed, model_nbytes);
    out += model_nbytes;
    if (recoil->n_indexes > 0)
        memcpy(out, recoil->indexes, recoil->n_indexes);
    memcpy(out + recoil->n_indexes, body->in, body_nbytes(body));
    return nbytes;
}

int wharf_rans_recoil_import(const struct wharf_rans_recoil *recoil, uint8_t *out,
                             size_t *ret_out_nbytes, enum wharf_reason *ret_reason)
{
    struct tables tables = {0};
    struct wharf_rans_body body;
    uint8_t *changed;
    int rc;

    if (!recoil->leaves_model_out &&
        !wharf_rans_shape_is_good(&recoil->shape, WHARF_RANS_INLINE_NSLOTS))
        return -E2BIG;
    rc = parse(recoil, &body, &changed, ret_reason);
    if (rc < 0)
        return rc;
    rc = make_packed(recoil, &tables);
    if (rc == 0)
        *ret_out_nbytes = write_stream(recoil, &tables, &body, out);
    tables_deinit(&tables);
    free(changed);
    return rc;
}

int wharf_rans_recoil_model(const struct wharf_rans_recoil *recoil, uint8_t *out,
                            size_t *ret_out_nbytes)
{
    struct tables tables = {0};
    int rc = make_packed(recoil, &tables);

    if (rc == 0) {
        *ret_out_nbytes = WHARF_RANS_HEADER_NBYTES + tables.packed_nbytes;
        if (out) {
            wharf_rans_write_header(&recoil->shape, (uint32_t)tables.packed_nbytes, 0, out);
            memcpy(out + WHARF_RANS_HEADER_NBYTES, tables.packed, tables.packed_nbytes);
        }
    }
    tables_deinit(&tables);
    return rc;
}
