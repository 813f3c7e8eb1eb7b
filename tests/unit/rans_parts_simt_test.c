/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_parts_simt_test: a rans stream in parts by items of their own has the outcome that one
 * decoder gives, however many parts there are, and whatever is wrong with it; or it is refused,
 * which says nothing of it.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/checksum.h"
#include "encoders/codec.h"
#include "encoders/crc32_join.h"
#include "encoders/decode_job.h"
#include "kernels/work_parts.h"
#include "tests/lib/test_epoch.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_rans.h"

enum { N_ENTRIES = 64, CHUNK_NBYTES = 16384, MAX_PARTS = 40 };

static const struct wharf_epoch_config config = {
    .n_entries = N_ENTRIES,
    .few = 4,
    .n_warps = 3,
    .chunk_nbytes = CHUNK_NBYTES,
    .idle_us = 1000,
};

/* A stream and how it is to be decoded. */
struct parts_case {
    const uint8_t *in;
    size_t in_nbytes;
    size_t out_avail;
    uint32_t parameter;
    const void *image;
    uint32_t device_parameter; /* that stands for the image there */
    uint32_t flags, checksum;
    uint32_t n_parts;
    uint32_t shift; /* of the output's alignment */
    bool to_device;
};

static struct wharf_decode_job job_of(const struct parts_case *c, uint8_t *out)
{
    return (struct wharf_decode_job){
        .codec = WHARF_CODEC_RANS,
        .flags = c->flags,
        .checksum = c->checksum,
        .setting = {.parameter = c->parameter, .model = c->image},
        .in = c->in,
        .in_nbytes = c->in_nbytes,
        .out = out,
        .out_avail = c->out_avail,
    };
}

static void submit(struct test_epoch *t, const struct parts_case *c, const uint8_t *in,
                   uint8_t *out, uint32_t number)
{
    struct wharf_work_item item = {
        .src = (uintptr_t)in,
        .dst = (uintptr_t)out,
        .src_nbytes = (uint32_t)c->in_nbytes,
        .dst_nbytes = (uint32_t)c->out_avail,
        .staging = WHARF_WORK_PART(number, c->n_parts),
        .codec = WHARF_CODEC_RANS,
        .parameter = (uint16_t)(c->image ? c->device_parameter : c->parameter),
        .flags = (uint16_t)c->flags,
        .opcode = WHARF_WORK_DECODE_PART,
        .output = c->to_device ? WHARF_WORK_TO_DEVICE : WHARF_WORK_TO_HOST,
    };

    test_epoch_submit(t, &item);
}

static void run_parts(struct test_epoch *t, const struct parts_case *c, const uint8_t *in,
                      uint8_t *out, struct wharf_work_part *parts)
{
    uint32_t first = t->submitter.tail;

    for (uint32_t i = 0; i < c->n_parts; i++)
        submit(t, c, in, out, i);
    test_epoch_publish(t);
    for (uint32_t i = 0; i < c->n_parts; i++) {
        struct wharf_work_completion completion = test_epoch_await(t);
        parts[completion.item - first] = (struct wharf_work_part){
            completion.result,     completion.reason, completion.bit_offset,
            completion.out_nbytes, completion.part,
        };
    }
}

/* Returns whether the parts were refused. */
static bool check(struct test_epoch *t, const struct parts_case *c, const char *what)
{
    struct test_guard in = test_guard_copy(c->in, c->in_nbytes, TEST_GUARD_END);
    struct test_guard out = test_guard_new(c->shift + c->out_avail, TEST_GUARD_END);
    struct wharf_work_part parts[MAX_PARTS];
    uint8_t *want_out = malloc(c->out_avail + 1);
    struct wharf_decode_job job = job_of(c, want_out);
    struct wharf_outcome want, got;

    wharf_decode_job_run(&job, 1, &want);
    run_parts(t, c, in.data, out.data + c->shift, parts);
    bool is_refused = wharf_work_parts_settle(parts, c->n_parts, &job, &got) == -EAGAIN;
    if (!is_refused) {
        cr_assert(got.result == want.result && got.reason == want.reason, "%s: %s, not %s", what,
                  wharf_reason_string(got.reason), wharf_reason_string(want.reason));
        cr_assert_eq(got.bit_offset, want.bit_offset, "%s", what);
        cr_assert(got.in_nbytes == want.in_nbytes && got.out_nbytes == want.out_nbytes, "%s", what);
        cr_assert(want.result != WHARF_OK ||
                      memcmp(out.data + c->shift, want_out, want.out_nbytes) == 0,
                  "%s", what);
    }
    for (uint32_t i = 0; i < c->shift; i++)
        cr_assert_eq(out.data[i], 0xa5, "%s", what);
    free(want_out);
    test_guard_free(&in);
    test_guard_free(&out);
    return is_refused;
}

static struct parts_case case_of(const struct test_rans *rans, uint32_t n_parts)
{
    return (struct parts_case){
        .in = rans->stream,
        .in_nbytes = rans->stream_nbytes,
        .out_avail = rans->plain_nbytes,
        .parameter = rans->shape.symbol_nbytes - 1,
        .n_parts = n_parts,
    };
}

/* Tables of all kinds, symbols of both sizes, indexes. */
static const struct test_rans_plan plans[] = {
    {8, 1, 1, 9000, 12, 100, 1},   {11, 1, 1, 30001, 40, 200, 2}, {12, 1, 1, 9000, 7, 250, 3},
    {16, 1, 1, 20000, 30, 250, 4}, {11, 2, 1, 9000, 9, 900, 5},   {14, 2, 4, 6000, 5, 900, 6},
    {12, 1, 16, 6000, 6, 200, 7},
};
enum { N_PLANS = sizeof(plans) / sizeof(plans[0]) };

Test(rans_parts, every_number_of_parts_gives_the_same)
{
    static const uint32_t numbers[] = {1, 2, 3, 7, 12, 40};
    struct test_epoch t;

    test_epoch_open(&t, &wharf_simt_epoch, &config);
    for (unsigned i = 0; i < N_PLANS; i++) {
        struct test_rans rans = test_rans_new(&plans[i]);
        for (unsigned k = 0; k < 6; k++) {
            struct parts_case c = case_of(&rans, numbers[k]);
            /* Less would not fit a part's output. */
            bool must_do = rans.plain_nbytes <= CHUNK_NBYTES || numbers[k] >= 7;
            c.to_device = k % 2;
            c.shift = k == 3 ? 0 : 13 * i + k;
            bool is_refused = check(&t, &c, "good");
            cr_expect(!(must_do && is_refused), "plan %u, %u parts", i, numbers[k]);
        }
        test_rans_free(&rans);
    }
    test_epoch_close(&t);
}

Test(rans_parts, registered_models)
{
    static const struct test_rans_plan registered[] = {
        {11, 1, 1, 9000, 12, 200, 1}, {16, 2, 1, 6000, 7, 40000, 2}, {14, 2, 20, 5000, 5, 900, 3}};
    const struct wharf_model_ops *ops = wharf_codec_find(WHARF_CODEC_RANS)->ops->models;
    struct test_epoch t;

    test_epoch_open(&t, &wharf_simt_epoch, &config);
    for (unsigned i = 0; i < 3; i++) {
        struct test_rans rans = test_rans_new_registered(&registered[i]);
        struct parts_case c = case_of(&rans, 4);
        size_t image_nbytes;
        cr_assert_eq(ops->image_nbytes(rans.model, rans.model_nbytes, &image_nbytes), 0);
        c.image = rans.image;
        cr_assert_eq(t.ops->add_model(t.epoch, rans.image, image_nbytes, &c.device_parameter), 0);
        cr_expect_not(check(&t, &c, "registered"));
        test_rans_free(&rans);
    }
    test_epoch_close(&t);
}

/* Bits flipped anywhere, and in header, model and splits; ends cut off; room for less. */
Test(rans_parts, damage_has_the_outcome_of_one_decoder, .timeout = 600)
{
    enum { N = 300 };
    struct test_random random = {7};
    struct test_epoch t;
    unsigned n_refused = 0;

    test_epoch_open(&t, &wharf_simt_epoch, &config);
    for (unsigned i = 0; i < N; i++) {
        struct test_rans_plan plan = plans[i % N_PLANS];
        plan.n_symbols = 1500 + i;
        plan.seed = i;
        struct test_rans rans = test_rans_new(&plan);
        struct parts_case c = case_of(&rans, 1 + i % 6);
        uint64_t limit = i % 2 ? 8 * rans.stream_nbytes : 3 * rans.stream_nbytes;
        for (unsigned k = 0; k <= i % 3; k++) {
            uint64_t bit = test_random_below(&random, limit);
            rans.stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        if (i % 5 == 0)
            c.in_nbytes = test_random_below(&random, rans.stream_nbytes);
        if (i % 7 == 0)
            c.out_avail -= 1 + i % 3;
        n_refused += check(&t, &c, "damaged");
        test_rans_free(&rans);
    }
    /* What is far from what the splits say. */
    cr_expect_lt(n_refused, N / 10);
    test_epoch_close(&t);
}

/* Splits far apart: a part of more than an item has room for is refused, and no other is. */
Test(rans_parts, uneven_splits_give_the_same_or_are_refused)
{
    static const struct {
        uint32_t first, n;
        bool is_refused;
    } cases[] = {{5, 3, false}, {1, 9, false}, {1, 25, true}, {10, 25, true}, {15, 25, true}};
    struct test_epoch t;

    test_epoch_open(&t, &wharf_simt_epoch, &config);
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct test_rans rans = test_rans_new(&plans[1]);
        struct parts_case c = case_of(&rans, 8);
        test_rans_drop_splits(&rans, cases[i].first, cases[i].n);
        c.in = rans.stream;
        c.in_nbytes = rans.stream_nbytes;
        cr_expect_eq(check(&t, &c, "uneven"), cases[i].is_refused, "case %u", i);
        test_rans_free(&rans);
    }
    test_epoch_close(&t);
}

/* Checksums of parts are joined; what the job promised is held against the whole. */
Test(rans_parts, flags_are_the_whole_chunks)
{
    struct test_epoch t;
    struct test_rans rans = test_rans_new(&plans[1]);
    uint32_t crc = wharf_crc32(WHARF_CRC32_INIT, rans.plain, rans.plain_nbytes);

    test_epoch_open(&t, &wharf_simt_epoch, &config);
    for (unsigned i = 0; i < 8; i++) {
        struct parts_case c = case_of(&rans, 5);
        c.flags = WHARF_JOB_CHECKSUM | (i & 1 ? WHARF_JOB_EXACT_OUTPUT : 0);
        c.checksum = crc ^ (i & 2);
        c.out_avail += i / 4;
        c.to_device = i == 5;
        c.shift = i;
        cr_expect_not(check(&t, &c, "flags"));
    }
    test_epoch_close(&t);
    test_rans_free(&rans);
}

/* A part that is not wanted any more; its neighbours are. */
Test(rans_parts, a_cancelled_part_ends)
{
    struct test_epoch t;
    struct test_rans rans = test_rans_new(&plans[1]);
    struct parts_case c = case_of(&rans, 4);
    uint8_t *out = malloc(c.out_avail);
    unsigned n_cancelled = 0;

    test_epoch_open(&t, &wharf_simt_epoch, &config);
    uint32_t first = t.submitter.tail;
    for (uint32_t i = 0; i < c.n_parts; i++)
        submit(&t, &c, c.in, out, i);
    cr_assert(test_epoch_cancel(&t, first + 3));
    for (uint32_t i = 0; i < c.n_parts; i++) {
        struct wharf_work_completion completion = test_epoch_await(&t);
        n_cancelled += completion.result == WHARF_CANCELLED;
        cr_expect_eq(completion.result == WHARF_CANCELLED, completion.item == first + 3);
    }
    cr_expect_eq(n_cancelled, 1);
    test_epoch_close(&t);
    test_rans_free(&rans);
    free(out);
}

Test(rans_parts, checksums_join)
{
    static const uint8_t bytes[] = "a chunk in two parts, of which either may be empty";
    uint32_t whole = wharf_crc32(WHARF_CRC32_INIT, bytes, sizeof(bytes));

    for (size_t n = 0; n <= sizeof(bytes); n++)
        cr_expect_eq(wharf_crc32_join(wharf_crc32(WHARF_CRC32_INIT, bytes, n),
                                      wharf_crc32(WHARF_CRC32_INIT, bytes + n, sizeof(bytes) - n),
                                      sizeof(bytes) - n),
                     whole);
}

/* ---- from parts to a chunk ------------------------------------------------------------------ */

static struct wharf_outcome settle(const struct wharf_work_part *parts, uint32_t n)
{
    const struct wharf_decode_job job = {
        .codec = WHARF_CODEC_RANS, .in_nbytes = 50, .out_avail = 100};
    struct wharf_outcome outcome;

    cr_assert_eq(wharf_work_parts_settle(parts, n, &job, &outcome), 0);
    return outcome;
}

Test(rans_parts, the_first_bad_part_decides_but_for_splits)
{
    struct wharf_work_part parts[3] = {
        {WHARF_OK, 0, 0, 40, 0},
        {WHARF_BAD_DATA, WHARF_REASON_RANS_SYMBOL, 700, 0, WHARF_PART_FLAW_IN_ORDER},
        {WHARF_BAD_DATA, WHARF_REASON_INPUT_TRUNCATED, 600, 0, WHARF_PART_FLAW_IN_ORDER},
    };
    struct wharf_outcome outcome = settle(parts, 3);
    cr_expect(outcome.reason == WHARF_REASON_RANS_SYMBOL && outcome.bit_offset == 700);
    parts[2] = (struct wharf_work_part){WHARF_BAD_DATA, WHARF_REASON_RANS_SPLIT, 200, 0,
                                        WHARF_PART_FLAW_OF_SPLITS};
    outcome = settle(parts, 3);
    cr_expect(outcome.reason == WHARF_REASON_RANS_SPLIT && outcome.bit_offset == 200);
}

/* A client that writes its source meanwhile: no more is delivered than there is room for. */
Test(rans_parts, parts_that_do_not_fit_together_are_a_bad_chunk)
{
    struct wharf_work_part parts[2] = {{WHARF_OK, 0, 0, 60, 0}, {WHARF_OK, 0, 60, 40, 0}};
    struct wharf_outcome outcome = settle(parts, 2);
    cr_expect(outcome.result == WHARF_OK && outcome.out_nbytes == 100);
    parts[1].bit_offset = 40;
    cr_expect_eq(settle(parts, 2).result, WHARF_BAD_DATA);
    parts[1].bit_offset = 60;
    parts[1].out_nbytes = 41;
    outcome = settle(parts, 2);
    cr_expect(outcome.result == WHARF_BAD_DATA && outcome.out_nbytes == 0);
}
