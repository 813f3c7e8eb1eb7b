/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_encode.c: one stream from symbols and frequencies: checks, header, model, indexes, body.
 *
 * A symbol without slots cannot be coded, so wharf_rans_encode looks at all symbols first.
 */
#include "encoders/rans/rans_encode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/little_endian.h"
#include "encoders/rans/rans_write.h"

static uint32_t symbol_at(const struct wharf_rans_job *job, uint64_t number)
{
    return job->shape.symbol_nbytes == 1 ? job->symbols[number]
                                         : wharf_load_le16(job->symbols + 2 * number);
}

/* The same as symbols_have_frequencies for bytes of one distribution, most of what there is. */
static bool bytes_have_frequencies(const struct wharf_rans_job *job)
{
    bool have[256] = {false};
    bool all_have = true;

    for (uint32_t s = 0; s < job->shape.alphabet; s++)
        have[s] = job->frequencies[s] > 0;
    for (uint64_t i = 0; i < job->n_symbols; i++)
        all_have &= have[job->symbols[i]];
    return all_have;
}

/* Whether each symbol can be coded. */
static bool symbols_have_frequencies(const struct wharf_rans_job *job)
{
    for (uint64_t i = 0; i < job->n_symbols; i++) {
        uint32_t distribution = job->indexes ? job->indexes[i] : 0;
        uint32_t symbol = symbol_at(job, i);

        if (distribution >= job->shape.n_distributions || symbol >= job->shape.alphabet)
            return false;
        if (job->frequencies[(size_t)distribution * job->shape.alphabet + symbol] == 0)
            return false;
    }
    return true;
}

/* Whether no distribution gives away more slots than there are. */
static bool frequencies_fit(const struct wharf_rans_job *job)
{
    const uint32_t *f = job->frequencies;

    for (uint32_t d = 0; d < job->shape.n_distributions; d++) {
        uint64_t sum = 0;

        for (uint32_t s = 0; s < job->shape.alphabet; s++)
            sum += *f++;
        if (sum > 1u << job->shape.n_bits)
            return false;
    }
    return true;
}

static bool job_is_good(const struct wharf_rans_job *job)
{
    return wharf_rans_shape_is_good(&job->shape, job->leaves_model_out
                                                     ? WHARF_RANS_REGISTERED_NSLOTS
                                                     : WHARF_RANS_INLINE_NSLOTS) &&
           job->n_symbols <= WHARF_RANS_MAX_SYMBOLS && job->max_splits >= 1 &&
           job->max_splits <= WHARF_RANS_MAX_SPLITS &&
           (job->indexes != NULL) == (job->shape.n_distributions > 1) && frequencies_fit(job) &&
           (job->shape.symbol_nbytes == 1 && !job->indexes ? bytes_have_frequencies(job)
                                                           : symbols_have_frequencies(job));
}

static uint32_t n_splits_at_most(const struct wharf_rans_job *job)
{
    uint32_t n = job->n_symbols / WHARF_RANS_SPLIT_MIN_NSYMBOLS;

    if (n < 1)
        return 1;
    return n < job->max_splits ? n : job->max_splits;
}

/* The largest body has one word a symbol, and splits with fields of full width: 2 times 33 bits, 4
 * and 32 times 16, and their states. */
static size_t body_bound(const struct wharf_rans_job *job)
{
    return WHARF_RANS_STATES_NBYTES + 16 + 2 * (size_t)job->n_symbols +
           (size_t)(n_splits_at_most(job) - 1) * (9 + 1 + 64 + WHARF_RANS_SPLIT_STATES_NBYTES);
}

size_t wharf_rans_encode_bound(const struct wharf_rans_job *job)
{
    return WHARF_RANS_HEADER_NBYTES + wharf_rans_packed_bound(wharf_rans_n_ranges(&job->shape)) +
           (job->indexes ? job->n_symbols : 0) + body_bound(job);
}

/* Header and indexes, around a model that is ready, or is packed if there is none.  0
 * and their size, or -ENOSPC. */
static int write_front(const struct wharf_rans_job *job, const struct wharf_rans_ready_model *model,
                       uint8_t *out, size_t out_avail, size_t *ret_nbytes)
{
    size_t indexes_nbytes = job->indexes ? job->n_symbols : 0;
    size_t model_nbytes = 0;

    if (out_avail < WHARF_RANS_HEADER_NBYTES)
        return -ENOSPC;
    out_avail -= WHARF_RANS_HEADER_NBYTES;
    if (model)
        model_nbytes = model->packed_nbytes;
    else if (!job->leaves_model_out)
        model_nbytes = wharf_rans_model_pack(&job->shape, job->frequencies,
                                             out + WHARF_RANS_HEADER_NBYTES, out_avail);
    if (model_nbytes > out_avail || indexes_nbytes > out_avail - model_nbytes)
        return -ENOSPC;
    if (model)
        memcpy(out + WHARF_RANS_HEADER_NBYTES, model->packed, model_nbytes);
    wharf_rans_write_header(&job->shape, (uint32_t)model_nbytes, (uint32_t)indexes_nbytes, out);
    out += WHARF_RANS_HEADER_NBYTES + model_nbytes;
    if (indexes_nbytes > 0)
        memcpy(out, job->indexes, indexes_nbytes);
    *ret_nbytes = WHARF_RANS_HEADER_NBYTES + model_nbytes + indexes_nbytes;
    return 0;
}

static int write_body(const struct wharf_rans_plan *plan, const uint16_t *words, uint8_t *out,
                      size_t out_avail, size_t *ret_nbytes)
{
    size_t fields_nbytes = wharf_rans_fields_nbytes(plan);
    size_t words_nbytes = (size_t)plan->n_words * WHARF_RANS_WORD_NBYTES;

    if (fields_nbytes > out_avail || words_nbytes > out_avail - fields_nbytes)
        return -ENOSPC;
    wharf_rans_write_fields(plan, out);
    if (words_nbytes > 0)
        memcpy(out + fields_nbytes, words, words_nbytes); /* both little-endian */
    *ret_nbytes = fields_nbytes + words_nbytes;
    return 0;
}

/* Codes the symbols behind a front that is written, and adds to its size. */
static int add_body(const struct wharf_rans_job *job, const struct wharf_rans_code *codes,
                    uint8_t *out, size_t out_avail, size_t *nbytes)
{
    struct wharf_rans_source source = {
        .shape = job->shape,
        .codes = codes,
        .symbols = job->symbols,
        .indexes = job->indexes,
        .n_symbols = job->n_symbols,
        .max_splits = n_splits_at_most(job),
    };
    uint16_t *words = malloc(((size_t)source.n_symbols + WHARF_RANS_N_LANES) * sizeof(*words));
    struct wharf_rans_mark *marks = malloc((size_t)source.max_splits * sizeof(*marks));
    struct wharf_rans_plan plan;
    size_t body_nbytes = 0;
    int rc = -ENOMEM;

    if (words && marks) {
        wharf_rans_code_symbols(&source, words, marks, &plan);
        rc = write_body(&plan, words, out + *nbytes, out_avail - *nbytes, &body_nbytes);
        *nbytes += body_nbytes;
    }
    free(words);
    free(marks);
    return rc;
}

int wharf_rans_encode(const struct wharf_rans_job *job, uint8_t *out, size_t out_avail,
                      size_t *ret_out_nbytes)
{
    struct wharf_rans_code *codes;
    size_t nbytes = 0;
    int rc;

    if (!job_is_good(job))
        return -EINVAL;
    rc = write_front(job, NULL, out, out_avail, &nbytes);
    if (rc < 0)
        return rc;
    codes = malloc(wharf_rans_n_ranges(&job->shape) * sizeof(*codes));
    if (!codes)
        return -ENOMEM;
    wharf_rans_make_codes(&job->shape, job->frequencies, codes);
    rc = add_body(job, codes, out, out_avail, &nbytes);
    free(codes);
    if (rc == 0)
        *ret_out_nbytes = nbytes;
    return rc;
}

int wharf_rans_encode_ready(const struct wharf_rans_job *job,
                            const struct wharf_rans_ready_model *model, uint8_t *out,
                            size_t out_avail, size_t *ret_out_nbytes)
{
    size_t nbytes = 0;
    int rc = write_front(job, model, out, out_avail, &nbytes);

    if (rc == 0)
        rc = add_body(job, model->codes, out, out_avail, &nbytes);
    if (rc == 0)
        *ret_out_nbytes = nbytes;
    return rc;
}
