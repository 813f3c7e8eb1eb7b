/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vectors_main.c: every vector through every engine that is built.
 *
 *     vectors FOLDER             the vectors in the tree
 *     vectors TABLE FOLDER       those of a table
 *     vectors --one-order ...    device decoders in one order of lanes, not in three, and for long
 *                                outputs without bytes to spare
 *     vectors --device ...       device decoders alone, likewise
 *
 * One test is one vector on one engine: the outcome is the expected one and, in every member, that
 * of the first engine; the output has its length and checksums; source and destination end at
 * pages that cannot be touched; and a good stream with one byte less to write to is
 * OUTPUT_TOO_SMALL, with bytes to spare the same as without.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "tests/lib/test_file.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_sha256.h"
#include "tests/lib/test_tap.h"
#include "tests/lib/test_vector.h"
#include "tests/unit/vector_engines.h"

/* More than any engine may write beyond what it decodes, were it wrong. */
enum { SPARE_NBYTES = 100 };

/* What tests/lib/orc_vectors.py makes of a longer one is shorter. */
enum { LONG_NBYTES = 1600 };

/* Device decoders alone, with the first engine to compare them with. */
static bool device_only;
/* The lanes' order matters to races, not to bounds; nor does more room than a long output needs. */
static bool one_order;

static int complain(const char *what, uint64_t expected, uint64_t got)
{
    printf("# %s: expected %" PRIu64 ", got %" PRIu64 "\n", what, expected, got);
    return 1;
}

static int check_reason(const struct test_vector *vector, uint32_t reason)
{
    if (vector->n_reasons == 0)
        return 0;
    for (unsigned i = 0; i < vector->n_reasons; i++)
        if (vector->reasons[i] == reason)
            return 0;
    printf("# reason: expected %s, got %s\n", wharf_reason_name(vector->reasons[0]),
           wharf_reason_name(reason));
    return 1;
}

/* What the vector says of the outcome; returns the number of differences. */
static int check_expected(const struct test_vector *vector, const struct wharf_outcome *outcome,
                          bool streams)
{
    int n_wrong = 0;
    if (outcome->result != vector->result) {
        printf("# result: expected %s, got %s (%s at bit %" PRIu64 ")\n",
               wharf_result_name(vector->result), wharf_result_name(outcome->result),
               wharf_reason_name(outcome->reason), outcome->bit_offset);
        n_wrong++;
    }
    n_wrong += check_reason(vector, outcome->reason);
    if (vector->has_bit_offset && outcome->bit_offset != vector->bit_offset)
        n_wrong += complain("bit_offset", vector->bit_offset, outcome->bit_offset);
    if (streams && outcome->result != WHARF_OK)
        return n_wrong;
    uint64_t out_nbytes = vector->result == WHARF_OK ? vector->out_nbytes : 0;
    if (outcome->out_nbytes != out_nbytes)
        n_wrong += complain("out_nbytes", out_nbytes, outcome->out_nbytes);
    if (vector->has_in_nbytes && outcome->in_nbytes != vector->in_nbytes)
        n_wrong += complain("in_nbytes", vector->in_nbytes, outcome->in_nbytes);
    return n_wrong;
}

/* That this engine's outcome is the first engine's. */
static int check_same(const struct wharf_outcome *first, const struct wharf_outcome *outcome,
                      bool streams)
{
    int n_wrong = 0;
    if (outcome->result != first->result)
        n_wrong += complain("result, the first engine's", first->result, outcome->result);
    if (outcome->reason != first->reason)
        n_wrong += complain("reason, the first engine's", first->reason, outcome->reason);
    if (outcome->bit_offset != first->bit_offset)
        n_wrong +=
            complain("bit_offset, the first engine's", first->bit_offset, outcome->bit_offset);
    if (streams && first->result != WHARF_OK)
        return n_wrong;
    if (outcome->in_nbytes != first->in_nbytes)
        n_wrong += complain("in_nbytes, the first engine's", first->in_nbytes, outcome->in_nbytes);
    if (outcome->out_nbytes != first->out_nbytes)
        n_wrong +=
            complain("out_nbytes, the first engine's", first->out_nbytes, outcome->out_nbytes);
    return n_wrong;
}

static int check_output(const struct test_vector *vector, const uint8_t *out)
{
    int n_wrong = 0;
    uint32_t crc = (uint32_t)crc32(0, out, (uInt)vector->out_nbytes);
    if (vector->has_crc32 && crc != vector->crc32)
        n_wrong += complain("CRC-32 of the output", vector->crc32, crc);
    char hex[65];
    test_sha256_hex(out, vector->out_nbytes, hex);
    if (vector->sha256[0] && strcmp(hex, vector->sha256) != 0) {
        printf("# SHA-256: expected %s, got %s\n", vector->sha256, hex);
        n_wrong++;
    }
    return n_wrong;
}

struct run {
    const struct vector_engine *engine;
    const struct test_vector *vector;
    struct test_guard in;
};

/* Decodes into a guarded buffer of out_avail bytes, which the caller frees. */
static struct test_guard decode(const struct run *run, size_t out_avail,
                                struct wharf_outcome *ret_outcome)
{
    struct test_guard out = test_guard_new(out_avail, TEST_GUARD_END);
    memset(ret_outcome, 0xff, sizeof(*ret_outcome));
    run->engine->decode(run->vector->codec, run->vector->parameter, run->in.data, run->in.nbytes,
                        out.data, out_avail, ret_outcome);
    return out;
}

/* A good stream with more and with less room than it needs. */
static int check_other_capacities(const struct run *run)
{
    int n_wrong = 0;
    struct wharf_outcome outcome;
    const struct test_vector *vector = run->vector;

    struct test_guard out;
    if (!one_order || run->engine->kind == VECTOR_ENGINE_CPU || vector->out_nbytes < LONG_NBYTES) {
        out = decode(run, vector->out_nbytes + SPARE_NBYTES, &outcome);
        n_wrong += check_expected(vector, &outcome, run->engine->streams);
        if (n_wrong == 0)
            n_wrong += check_output(vector, out.data);
        test_guard_free(&out);
    }
    if (vector->out_nbytes == 0 || run->engine->streams)
        return n_wrong;
    /* boolrle leaves out up to seven values at the end. */
    size_t less = vector->codec == WHARF_CODEC_BOOLRLE ? 8 : 1;
    out = decode(run, vector->out_nbytes - less, &outcome);
    if (outcome.result != WHARF_OUTPUT_TOO_SMALL || outcome.reason != WHARF_REASON_OUTPUT_FULL ||
        outcome.out_nbytes != 0)
        n_wrong +=
            complain("result with a byte less to write to", WHARF_OUTPUT_TOO_SMALL, outcome.result);
    test_guard_free(&out);
    return n_wrong;
}

/* Runs one vector on one engine; fills *first if it is the first one. */
static int run_vector(const struct run *run, struct wharf_outcome *first)
{
    struct wharf_outcome outcome;
    bool streams = run->engine->streams;
    struct test_guard out = decode(run, run->vector->out_avail, &outcome);
    int n_wrong = check_expected(run->vector, &outcome, streams);

    if (run->engine == vector_engines)
        *first = outcome;
    n_wrong += check_same(first, &outcome, streams);
    if (outcome.result == WHARF_OK && n_wrong == 0)
        n_wrong += check_output(run->vector, out.data) + check_other_capacities(run);
    test_guard_free(&out);
    return n_wrong;
}

/* Whether this engine has something to say of this vector. */
static bool applies(const struct vector_engine *engine, const struct test_vector *vector)
{
    bool is_long = vector->codec >= WHARF_CODEC_RLE1 && vector->codec <= WHARF_CODEC_BOOLRLE &&
                   vector->in_nbytes > LONG_NBYTES;
    if (device_only && engine != vector_engines && engine->kind != VECTOR_ENGINE_DEVICE)
        return false;
    if (one_order && engine->kind == VECTOR_ENGINE_DEVICE_AGAIN)
        return false;
    return engine->can_decode(vector->codec) && !(engine->skips_long && is_long) &&
           !(engine->streams && vector->result == WHARF_OUTPUT_TOO_SMALL);
}

static size_t count_runs(const struct test_vector_list *list)
{
    size_t n_runs = 0;
    for (size_t i = 0; i < list->n_vectors; i++)
        for (size_t k = 0; k < n_vector_engines; k++)
            n_runs += applies(&vector_engines[k], &list->vectors[i]);
    return n_runs;
}

/* One vector on all engines; returns how many of them failed. */
static int run_engines(const struct test_vector *vector)
{
    int n_failed = 0;
    struct wharf_outcome first = {0};
    size_t nbytes;
    uint8_t *data = test_file_read(vector->path, &nbytes);
    if (!data) {
        perror(vector->path);
        exit(2);
    }
    struct run run = {.vector = vector, .in = test_guard_copy(data, nbytes, TEST_GUARD_END)};
    for (size_t k = 0; k < n_vector_engines; k++) {
        run.engine = &vector_engines[k];
        if (!applies(run.engine, vector))
            continue;
        printf("# %s: %s\n", run.engine->name, vector->path);
        int n_wrong = run_vector(&run, &first);
        test_tap_report(n_wrong == 0, "%s: %s", run.engine->name, vector->path);
        n_failed += n_wrong > 0;
    }
    test_guard_free(&run.in);
    free(data);
    return n_failed;
}

int main(int argc, char **argv)
{
    struct test_vector_list list = {0};
    int n_failed = 0;

    for (; argc > 1 && strncmp(argv[1], "--", 2) == 0; argc--, argv++) {
        device_only |= strcmp(argv[1], "--device") == 0;
        one_order |= strcmp(argv[1], "--one-order") == 0;
        if (!device_only && !one_order)
            break;
    }
    if (argc == 2) {
        test_vector_list_read_folder(&list, argv[1]);
    } else if (argc == 3) {
        test_vector_list_read_table(&list, argv[1], argv[2]);
    } else {
        fprintf(stderr, "usage: vectors [--device | --one-order] FOLDER | TABLE FOLDER\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("1..%zu\n", count_runs(&list));
    for (size_t i = 0; i < list.n_vectors; i++)
        n_failed += run_engines(&list.vectors[i]);
    test_vector_list_deinit(&list);
    return n_failed > 0;
}
