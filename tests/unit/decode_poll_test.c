/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes that are asked whether to go on: questions come often enough, make no difference when
 * they are answered by yes, and end the decode when not.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/decode_job.h"
#include "encoders/decode_poll.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_pack.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_rans.h"
#include "tests/lib/test_rounds.h"

#define X(ID, name, number, summary) WHARF_CODEC_##ID,
static const uint32_t codecs[] = {WHARF_CODEC_LIST(X)};
#undef X
enum { N_CODECS = sizeof(codecs) / sizeof(codecs[0]), PLAIN = 3 << 19 };

/* Counts questions; the last one is answered by CANCELLED. */
struct counter {
    struct wharf_decode_poll poll;
    unsigned n;
    unsigned last; /* 0: there is no last one */
};

static uint32_t count(struct wharf_decode_poll *poll)
{
    struct counter *counter = (struct counter *)poll;

    return ++counter->n == counter->last ? WHARF_CANCELLED : WHARF_OK;
}

static void run(struct wharf_decode_job *job, int reference, struct counter *counter, unsigned last,
                struct wharf_outcome *ret_outcome)
{
    *counter = (struct counter){.poll.ask = count, .last = last};
    job->setting.poll = &counter->poll;
    wharf_decode_job_run(job, reference, ret_outcome);
    job->setting.poll = NULL;
}

static void expect_same(const struct wharf_outcome *a, const struct wharf_outcome *b,
                        uint32_t codec)
{
    cr_assert(test_outcome_same(a, b), "codec %u: %s; %s", (unsigned)codec,
              test_outcome_text(a).text, test_outcome_text(b).text);
}

/* ---- streams ------------------------------------------------------------------------------- */

struct stream {
    struct wharf_decode_job job;
    uint8_t *plain, *packed;
};

static void stream_init(struct stream *stream, uint32_t codec, const char *data)
{
    size_t nbytes;

    stream->plain = test_data_new(test_data_find(data), 1, PLAIN);
    cr_assert_eq(test_data_fit(codec, 0, stream->plain, PLAIN), PLAIN);
    stream->packed = test_pack(codec, NULL, stream->plain, PLAIN, &nbytes);
    stream->job = (struct wharf_decode_job){
        .codec = codec,
        .flags = WHARF_JOB_CHECKSUM,
        .checksum = wharf_crc32(WHARF_CRC32_INIT, stream->plain, PLAIN),
        .in = stream->packed,
        .in_nbytes = nbytes,
        .out = malloc(PLAIN + 1000),
        .out_avail = PLAIN,
    };
}

static void stream_deinit(struct stream *stream)
{
    free(stream->plain);
    free(stream->packed);
    free(stream->job.out);
}

static const char *const data_kinds[] = {"text", "random", "zeros"};

/* ---- tests --------------------------------------------------------------------------------- */

static void check_questions(struct stream *stream, int reference, unsigned codec)
{
    const unsigned by_out = PLAIN / WHARF_POLL_OUT_NBYTES;
    struct counter counter;
    struct wharf_outcome outcome;

    memset(stream->job.out, 0xaa, PLAIN);
    run(&stream->job, reference, &counter, 0, &outcome);
    cr_assert_eq(outcome.result, WHARF_OK, "codec %u", codec);
    cr_assert_eq(outcome.out_nbytes, PLAIN);
    cr_assert_eq(memcmp(stream->job.out, stream->plain, PLAIN), 0);
    cr_assert_geq(counter.n + 2, by_out, "codec %u, %d: %u of %u", codec, reference, counter.n,
                  by_out);
}

Test(decode_poll, questions_come_often_and_change_nothing)
{
    struct counter counter;
    struct wharf_outcome outcome;

    for (unsigned i = 0; i < N_CODECS; i++) {
        for (unsigned k = 0; k < 3; k++) {
            struct stream stream;
            stream_init(&stream, codecs[i], data_kinds[k]);
            check_questions(&stream, 0, i);
            check_questions(&stream, 1, i);
            /* Nothing is asked where there is little to do, which zeros of zstd's are not. */
            if (stream.job.in_nbytes > 100)
                stream.job.in_nbytes = 100;
            run(&stream.job, 0, &counter, 0, &outcome);
            cr_assert_leq(counter.n, 1 + outcome.out_nbytes / WHARF_POLL_OUT_NBYTES);
            stream_deinit(&stream);
        }
    }
}

Test(decode_poll, errors_are_the_same_with_questions)
{
    struct test_random random = {4};
    struct wharf_outcome without, with;
    struct counter counter;

    for (unsigned i = 0; i < N_CODECS; i++) {
        struct stream stream;
        stream_init(&stream, codecs[i], "text");
        size_t nbytes = stream.job.in_nbytes;
        for (unsigned k = 0; k < TEST_ROUNDS(24); k++) {
            size_t at = test_random_below(&random, nbytes);
            uint8_t before = stream.packed[at];
            stream.job.in_nbytes = k % 3 == 0 ? at : nbytes;
            stream.job.out_avail = k % 3 == 1 ? test_random_below(&random, PLAIN) : PLAIN + 1000;
            stream.packed[at] ^= k % 3 == 2 ? (uint8_t)(1u << test_random_below(&random, 8)) : 0;
            wharf_decode_job_run(&stream.job, 0, &without);
            run(&stream.job, 0, &counter, 0, &with);
            expect_same(&with, &without, codecs[i]);
            run(&stream.job, 1, &counter, 0, &with);
            expect_same(&with, &without, codecs[i]);
            stream.packed[at] = before;
        }
        stream_deinit(&stream);
    }
}

Test(decode_poll, answer_ends_the_decode)
{
    struct counter counter;
    struct wharf_outcome outcome;
    const struct wharf_outcome expected = {.result = WHARF_CANCELLED};

    for (unsigned i = 0; i < N_CODECS; i++) {
        for (unsigned reference = 0; reference < 2; reference++) {
            struct stream stream;
            stream_init(&stream, codecs[i], "text");
            run(&stream.job, (int)reference, &counter, 0, &outcome);
            unsigned n = counter.n;
            for (unsigned last = 1; last <= n; last += 1 + n / 8) {
                run(&stream.job, (int)reference, &counter, last, &outcome);
                expect_same(&outcome, &expected, codecs[i]);
                cr_assert_eq(counter.n, last, "it went on");
            }
            stream_deinit(&stream);
        }
    }
}

/* ---- sources of which each byte costs much, or gives nothing --------------------------------- */

/* A source of `nbytes` that repeats `unit`, behind `head`. */
static void expect_questions(uint32_t codec, const void *head, size_t head_nbytes, const void *unit,
                             size_t unit_nbytes, size_t nbytes, unsigned expected)
{
    struct wharf_decode_job job = {.codec = codec, .in_nbytes = nbytes};
    uint8_t *in = calloc(1, nbytes), out[16];
    struct counter counter;
    struct wharf_outcome outcome;

    memcpy(in, head, head_nbytes);
    for (size_t at = head_nbytes; at + unit_nbytes <= nbytes; at += unit_nbytes)
        memcpy(in + at, unit, unit_nbytes);
    job.in = in;
    job.out = out;
    job.out_avail = sizeof(out);
    for (int reference = 0; reference < 2; reference++) {
        run(&job, reference, &counter, 0, &outcome);
        cr_assert_geq(counter.n, expected, "codec %u: %u questions", (unsigned)codec, counter.n);
    }
    free(in);
}

Test(decode_poll, blocks_and_members_without_output_are_asked_about)
{
    enum { N = 1 << 20 };
    static const uint8_t empty_block[] = {0x00, 0x00, 0x00, 0xff, 0xff};
    static const uint8_t empty_member[20] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3};
    static const uint8_t zlib_header[] = {0x78, 0x9c};

    expect_questions(WHARF_CODEC_DEFLATE, "", 0, empty_block, 5, N, N / WHARF_POLL_IN_NBYTES - 1);
    expect_questions(WHARF_CODEC_ZLIB, zlib_header, 2, empty_block, 5, N,
                     N / WHARF_POLL_IN_NBYTES - 1);
    expect_questions(WHARF_CODEC_GZIP, "", 0, empty_member, 20, N, N / WHARF_POLL_IN_NBYTES - 10);
}

/* The name of a gzip member ends nowhere. */
Test(decode_poll, long_names_are_asked_about)
{
    static const uint8_t header[10] = {0x1f, 0x8b, 8, 8};
    struct counter counter;
    struct wharf_outcome outcome;
    struct wharf_decode_job job = {.codec = WHARF_CODEC_GZIP, .in_nbytes = 8 << 20};
    uint8_t *in = malloc(job.in_nbytes);

    memset(in, 'n', job.in_nbytes);
    memcpy(in, header, sizeof(header));
    job.in = in;
    run(&job, 0, &counter, 0, &outcome);
    cr_assert_eq(outcome.reason, WHARF_REASON_INPUT_TRUNCATED);
    cr_assert_eq(outcome.bit_offset, 0);
    cr_assert_geq(counter.n, 16);
    free(in);
}

/* Many splits, or indexes, of a stream for whose output there is no room. */
static void expect_rans_questions(const struct test_rans_plan *plan, unsigned expected)
{
    struct test_rans rans = test_rans_new(plan);
    struct wharf_decode_job job = {
        .codec = WHARF_CODEC_RANS, .in = rans.stream, .in_nbytes = rans.stream_nbytes};
    struct counter counter;
    struct wharf_outcome outcome;

    for (int reference = 0; reference < 2; reference++) {
        run(&job, reference, &counter, 0, &outcome);
        cr_assert_eq(outcome.reason, WHARF_REASON_OUTPUT_FULL);
        cr_assert_geq(counter.n, expected, "%u questions", counter.n);
        run(&job, reference, &counter, expected, &outcome);
        cr_assert_eq(outcome.result, WHARF_CANCELLED);
        cr_assert_eq(counter.n, expected, "it went on");
    }
    test_rans_free(&rans);
}

Test(decode_poll, splits_and_indexes_of_rans_are_asked_about)
{
    enum { N_SPLITS = 2000, N_INDEXES = 3 << 20 };
    const struct test_rans_plan splits = {8, 1, 1, 256 * N_SPLITS, N_SPLITS, 200, 1};
    const struct test_rans_plan indexes = {8, 1, 2, N_INDEXES, 1, 200, 2};

    /* A split takes 64 bytes and more. */
    expect_rans_questions(&splits, 64 * N_SPLITS / WHARF_POLL_IN_NBYTES - 1);
    expect_rans_questions(&indexes, N_INDEXES / WHARF_POLL_COPY_NBYTES - 1);
}

/* Splits that are gone past to find others, and groups for which all is looked at, came to some
 * milliseconds between two questions. */
enum { N_SPLITS = 20000, N_SYMBOLS = 256 * N_SPLITS };

struct crew {
    struct wharf_decode_crew crew;
    const struct counter *counter;
    unsigned n_asked;
};

static bool note(struct wharf_decode_crew *crew, uint32_t n_parts, wharf_decode_parts_fn *act,
                 void *context)
{
    struct crew *own = (struct crew *)crew;

    own->n_asked = own->counter->n;
    return act(context, 0, n_parts, &((struct counter *)own->counter)->poll);
}

Test(decode_poll, skipped_splits_of_rans_are_asked_about)
{
    static const struct test_rans_plan plan = {8, 1, 1, N_SYMBOLS, N_SPLITS, 200, 1};
    enum { N_CHECKED = 64 * N_SPLITS / WHARF_POLL_IN_NBYTES, N_SKIPPED = N_SPLITS / 1024 };
    struct test_rans rans = test_rans_new(&plan);
    struct wharf_decode_job job = {
        .codec = WHARF_CODEC_RANS, .in = rans.stream, .in_nbytes = rans.stream_nbytes};
    struct counter counter;
    struct crew crew = {.crew.run = note, .counter = &counter};
    struct wharf_outcome outcome;

    run(&job, 0, &counter, 0, &outcome);
    cr_assert_eq(outcome.reason, WHARF_REASON_OUTPUT_FULL);
    cr_expect_geq(counter.n, (unsigned)(N_SKIPPED - 1 + N_CHECKED - 1));
    unsigned n_to_parse = counter.n;
    job.out = malloc(rans.plain_nbytes);
    job.out_avail = rans.plain_nbytes;
    job.setting.crew = &crew.crew;
    run(&job, 0, &counter, 0, &outcome);
    cr_assert_eq(outcome.result, WHARF_OK);
    cr_expect_geq(crew.n_asked, n_to_parse + N_SKIPPED - 2);
    for (unsigned last = 1; last <= crew.n_asked; last += 1 + crew.n_asked / 8) {
        run(&job, 0, &counter, last, &outcome);
        cr_expect_eq(outcome.result, WHARF_CANCELLED);
        cr_expect_eq(outcome.reason, WHARF_REASON_NONE);
        cr_expect_eq(counter.n, last, "it went on");
    }
    free(job.out);
    test_rans_free(&rans);
}

Test(decode_poll, exact_groups_of_rans_are_asked_about)
{
    static const struct test_rans_plan plan = {8, 1, 1, N_SYMBOLS, 1, 200, 1};
    enum { MOST_GROUPS = 512 };
    struct test_rans rans = test_rans_new(&plan);
    struct wharf_decode_job job = {.codec = WHARF_CODEC_RANS,
                                   .in = rans.stream,
                                   .in_nbytes = rans.stream_nbytes,
                                   .out = malloc(rans.plain_nbytes),
                                   .out_avail = rans.plain_nbytes};
    struct counter counter;
    struct wharf_outcome outcome;

    run(&job, 1, &counter, 0, &outcome);
    cr_assert_eq(outcome.result, WHARF_OK);
    cr_expect_geq(counter.n, (unsigned)(N_SYMBOLS / 32 / MOST_GROUPS - 1));
    free(job.out);
    test_rans_free(&rans);
}
