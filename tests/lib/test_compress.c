/* SPDX-License-Identifier: Apache-2.0 */
/* test_compress.c: checks of jobs that compress. */
#include "tests/lib/test_compress.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/codec.h"
#include "tests/lib/test_data.h"

const uint32_t test_compress_codecs[] = {
#define X(ID, name, number, summary) number,
    WHARF_CODEC_LIST(X)
#undef X
};
const size_t test_compress_n_codecs =
    sizeof(test_compress_codecs) / sizeof(test_compress_codecs[0]);

/* Ends the program unless is_so. */
static void need(bool is_so, const struct wharf_job *job, const struct wharf_outcome *outcome,
                 const char *what)
{
    if (is_so)
        return;
    fprintf(stderr,
            "%s: codec %u, parameter %u, encoder %u, level %u, %zu bytes into %zu: %s, %s; %s\n",
            what, job->codec, job->parameter, job->encoder, job->level, job->in_nbytes,
            job->out_avail, wharf_result_string(outcome->result),
            wharf_reason_string(outcome->reason), wharf_error_message());
    exit(1);
}

struct wharf_job test_compress_job(uint32_t codec, uint32_t parameter, uint32_t encoder,
                                   uint32_t level)
{
    struct wharf_job job = WHARF_JOB_INIT;

    job.codec = codec;
    job.parameter = parameter;
    job.encoder = encoder;
    job.level = level;
    return job;
}

/* ---- round trips ---------------------------------------------------------------------------- */

void test_compress_decodes(struct wharf *wharf, const struct wharf_job *made, size_t nbytes,
                           int has_changed)
{
    struct wharf_job job = test_compress_job(made->codec, made->parameter, 0, 0);
    struct wharf_outcome outcome = {0};
    char *plain = malloc(made->in_nbytes + 1);

    job.flags = WHARF_JOB_EXACT_INPUT | WHARF_JOB_EXACT_OUTPUT;
    job.in = made->out;
    job.in_nbytes = nbytes;
    job.out = plain;
    job.out_avail = made->in_nbytes;
    need(plain && wharf_decompress(wharf, &job, &outcome) == 0, made, &outcome, "cannot decode");
    need(outcome.result == WHARF_OK, made, &outcome, "does not decode");
    need(has_changed || made->in_nbytes == 0 || memcmp(plain, made->in, made->in_nbytes) == 0, made,
         &outcome, "decodes to something else");
    free(plain);
}

void test_compress_round_trip(struct wharf *wharf, struct wharf_job job, const char *kind,
                              size_t nbytes)
{
    uint8_t *plain = test_data_new(test_data_find(kind), nbytes, nbytes);
    struct wharf_outcome outcome = {0};
    size_t bound;

    job.in = plain;
    job.in_nbytes = test_data_fit(job.codec, job.parameter, plain, nbytes);
    need(wharf_compress_bound(&job, &bound) == 0, &job, &outcome, "no bound");
    uint8_t *out = malloc(bound + 1);
    out[bound] = 0x5a;
    job.out = out;
    job.out_avail = bound;
    need(wharf_compress(wharf, &job, &outcome) == 0, &job, &outcome, "cannot compress");
    need(outcome.result == WHARF_OK, &job, &outcome, "not compressed");
    need(outcome.in_nbytes == job.in_nbytes && outcome.out_nbytes <= bound && out[bound] == 0x5a,
         &job, &outcome, "wrong sizes");
    test_compress_decodes(wharf, &job, outcome.out_nbytes, 0);
    free(out);
    free(plain);
}

static void try_sizes(struct wharf *wharf, const struct wharf_job *job)
{
    static const size_t sizes[] = {0, 1, 2, 7, 8, 9, 127, 128, 129, 4095, 4096, 4097, 20000};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        test_compress_round_trip(wharf, *job, "text", sizes[i]);
        test_compress_round_trip(wharf, *job, "random", sizes[i]);
    }
}

static void try_row(struct wharf *wharf, uint32_t codec, const struct wharf_encoder_row *row,
                    uint32_t parameter)
{
    uint32_t number = wharf_encoder_number(wharf_codec_find(codec)->ops, row);
    struct wharf_job job = test_compress_job(codec, parameter, number, 0);

    try_sizes(wharf, &job);
    job.level = (uint32_t)(row->level_min > 0 ? row->level_min : row->level_max > 0);
    test_compress_round_trip(wharf, job, "text", 5000);
    job.level = (uint32_t)row->level_max;
    test_compress_round_trip(wharf, job, "text", 70000);
}

void test_compress_every_encoder(struct wharf *wharf)
{
    for (size_t i = 0; i < test_compress_n_codecs; i++) {
        const struct wharf_codec_ops *ops = wharf_codec_find(test_compress_codecs[i])->ops;
        for (const struct wharf_encoder_row *row = ops->encoder_rows; row->name; row++)
            for (uint32_t p = 0; p < 8 && wharf_codec_unit_nbytes(ops, p); p++)
                try_row(wharf, test_compress_codecs[i], row, p);
    }
}

/* ---- rooms --------------------------------------------------------------------------------- */

enum { ROOM_NBYTES = 1024 };

static bool is_untouched(const uint8_t *out, size_t from)
{
    for (size_t i = from; i < ROOM_NBYTES; i++)
        if (out[i] != 0x5a)
            return false;
    return true;
}

static void try_rooms(struct wharf *wharf, uint32_t codec)
{
    struct wharf_job job = test_compress_job(codec, 0, 0, 0);
    uint8_t *plain = test_data_new(test_data_find("text"), 1, 300);
    struct wharf_outcome outcome = {0}, whole = {0};
    uint8_t out[ROOM_NBYTES];

    job.in = plain;
    job.in_nbytes = test_data_fit(codec, 0, plain, 300);
    job.out = out;
    job.out_avail = sizeof(out);
    need(wharf_compress(wharf, &job, &whole) == 0 && whole.result == WHARF_OK, &job, &whole,
         "not compressed");
    for (job.out_avail = 0; job.out_avail < whole.out_nbytes; job.out_avail++) {
        memset(out, 0x5a, sizeof(out));
        need(wharf_compress(wharf, &job, &outcome) == 0, &job, &outcome, "cannot compress");
        need(outcome.result == WHARF_OUTPUT_TOO_SMALL && outcome.reason == WHARF_REASON_OUTPUT_FULL,
             &job, &outcome, "not too small");
        need(outcome.out_nbytes + outcome.in_nbytes + outcome.bit_offset == 0 &&
                 is_untouched(out, job.out_avail),
             &job, &outcome, "something is left");
    }
    free(plain);
}

void test_compress_every_room(struct wharf *wharf)
{
    for (size_t i = 0; i < test_compress_n_codecs; i++)
        try_rooms(wharf, test_compress_codecs[i]);
}

/* ---- jobs that are refused ----------------------------------------------------------------- */

static void refused(struct wharf *wharf, const struct wharf_job *job, uint32_t result,
                    uint32_t reason)
{
    struct wharf_outcome outcome = {0};

    need(wharf_compress(wharf, job, &outcome) == 0, job, &outcome, "cannot compress");
    need(outcome.result == result && outcome.reason == reason, job, &outcome,
         wharf_reason_name(reason));
}

static void refused_parameters(struct wharf *wharf, struct wharf_job job)
{
    /* Nine bytes are no whole number of two-byte values, and 2 is no boolean. */
    refused(wharf, &job, WHARF_BAD_DATA, WHARF_REASON_NOT_ENCODABLE);
    job.codec = WHARF_CODEC_BOOLRLE;
    job.parameter = 0;
    refused(wharf, &job, WHARF_BAD_DATA, WHARF_REASON_NOT_ENCODABLE);
    /* Models and bitshuffle's framing are for decoders only. */
    job.codec = WHARF_CODEC_RANS;
    job.parameter = WHARF_FIRST_MODEL;
    refused(wharf, &job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_PARAMETER);
    job.codec = WHARF_CODEC_BLOSC;
    job.parameter = WHARF_BLOSC_BITSHUFFLE_LZ4 + 4;
    refused(wharf, &job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_PARAMETER);
}

void test_compress_refusals(struct wharf *wharf)
{
    uint8_t in[9] = {2}, out[64];
    struct wharf_job job = test_compress_job(99, 9, 99, 99);

    job.in = in;
    job.in_nbytes = sizeof(in);
    job.out = out;
    job.out_avail = sizeof(out);
    job.flags = WHARF_JOB_EXACT_INPUT;
    job.job_class = 9;
    refused(wharf, &job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_CODEC);
    job.codec = WHARF_CODEC_RLE2;
    refused(wharf, &job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_FLAGS);
    job.flags = WHARF_JOB_COMPRESS;
    refused(wharf, &job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_CLASS);
    job.job_class = WHARF_CLASS_NORMAL;
    refused(wharf, &job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_PARAMETER);
    job.parameter = WHARF_RLE_U16;
    refused(wharf, &job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_ENCODER);
    job.encoder = 1;
    refused(wharf, &job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_ENCODER);
    job.encoder = UINT32_MAX;
    job.level = 0;
    refused(wharf, &job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_ENCODER);
    job.encoder = 1;
    refused_parameters(wharf, job);
    job = test_compress_job(WHARF_CODEC_ZLIB, 0, WHARF_DEFLATE_BY_ZLIB, 10);
    refused(wharf, &job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_ENCODER);
    job.level = 9;
    job.in_nbytes = 1;
    refused(wharf, &job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_NULL);
}
