/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_encode_simt_test: an epoch that encodes lines, on the SIMT layer: the bytes of the CPU's
 * encoder from and to any alignment, nothing outside of source and destination, and what a client
 * can do meanwhile.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "encoders/decode_job.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_lines.h"
#include "tests/unit/epoch_items.h"

static void open_epoch(struct test_epoch *t)
{
    struct wharf_epoch_config config = one_kernel();

    config.encodes = 1;
    test_epoch_open(t, &wharf_simt_epoch, &config);
}

static struct wharf_work_item encode_item(const struct wharf_line_choice *choice,
                                          const uint8_t *src, size_t src_nbytes, uint8_t *dst,
                                          size_t dst_nbytes)
{
    return (struct wharf_work_item){
        .src = address_of(src),
        .dst = address_of(dst),
        .src_nbytes = (uint32_t)src_nbytes,
        .dst_nbytes = (uint32_t)dst_nbytes,
        .codec = (uint16_t)choice->codec,
        .parameter = (uint16_t)WHARF_WORK_LINES((uint32_t)__builtin_ctz(choice->line_nbytes),
                                                choice->layout, choice->type),
        .opcode = WHARF_WORK_ENCODE,
    };
}

/* Into exactly what the stream takes, and into a byte less. */
static void expect_same(struct test_epoch *t, const struct wharf_line_choice *choice,
                        const uint8_t *raw, size_t n, size_t shift)
{
    size_t nbytes;
    uint8_t *want = test_lines_encode(choice, raw, n, &nbytes);
    struct test_guard src = test_guard_copy(raw, n, TEST_GUARD_END);
    struct test_guard dst = test_guard_new(nbytes + shift, TEST_GUARD_END);
    struct wharf_work_item item = encode_item(choice, src.data, n, dst.data, nbytes);
    struct wharf_work_completion completion = test_epoch_run(t, &item);

    expect(&completion, WHARF_OK, 0, (uint32_t)n, (uint32_t)nbytes);
    for (size_t i = 0; i < nbytes; i++)
        cr_assert_eq(dst.data[i], want[i],
                     "codec %u, lines of %u, shift %zu: byte %zu is %x, "
                     "not %x",
                     choice->codec, choice->line_nbytes, shift, i, dst.data[i], want[i]);
    for (size_t i = nbytes; i < nbytes + shift; i++)
        cr_assert_eq(dst.data[i], 0xa5);
    item.dst_nbytes--;
    completion = test_epoch_run(t, &item);
    expect(&completion, WHARF_OUTPUT_TOO_SMALL, WHARF_REASON_OUTPUT_FULL, 0, 0);
    test_guard_free(&dst);
    test_guard_free(&src);
    free(want);
}

/* The guards make ends, and so beginnings, of all alignments. */
Test(epoch_encode, bytes_are_those_of_the_processor_at_any_alignment)
{
    static const size_t sizes[] = {0, 1, 33, 128, 4095, 4096, 5000, 9001};
    static uint8_t raw[9001];
    struct test_epoch t;

    open_epoch(&t);
    for (unsigned c = 0; c < TEST_LINES_N_CHOICES; c++) {
        struct wharf_line_choice choice = test_lines_choice(c);
        for (unsigned kind = 0; kind < TEST_LINES_N_KINDS; kind++) {
            size_t n = sizes[(c + kind) % 8];
            test_lines_fill((enum test_lines_kind)kind, c, raw, n);
            expect_same(&t, &choice, raw, n, (c + 3 * kind) % 17);
        }
    }
    test_epoch_close(&t);
}

Test(epoch_encode, items_that_are_none_of_its_own_are_refused)
{
    static const struct wharf_line_choice lines = {WHARF_CODEC_BDI, 128, WHARF_LINE_PACKED, 0};
    uint8_t raw[300] = {0}, out[400];
    struct test_epoch t;

    open_epoch(&t);
    struct wharf_work_item items[5];
    for (unsigned i = 0; i < 5; i++)
        items[i] = encode_item(&lines, raw, sizeof(raw), out, sizeof(out));
    items[0].codec = WHARF_CODEC_DEFLATE;
    items[1].parameter = WHARF_WORK_LINES(4, 0, 0);
    items[2].parameter = WHARF_WORK_LINES(7, 2, 0);
    items[3].parameter = WHARF_WORK_LINES(7, 0, 1); /* a type is palette's */
    items[4].src_nbytes = (1u << 28) + 1;
    for (unsigned i = 0; i < 5; i++) {
        struct wharf_work_completion completion = test_epoch_run(&t, &items[i]);
        expect(&completion, WHARF_BAD_REQUEST,
               i < 4 ? WHARF_REASON_REQUEST_CODEC : WHARF_REASON_REQUEST_SIZE, 0, 0);
    }
    struct wharf_work_item noop = {.opcode = WHARF_WORK_NOOP};
    struct wharf_work_completion completion = test_epoch_run(&t, &noop);
    expect(&completion, WHARF_OK, 0, 0, 0);
    test_epoch_close(&t);
}

/* ---- cancelling ---------------------------------------------------------------------------- */

enum { LONG_NBYTES = 8 << 20 };

/* It would take seconds; its first group is stored soon. */
Test(epoch_encode, is_stopped_in_the_middle_by_a_cancel)
{
    static const struct wharf_line_choice lines = {WHARF_CODEC_BEST, 32, WHARF_LINE_PACKED, 0};
    size_t bound = wharf_line_bound(&lines, LONG_NBYTES);
    uint8_t *raw = calloc(1, LONG_NBYTES), *out = calloc(1, bound);
    struct timespec pause = {.tv_nsec = 50000};
    struct test_epoch t;

    open_epoch(&t);
    struct wharf_work_item item = encode_item(&lines, raw, LONG_NBYTES, out, bound);
    uint32_t index = test_epoch_submit(&t, &item);
    test_epoch_publish(&t);
    while (!__atomic_load_n(&out[0], __ATOMIC_RELAXED))
        nanosleep(&pause, NULL);
    cr_assert(test_epoch_cancel(&t, index));
    struct wharf_work_completion completion = test_epoch_await(&t);
    expect(&completion, WHARF_CANCELLED, 0, 0, 0);
    test_epoch_close(&t);
    free(out);
    free(raw);
}

/* ---- a source that changes ----------------------------------------------------------------- */

enum { CHANGING_NBYTES = 20000 };

struct rewriter {
    uint8_t *memory;
    bool stop;
};

static void *rewrite(void *data)
{
    struct rewriter *rewriter = data;
    uint8_t n = 0;

    while (!__atomic_load_n(&rewriter->stop, __ATOMIC_RELAXED))
        for (size_t i = 0; i < CHANGING_NBYTES; i += 1 + n % 13)
            __atomic_store_n(&rewriter->memory[i], n++ & 1, __ATOMIC_RELAXED);
    return NULL;
}

static void expect_decodes(uint32_t codec, const uint8_t *stream, size_t nbytes)
{
    static uint8_t out[CHANGING_NBYTES];
    struct wharf_decode_job job = {.codec = codec,
                                   .flags = WHARF_JOB_EXACT_INPUT | WHARF_JOB_EXACT_OUTPUT,
                                   .in = stream,
                                   .in_nbytes = nbytes,
                                   .out = out,
                                   .out_avail = sizeof(out)};
    struct wharf_outcome outcome;

    wharf_decode_job_run(&job, 0, &outcome);
    cr_assert_eq(outcome.result, WHARF_OK, "codec %u: %u", codec, outcome.result);
}

Test(epoch_encode, source_that_is_rewritten_meanwhile_gives_a_good_stream)
{
    static uint8_t out[2 * CHANGING_NBYTES];
    struct test_guard src = test_guard_new(CHANGING_NBYTES, TEST_GUARD_END);
    struct rewriter rewriter = {.memory = src.data};
    struct test_epoch t;
    pthread_t thread;

    open_epoch(&t);
    cr_assert_eq(pthread_create(&thread, NULL, rewrite, &rewriter), 0);
    for (unsigned c = 0; c < TEST_LINES_N_CHOICES; c++) {
        struct wharf_line_choice choice = test_lines_choice(c);
        struct wharf_work_item item =
            encode_item(&choice, src.data, CHANGING_NBYTES, out, sizeof(out));
        struct wharf_work_completion completion = test_epoch_run(&t, &item);
        cr_assert_eq(completion.result, WHARF_OK);
        expect_decodes(choice.codec, out, completion.out_nbytes);
    }
    __atomic_store_n(&rewriter.stop, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    test_epoch_close(&t);
    test_guard_free(&src);
}
