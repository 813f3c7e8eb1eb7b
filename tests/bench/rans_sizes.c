/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_sizes.c: how large rans streams are with many splits, few and none, and how large those of
 * the conventional way to parallelism.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/rans/rans.h"
#include "encoders/rans/rans_encode.h"
#include "encoders/rans/rans_recoil.h"
#include "encoders/rans/rans_thin.h"
#include "tests/bench/bench_row.h"
#include "tests/lib/test_file.h"
#include "tests/lib/test_help.h"

static const char help[] =
    "usage: rans_sizes FILE...\n"
    "\n"
    "Tells how large rans streams are with many splits, few and none, and how large those of\n"
    "the conventional way to parallelism.\n"
    "\n"
    "Prints a JSON object for each file, n (11 and 16), way to make models, and variation:\n"
    "those of tables 4 to 6 of the paper on Recoil.  Each has one model, made from the whole\n"
    "file.  Everything that is measured is decoded and compared first.\n"
    "\n"
    "The conventional way cuts the symbols into equal partitions, each coded by 32 coders of\n"
    "its own.  A partition is counted as its 32 final states and its words, without what says\n"
    "where it begins: less than a format would take.\n";

/* The paper's: 2176 warps are what an RTX 2080 Ti runs, 16 cores what its processor has. */
enum { N_LARGE = 2176, N_SMALL = 16, ALPHABET = 256 };
/* The model as a file of the paper's program. */
enum { CDF_NBYTES = 2 * (ALPHABET + 1) };

struct bytes {
    uint8_t *data;
    size_t nbytes;
};

/* One file with one model. */
struct work {
    const char *name;
    const char *model;
    struct wharf_rans_job job;
    size_t model_nbytes; /* with the header, or as a file of its own */
    size_t single_nbytes;
};

/* What a variation takes. */
struct sizes {
    uint32_t n_splits;
    uint64_t fields_nbytes; /* states and splits */
    uint64_t words_nbytes;
};

static void parse(const struct bytes *stream, struct wharf_rans_stream *ret_parts)
{
    struct wharf_outcome outcome;

    if (!wharf_rans_stream_parse(stream->data, stream->nbytes, ret_parts, &outcome))
        bench_die("a stream of ours is no stream");
}

static void compare(const struct bytes *stream, const struct wharf_rans_job *job)
{
    uint8_t *out = bench_check(malloc((size_t)job->n_symbols + 1));
    struct wharf_outcome outcome;

    wharf_rans_decode(stream->data, stream->nbytes, out, job->n_symbols, NULL, &outcome);
    if (outcome.result != WHARF_OK || outcome.out_nbytes != job->n_symbols ||
        memcmp(out, job->symbols, job->n_symbols) != 0)
        bench_die("wrong output");
    free(out);
}

/* The caller frees the data. */
static struct bytes encode(const struct wharf_rans_job *job)
{
    size_t bound = wharf_rans_encode_bound(job);
    struct bytes stream = {.data = bench_check(malloc(bound))};

    if (wharf_rans_encode(job, stream.data, bound, &stream.nbytes) < 0)
        bench_die("cannot encode");
    compare(&stream, job);
    return stream;
}

static struct bytes thin(const struct bytes *stream, const struct wharf_rans_job *job)
{
    struct wharf_rans_stream parts;
    struct bytes thinned = {0};
    size_t bound;

    parse(stream, &parts);
    bound = wharf_rans_thin_bound(&parts, N_SMALL);
    thinned.data = bench_check(malloc(bound));
    if (wharf_rans_thin(&parts, stream->data, N_SMALL, thinned.data, bound, &thinned.nbytes) < 0)
        bench_die("cannot thin");
    compare(&thinned, job);
    return thinned;
}

/* ---- the variations -------------------------------------------------------------------------- */

static struct sizes stream_sizes(const struct bytes *stream)
{
    struct wharf_rans_stream parts;

    parse(stream, &parts);
    return (struct sizes){
        .n_splits = parts.body.n_splits,
        .fields_nbytes = (uint64_t)(parts.body.words - parts.body.in),
        .words_nbytes = parts.body.n_words * WHARF_RANS_WORD_NBYTES,
    };
}

static struct sizes conventional_sizes(const struct work *work, uint32_t n_partitions)
{
    struct sizes sizes = {.n_splits = n_partitions};
    uint64_t n = work->job.n_symbols;

    for (uint64_t i = 0; i < n_partitions; i++) {
        uint64_t from = i * n / n_partitions;
        struct wharf_rans_job job = work->job;
        struct wharf_rans_stream parts;
        struct bytes stream;

        job.symbols += from;
        job.n_symbols = (uint32_t)((i + 1) * n / n_partitions - from);
        job.max_splits = 1;
        stream = encode(&job);
        parse(&stream, &parts);
        sizes.fields_nbytes += WHARF_RANS_STATES_NBYTES;
        sizes.words_nbytes += parts.body.n_words * WHARF_RANS_WORD_NBYTES;
        free(stream.data);
    }
    return sizes;
}

static void print(struct work *work, const char *variation, struct sizes sizes)
{
    size_t nbytes = work->model_nbytes + sizes.fields_nbytes + sizes.words_nbytes;

    if (sizes.n_splits == 1)
        work->single_nbytes = nbytes;
    printf("{\"what\": \"rans size\", \"codec\": \"rans\", \"data\": \"%s\", \"level\": %u, "
           "\"model\": \"%s\", \"variation\": \"%s\", \"splits\": %u, \"out_nbytes\": %u, "
           "\"in_nbytes\": %zu, \"model_nbytes\": %zu, \"fields_nbytes\": %llu, "
           "\"words_nbytes\": %llu, \"over_single_nbytes\": %lld}\n",
           work->name, work->job.shape.n_bits, work->model, variation, sizes.n_splits,
           work->job.n_symbols, nbytes, work->model_nbytes, (unsigned long long)sizes.fields_nbytes,
           (unsigned long long)sizes.words_nbytes,
           (long long)nbytes - (long long)work->single_nbytes);
    fflush(stdout);
}

static void measure(struct work *work, bool for_recoil)
{
    struct bytes single, large, small;
    struct wharf_rans_stream parts;

    work->job.max_splits = 1;
    single = encode(&work->job);
    work->job.max_splits = N_LARGE;
    large = encode(&work->job);
    small = thin(&large, &work->job);
    parse(&single, &parts);
    work->model_nbytes = for_recoil ? CDF_NBYTES : parts.body_at;
    print(work, "single", stream_sizes(&single));
    print(work, "conventional large", conventional_sizes(work, N_LARGE));
    print(work, "recoil large", stream_sizes(&large));
    print(work, "conventional small", conventional_sizes(work, N_SMALL));
    print(work, "recoil small", stream_sizes(&small));
    free(single.data);
    free(large.data);
    free(small.data);
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Our models, and those that the paper's program makes, in which all bytes have a place. */
static void measure_models(const char *name, const uint8_t *raw, uint32_t n_symbols,
                           uint32_t n_bits)
{
    uint64_t counts[ALPHABET] = {0};
    uint32_t frequencies[ALPHABET];

    for (uint32_t i = 0; i < n_symbols; i++)
        counts[raw[i]]++;
    for (int for_recoil = 0; for_recoil < 2; for_recoil++) {
        struct work work = {
            .name = name,
            .model = for_recoil ? "recoil" : "wharf",
            .job = {.shape = {.n_bits = n_bits,
                              .symbol_nbytes = 1,
                              .alphabet = ALPHABET,
                              .n_distributions = 1},
                    .frequencies = frequencies,
                    .symbols = raw,
                    .n_symbols = n_symbols},
        };

        if ((for_recoil ? wharf_rans_recoil_normalise(counts, n_bits, frequencies)
                        : wharf_rans_normalise(counts, ALPHABET, n_bits, frequencies)) < 0)
            bench_die("no model");
        measure(&work, for_recoil);
    }
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    if (argc < 2)
        return test_usage(help);
    for (int i = 1; i < argc; i++) {
        const char *slash = strrchr(argv[i], '/');
        size_t nbytes;
        uint8_t *raw = test_file_read(argv[i], &nbytes);

        if (!raw || nbytes < N_LARGE || nbytes > WHARF_RANS_MAX_SYMBOLS)
            bench_die(argv[i]);
        measure_models(slash ? slash + 1 : argv[i], raw, (uint32_t)nbytes, 11);
        measure_models(slash ? slash + 1 : argv[i], raw, (uint32_t)nbytes, 16);
        free(raw);
    }
    return 0;
}
