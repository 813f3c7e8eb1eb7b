/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public calls: what they refuse, which outcome wins, what they leave alone.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "encoders/checksum.h"
#include "tests/lib/test_guard.h"

/* "wharf", as zlib -9 packs it, with two bytes behind it. */
static const uint8_t zlib_wharf[] = {0x78, 0xda, 0x2b, 0xcf, 0x48, 0x2c, 0x4a, 0x03,
                                     0x00, 0x06, 0x65, 0x02, 0x19, 0xaa, 0xbb};
enum {
    LEFT_NBYTES = 2,
    STREAM_NBYTES = sizeof(zlib_wharf) - LEFT_NBYTES,
    OUT_NBYTES = 5,
};

/* One handle for all tests of the process, as programs have it. */
static struct wharf *get_wharf(void)
{
    static struct wharf *wharf;
    struct wharf_options options = WHARF_OPTIONS_INIT;

    options.flags = WHARF_OPEN_EMBEDDED;
    if (!wharf)
        cr_assert_eq(wharf_open(&options, &wharf), 0);
    return wharf;
}

static struct wharf_job job_of(uint32_t flags, uint8_t *out, size_t out_avail)
{
    struct wharf_job job = WHARF_JOB_INIT;

    job.codec = WHARF_CODEC_ZLIB;
    job.flags = flags;
    job.checksum = wharf_crc32(0, "wharf", OUT_NBYTES);
    job.in = zlib_wharf;
    job.in_nbytes = STREAM_NBYTES;
    job.out = out;
    job.out_avail = out_avail;
    return job;
}

static void expect_outcome(const struct wharf_job *job, uint32_t result, uint32_t reason,
                           uint64_t bit_offset)
{
    struct wharf_outcome outcome;
    int good = result == WHARF_OK;

    memset(&outcome, 0xa5, sizeof(outcome));
    cr_assert_eq(wharf_decompress(get_wharf(), job, &outcome), 0);
    cr_expect_str_eq(wharf_result_name(outcome.result), wharf_result_name(result));
    cr_expect_str_eq(wharf_reason_name(outcome.reason), wharf_reason_name(reason));
    cr_expect_eq(outcome.bit_offset, bit_offset);
    cr_expect_eq(outcome.in_nbytes, good ? (uint64_t)STREAM_NBYTES : 0);
    cr_expect_eq(outcome.out_nbytes, good ? (uint64_t)OUT_NBYTES : 0);
}

/* There is somebody who has memory for it, and nobody here. */
Test(library, outputs_are_discarded_by_daemons_alone)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf_outcome outcome;
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf *wharf;
    uint8_t out[4];

    options.flags = WHARF_OPEN_EMBEDDED;
    cr_assert_eq(wharf_open(&options, &wharf), 0);
    job.flags = WHARF_JOB_DISCARD;
    job.out_avail = sizeof(out);
    cr_expect_eq(wharf_submit(wharf, &job, 1), -EOPNOTSUPP);
    cr_expect_eq(wharf_decompress(wharf, &job, &outcome), -EINVAL);
    job.out = out;
    cr_expect_eq(wharf_submit(wharf, &job, 1), -EINVAL);
    wharf_close(wharf);
}

Test(library, decodes_a_chunk_that_keeps_all_promises)
{
    uint8_t out[OUT_NBYTES];
    struct wharf_job job = job_of(WHARF_JOB_KNOWN_FLAGS, out, sizeof(out));

    expect_outcome(&job, WHARF_OK, WHARF_REASON_NONE, 0);
    cr_assert_arr_eq(out, "wharf", OUT_NBYTES);
}

Test(library, without_flags_leaves_input_and_output_over)
{
    uint8_t out[OUT_NBYTES + 3];
    struct wharf_job job = job_of(0, out, sizeof(out));

    job.in_nbytes = sizeof(zlib_wharf);
    job.checksum++;
    expect_outcome(&job, WHARF_OK, WHARF_REASON_NONE, 0);
    cr_assert_arr_eq(out, "wharf", OUT_NBYTES);
}

/* All three broken at once, then one less each time: input left wins over output missing, which
 * wins over the checksum; all stand at the end of the stream. */
Test(library, broken_promises_have_an_order)
{
    uint8_t out[OUT_NBYTES + 1];
    struct wharf_job job = job_of(WHARF_JOB_KNOWN_FLAGS, out, sizeof(out));

    job.in_nbytes = sizeof(zlib_wharf);
    job.checksum++;
    expect_outcome(&job, WHARF_BAD_DATA, WHARF_REASON_INPUT_LEFT, 8 * STREAM_NBYTES);
    job.in_nbytes = STREAM_NBYTES;
    expect_outcome(&job, WHARF_OUTPUT_SHORT, WHARF_REASON_OUTPUT_MISSING, 8 * STREAM_NBYTES);
    job.out_avail = OUT_NBYTES;
    expect_outcome(&job, WHARF_BAD_CHECKSUM, WHARF_REASON_JOB_CHECKSUM, 8 * STREAM_NBYTES);
    job.checksum--;
    expect_outcome(&job, WHARF_OK, WHARF_REASON_NONE, 0);
}

Test(library, each_flag_works_alone)
{
    uint8_t out[OUT_NBYTES + 1];
    struct wharf_job job = job_of(WHARF_JOB_EXACT_INPUT, out, sizeof(out));

    job.in_nbytes = sizeof(zlib_wharf);
    job.checksum++;
    expect_outcome(&job, WHARF_BAD_DATA, WHARF_REASON_INPUT_LEFT, 8 * STREAM_NBYTES);
    job.flags = WHARF_JOB_EXACT_OUTPUT;
    expect_outcome(&job, WHARF_OUTPUT_SHORT, WHARF_REASON_OUTPUT_MISSING, 8 * STREAM_NBYTES);
    job.flags = WHARF_JOB_CHECKSUM;
    expect_outcome(&job, WHARF_BAD_CHECKSUM, WHARF_REASON_JOB_CHECKSUM, 8 * STREAM_NBYTES);
}

/* What is wrong with the data comes before what the job promised of it. */
Test(library, the_codecs_own_verdict_comes_first)
{
    uint8_t out[OUT_NBYTES];
    struct wharf_job job = job_of(WHARF_JOB_KNOWN_FLAGS, out, sizeof(out));
    struct wharf_outcome outcome;

    job.checksum++;
    job.in_nbytes = STREAM_NBYTES - 1;
    expect_outcome(&job, WHARF_BAD_DATA, WHARF_REASON_INPUT_TRUNCATED, 8 * (STREAM_NBYTES - 4));
    job.in_nbytes = sizeof(zlib_wharf);
    job.out_avail = OUT_NBYTES - 1;
    cr_assert_eq(wharf_decompress(get_wharf(), &job, &outcome), 0);
    cr_assert_eq(outcome.result, WHARF_OUTPUT_TOO_SMALL);
    cr_assert_eq(outcome.reason, WHARF_REASON_OUTPUT_FULL);
}

Test(library, request_is_checked_by_codec_then_flags_then_ranges)
{
    struct wharf_job job = job_of(1u << 31, NULL, 1);

    job.codec = UINT32_MAX;
    job.parameter = 1;
    expect_outcome(&job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_CODEC, 0);
    job.codec = WHARF_CODEC_ZLIB;
    expect_outcome(&job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_FLAGS, 0);
    job.flags = 0;
    expect_outcome(&job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_PARAMETER, 0);
    job.parameter = 0;
    expect_outcome(&job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_NULL, 0);
}

Test(library, impossible_ranges_are_bad_requests)
{
    uint8_t out[OUT_NBYTES];
    struct wharf_job good = job_of(0, out, sizeof(out));
    struct wharf_job job = good;

    job.in = NULL;
    expect_outcome(&job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_NULL, 0);
    job = good;
    job.in_nbytes = (size_t)PTRDIFF_MAX + 1;
    expect_outcome(&job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_SIZE, 0);
    job = good;
    job.out_avail = SIZE_MAX;
    expect_outcome(&job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_SIZE, 0);
    job = good;
    job.in = (const void *)(UINTPTR_MAX - 2);
    expect_outcome(&job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_RANGE, 0);
}

Test(library, overlap_of_one_byte_is_a_bad_request_and_touching_is_not)
{
    uint8_t memory[64] = {0};
    struct wharf_job job = job_of(0, memory, OUT_NBYTES);

    memcpy(memory + OUT_NBYTES, zlib_wharf, STREAM_NBYTES);
    job.in = memory + OUT_NBYTES;
    job.out_avail++;
    expect_outcome(&job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_OVERLAP, 0);
    job.out_avail--;
    expect_outcome(&job, WHARF_OK, WHARF_REASON_NONE, 0);
    memmove(memory, zlib_wharf, STREAM_NBYTES);
    job.in = memory;
    job.out = memory + STREAM_NBYTES - 1;
    expect_outcome(&job, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_OVERLAP, 0);
    job.out = memory + STREAM_NBYTES;
    expect_outcome(&job, WHARF_OK, WHARF_REASON_NONE, 0);
}

Test(library, null_is_fine_where_nothing_is)
{
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_outcome outcome;

    cr_assert_eq(wharf_decompress(get_wharf(), &job, &outcome), 0);
    cr_assert_eq(outcome.result, WHARF_OK);
    cr_assert_eq(outcome.out_nbytes, 0);
    job.codec = WHARF_CODEC_GZIP;
    cr_assert_eq(wharf_decompress(get_wharf(), &job, &outcome), 0);
    cr_assert_eq(outcome.reason, WHARF_REASON_INPUT_TRUNCATED);
}

Test(library, misuse_touches_nothing)
{
    uint8_t out[OUT_NBYTES];
    struct wharf_job job = job_of(0, out, sizeof(out));
    struct wharf_outcome outcome;
    struct wharf_outcome before;

    memset(&outcome, 0xa5, sizeof(outcome));
    memset(out, 0xa5, sizeof(out));
    before = outcome;
    cr_expect_eq(wharf_decompress(NULL, &job, &outcome), -EINVAL);
    cr_expect_eq(wharf_decompress(get_wharf(), NULL, &outcome), -EINVAL);
    cr_expect_eq(wharf_decompress(get_wharf(), &job, NULL), -EINVAL);
    job.struct_nbytes = 0;
    cr_expect_eq(wharf_decompress(get_wharf(), &job, &outcome), -EINVAL);
    job.struct_nbytes = offsetof(struct wharf_job, encoder) - 1; /* of the first version */
    cr_expect_eq(wharf_decompress(get_wharf(), &job, &outcome), -EINVAL);
    job.struct_nbytes = UINT32_MAX;
    cr_expect_eq(wharf_decompress(get_wharf(), &job, &outcome), -E2BIG);
    cr_expect_arr_eq(&outcome, &before, sizeof(outcome));
    for (size_t i = 0; i < sizeof(out); i++)
        cr_expect_eq(out[i], 0xa5);
}

/* A program compiled with a later header: fine as long as it does not use what is new. */
Test(library, longer_job_is_taken_while_the_rest_is_zero)
{
    uint8_t out[OUT_NBYTES];
    struct {
        struct wharf_job job;
        uint8_t later[16];
    } longer = {.job = job_of(0, out, sizeof(out))};
    struct wharf_outcome outcome;

    longer.job.struct_nbytes = sizeof(longer);
    cr_assert_eq(wharf_decompress(get_wharf(), &longer.job, &outcome), 0);
    cr_assert_eq(outcome.result, WHARF_OK);
    longer.later[15] = 1;
    cr_assert_eq(wharf_decompress(get_wharf(), &longer.job, &outcome), -E2BIG);
}

/* A size that nobody set: memory behind the struct, which may not be there, is not read. */
Test(library, impossible_struct_sizes_are_refused_unread)
{
    static const uint32_t sizes[] = {4097, UINT32_MAX};
    uint8_t out[OUT_NBYTES];
    struct wharf_job job = job_of(0, out, sizeof(out));
    struct test_guard guard = test_guard_new(sizeof(job), TEST_GUARD_END);
    struct wharf_outcome outcome;

    for (size_t i = 0; i < 2; i++) {
        job.struct_nbytes = sizes[i];
        memcpy(guard.data, &job, sizeof(job));
        cr_assert_eq(wharf_decompress(get_wharf(), (const struct wharf_job *)guard.data, &outcome),
                     -E2BIG);
    }
    test_guard_free(&guard);
}

/* Nothing outside the destination is touched, by the reference engine either. */
Test(library, engines_agree_and_stay_within_guard_pages)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct test_guard in = test_guard_copy(zlib_wharf, STREAM_NBYTES, TEST_GUARD_END);
    struct test_guard out = test_guard_new(OUT_NBYTES, TEST_GUARD_END);
    static const uint32_t engines[] = {WHARF_ENGINE_AUTO, WHARF_ENGINE_CPU, WHARF_ENGINE_REFERENCE};

    for (size_t i = 0; i < 3; i++) {
        struct wharf_job job = job_of(WHARF_JOB_KNOWN_FLAGS, out.data, OUT_NBYTES);
        struct wharf_outcome outcome;
        struct wharf *other;

        job.in = in.data;
        options.engine = engines[i];
        options.flags = WHARF_OPEN_EMBEDDED;
        cr_assert_eq(wharf_open(&options, &other), 0);
        cr_expect_eq(wharf_engine(other), engines[i] ? engines[i] : (uint32_t)WHARF_ENGINE_CPU);
        memset(out.data, 0, OUT_NBYTES);
        cr_assert_eq(wharf_decompress(other, &job, &outcome), 0);
        cr_expect_eq(outcome.result, WHARF_OK);
        cr_expect_arr_eq(out.data, "wharf", OUT_NBYTES);
        wharf_close(other);
    }
    test_guard_free(&in);
    test_guard_free(&out);
}

Test(library, open_refuses_what_it_does_not_know)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *const before = get_wharf();
    struct wharf *other = before;

    cr_expect_eq(wharf_open(NULL, NULL), -EINVAL);
    options.flags = WHARF_OPEN_EMBEDDED;
    options.engine = WHARF_ENGINE_GPU;
    cr_expect_eq(wharf_open(&options, &other), -EOPNOTSUPP);
    options.engine = WHARF_ENGINE_SIMT;
    cr_expect_eq(wharf_open(&options, &other), -EOPNOTSUPP);
    cr_expect(strstr(wharf_error_message(), "simt"));
    options.engine = UINT32_MAX;
    cr_expect_eq(wharf_open(&options, &other), -EINVAL);
    options.engine = WHARF_ENGINE_CPU;
    options.flags = WHARF_OPEN_EMBEDDED | WHARF_OPEN_DAEMON;
    cr_expect_eq(wharf_open(&options, &other), -EINVAL);
    options.flags = 4;
    cr_expect_eq(wharf_open(&options, &other), -EINVAL);
    options.flags = WHARF_OPEN_EMBEDDED;
    options.reserved = 1;
    cr_expect_eq(wharf_open(&options, &other), -EINVAL);
    options.reserved = 0;
    options.max_jobs = 32768;
    cr_expect_eq(wharf_open(&options, &other), -EINVAL);
    options.max_jobs = 0;
    options.arena_nbytes = SIZE_MAX;
    cr_expect_eq(wharf_open(&options, &other), -EINVAL);
    options.arena_nbytes = 0;
    options.default_class = 4;
    cr_expect_eq(wharf_open(&options, &other), -EINVAL);
    options.default_class = 0;
    options.struct_nbytes = sizeof(options) - 4;
    cr_expect_eq(wharf_open(&options, &other), -EINVAL);
    options.struct_nbytes = 1 << 20;
    cr_expect_eq(wharf_open(&options, &other), -E2BIG);
    cr_expect_eq(other, before, "the handle was touched");
}

Test(library, null_handle_is_closed_and_told_from_a_handle)
{
    struct wharf_completion completion;

    wharf_close(NULL);
    cr_expect_eq(wharf_poll(NULL, &completion, 1), -EINVAL);
    cr_expect_neq(wharf_error_message()[0], '\0');
}

Test(library, codecs_have_names_without_gaps)
{
    uint32_t n = 0;

    while (wharf_codec_name(n)) {
        cr_expect_eq(wharf_codec_from_name(wharf_codec_name(n)), (int)n);
        cr_expect_not_null(wharf_codec_summary(n));
        n++;
    }
    cr_expect_gt(n, (uint32_t)WHARF_CODEC_GZIP);
    cr_expect_null(wharf_codec_summary(n));
    cr_expect_null(wharf_codec_name(UINT32_MAX));
    cr_expect_eq(wharf_codec_from_name("ZLIB"), -ENOENT);
    cr_expect_eq(wharf_codec_from_name(""), -ENOENT);
}

/* They left the message of the call before. */
Test(library, unknown_names_are_told_with_those_that_there_are)
{
    static const char before[] = "there is no codec 'brotli': the names are ";

#define X(ID, name, number, summary) ", " #name
    cr_expect_eq(wharf_codec_from_name("brotli"), -ENOENT);
    cr_expect_eq(strncmp(wharf_error_message(), before, strlen(before)), 0);
    cr_expect_str_eq(wharf_error_message() + strlen(before), &(WHARF_CODEC_LIST(X))[2]);
#undef X
    cr_expect_eq(wharf_engine_from_name("cuda"), -ENOENT);
    cr_expect_str_eq(wharf_error_message(),
                     "there is no engine 'cuda': the names are auto, cpu, reference, gpu, simt");
    cr_expect_eq(wharf_codec_from_name("a\nb\033"), -ENOENT);
    cr_expect(strstr(wharf_error_message(), "'a?b?'"));
    cr_expect_eq(wharf_codec_from_name(NULL), -EINVAL);
    cr_expect_str_eq(wharf_error_message(), "the codec's name is NULL");
}

Test(library, engines_have_names)
{
    for (uint32_t i = WHARF_ENGINE_AUTO; i <= WHARF_ENGINE_SIMT; i++)
        cr_expect_eq(wharf_engine_from_name(wharf_engine_name(i)), (int)i);
    cr_expect_str_eq(wharf_engine_name(UINT32_MAX), "unknown");
    cr_expect_eq(wharf_engine_from_name("cuda"), -ENOENT);
    cr_expect_str_eq(wharf_version(), WHARF_VERSION);
}

/* Data loaders open a handle, then fork. */
Test(library, handle_works_in_a_forked_child)
{
    uint8_t out[OUT_NBYTES];
    struct wharf_job job = job_of(WHARF_JOB_KNOWN_FLAGS, out, sizeof(out));
    struct wharf_outcome outcome = {.result = WHARF_INTERNAL};
    pid_t child = fork();
    int status;

    if (child == 0) {
        int r = wharf_decompress(get_wharf(), &job, &outcome);

        _exit(r == 0 && outcome.result == WHARF_OK ? 0 : 1);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
}
