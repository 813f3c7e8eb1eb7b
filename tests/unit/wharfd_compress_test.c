/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that compress, by libwharf through a daemon; and what that refuses. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/wharf.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_compress.h"
#include "tests/lib/test_daemon.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"

#define MiB ((size_t)1 << 20)
#define COMPRESS ((uint64_t)1 << WHARF__FEATURE__FEATURE_COMPRESS)

static struct wharf *open_embedded(void)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *wharf;

    options.flags = WHARF_OPEN_EMBEDDED;
    cr_assert_eq(wharf_open(&options, &wharf), 0);
    return wharf;
}

/* ---- round trips ---------------------------------------------------------------------------- */

Test(wharfd_compress, every_encoder_gives_back_what_it_took_through_a_daemon)
{
    struct test_wharfd daemon;

    test_wharfd_start(&daemon, "");
    struct wharf *wharf = test_wharfd_open(&daemon, WHARF_ENGINE_AUTO, 0, 0);
    struct wharf_info info = {.struct_nbytes = sizeof(info)};
    cr_assert_eq(wharf_get_info(wharf, &info), 0);
    cr_assert_eq(info.max_compress_nbytes, MiB);
    test_compress_every_encoder(wharf);
    wharf_close(wharf);
    test_wharfd_finish(&daemon);
}

/* The largest chunk, and the daemon's own encoders: libzstd, not what libwharf has in its place. */
Test(wharfd_compress, largest_chunk_is_compressed_by_the_daemon_and_by_no_one_else)
{
    static const uint32_t engines[] = {WHARF_ENGINE_CPU, WHARF_ENGINE_REFERENCE};
    struct test_wharfd daemon;
    struct wharf_outcome outcome;
    char *memory = malloc(3 * MiB);

    test_wharfd_start(&daemon, "");
    for (size_t i = 0; i < 2; i++) {
        struct wharf *wharf = test_wharfd_open(&daemon, engines[i], 0, 0);
        struct wharf_job job = test_compress_job(WHARF_CODEC_ZSTD, 0, 1, 1);
        test_compress_round_trip(wharf, job, "text", MiB);
        job.in = memory;
        job.in_nbytes = MiB + 1;
        job.out = memory + MiB + 1;
        job.out_avail = MiB;
        cr_assert_eq(wharf_compress(wharf, &job, &outcome), -EMSGSIZE);
        wharf_close(wharf);
    }
    test_wharfd_finish(&daemon);
    free(memory);
}

/* ---- a destination that is too small ------------------------------------------------------- */

Test(wharfd_compress, too_small_a_destination_is_an_answer_at_each_size)
{
    struct test_wharfd daemon;

    test_wharfd_start(&daemon, "");
    struct wharf *there = test_wharfd_open(&daemon, WHARF_ENGINE_AUTO, 0, 0);
    test_compress_every_room(there);
    wharf_close(there);
    test_wharfd_finish(&daemon);
}

/* ---- what makes no sense ------------------------------------------------------------------- */

Test(wharfd_compress, jobs_that_make_no_sense_have_the_same_reasons_as_in_process)
{
    struct test_wharfd daemon;

    test_wharfd_start(&daemon, "");
    struct wharf *there = test_wharfd_open(&daemon, WHARF_ENGINE_CPU, 0, 0);
    test_compress_refusals(there);
    wharf_close(there);
    test_wharfd_finish(&daemon);
}

/* ---- many at once -------------------------------------------------------------------------- */

enum { N_JOBS = 48, CHUNK_NBYTES = 32 * 1024, OUT_NBYTES = 48 * 1024 };

/* Jobs of all codecs, each with a piece of the arena. */
static void make_jobs(struct wharf *wharf, struct wharf_job *jobs, uint32_t job_class)
{
    for (unsigned i = 0; i < N_JOBS; i++) {
        void *memory;
        jobs[i] = test_compress_job(test_compress_codecs[i % test_compress_n_codecs], 0, 0, 0);
        cr_assert_eq(wharf_alloc(wharf, CHUNK_NBYTES + OUT_NBYTES, &memory), 0);
        test_data_find("text")->fill(i, memory, CHUNK_NBYTES);
        jobs[i].in = memory;
        jobs[i].in_nbytes = test_data_fit(jobs[i].codec, 0, memory, CHUNK_NBYTES);
        jobs[i].out = (char *)memory + CHUNK_NBYTES;
        jobs[i].out_avail = OUT_NBYTES;
        jobs[i].flags = WHARF_JOB_COMPRESS;
        jobs[i].job_class = job_class;
        jobs[i].user_data = i;
    }
}

static struct wharf_completion take(struct wharf *wharf)
{
    struct wharf_completion completion;

    cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), 1, "%s", wharf_error_message());
    return completion;
}

/* All results were good; the streams are decoded in this process. */
static void take_good(struct wharf *wharf, const struct wharf_job *jobs)
{
    struct wharf *here = open_embedded();

    for (unsigned i = 0; i < N_JOBS; i++) {
        struct wharf_completion completion = take(wharf);
        cr_assert_eq(completion.result, WHARF_OK, "%s: %s",
                     wharf_codec_name(jobs[completion.user_data].codec),
                     wharf_result_string(completion.result));
        test_compress_decodes(here, &jobs[completion.user_data], completion.out_nbytes, 0);
    }
    wharf_close(here);
}

Test(wharfd_compress, daemon_that_dies_loses_no_job)
{
    struct wharf_job jobs[N_JOBS];
    struct test_wharfd daemon;

    test_wharfd_start(&daemon, "");
    struct wharf *wharf = test_wharfd_open(&daemon, WHARF_ENGINE_AUTO, 0, 0);
    make_jobs(wharf, jobs, WHARF_CLASS_DEFAULT);
    cr_assert_eq(wharf_submit(wharf, jobs, N_JOBS), N_JOBS);
    test_wharfd_kill(&daemon);
    test_wharfd_restart(&daemon);
    take_good(wharf, jobs);
    struct wharf_info info = {.struct_nbytes = sizeof(info)};
    cr_assert_eq(wharf_get_info(wharf, &info), 0);
    cr_assert_eq(info.n_reconnects, 1);
    wharf_close(wharf);
    test_wharfd_finish(&daemon);
}

/* Each has one completion, whichever of the two was faster; one at least had not begun. */
Test(wharfd_compress, cancelled_jobs_end)
{
    struct wharf_job jobs[N_JOBS];
    struct test_wharfd daemon;
    unsigned n_cancelled = 0;

    test_wharfd_start(&daemon, "[cpu]\nworkers = 1\n");
    struct wharf *wharf = test_wharfd_open(&daemon, WHARF_ENGINE_AUTO, 0, 0);
    make_jobs(wharf, jobs, WHARF_CLASS_BACKGROUND);
    for (unsigned i = 0; i < N_JOBS; i++) {
        jobs[i].user_data = 7;
        jobs[i].codec = WHARF_CODEC_ZLIB;
        jobs[i].in_nbytes = CHUNK_NBYTES;
        jobs[i].level = 12;
    }
    cr_assert_eq(wharf_submit(wharf, jobs, N_JOBS), N_JOBS);
    cr_assert_eq(wharf_cancel(wharf, 7), N_JOBS);
    for (unsigned i = 0; i < N_JOBS; i++) {
        struct wharf_completion completion = take(wharf);
        cr_assert(completion.result == WHARF_OK || completion.result == WHARF_CANCELLED);
        n_cancelled += completion.result == WHARF_CANCELLED;
    }
    cr_assert_gt(n_cancelled, 0);
    wharf_close(wharf);
    test_wharfd_finish(&daemon);
}

static void check_batch(struct wharf *wharf)
{
    struct wharf_batch batch = WHARF_BATCH_INIT;
    struct wharf_batch_chunk chunks[N_JOBS] = {0};
    struct wharf_chunk_result results[N_JOBS];
    struct wharf_job jobs[N_JOBS];

    make_jobs(wharf, jobs, WHARF_CLASS_DEFAULT);
    for (unsigned i = 0; i < N_JOBS; i++) {
        chunks[i].in = jobs[i].in;
        chunks[i].in_nbytes = CHUNK_NBYTES;
        chunks[i].out = jobs[i].out;
        /* The seventh has no room. */
        chunks[i].out_avail = i == 7 ? 5 : OUT_NBYTES;
    }
    batch.codec = WHARF_CODEC_DEFLATE;
    batch.flags = WHARF_JOB_COMPRESS;
    batch.encoder = WHARF_DEFLATE_BY_ZLIB;
    batch.level = 1;
    batch.chunks = chunks;
    batch.results = results;
    batch.n_chunks = N_JOBS;
    cr_assert_eq(wharf_submit_batch(wharf, &batch), 0, "%s", wharf_error_message());
    struct wharf_completion completion = take(wharf);
    cr_assert_eq(completion.result, WHARF_OUTPUT_TOO_SMALL);
    cr_assert_eq(completion.first_bad_chunk, 7);
    for (unsigned i = 0; i < N_JOBS; i++) {
        cr_assert_eq(results[i].result, i == 7 ? WHARF_OUTPUT_TOO_SMALL : WHARF_OK);
        jobs[i].codec = WHARF_CODEC_DEFLATE;
        jobs[i].in_nbytes = CHUNK_NBYTES;
        if (i != 7)
            test_compress_decodes(wharf, &jobs[i], results[i].out_nbytes, 0);
        wharf_free(wharf, (void *)jobs[i].in);
    }
    batch.level = 10;
    cr_assert_eq(wharf_submit_batch(wharf, &batch), 0);
    completion = take(wharf);
    cr_assert_eq(completion.result, WHARF_BAD_REQUEST);
    cr_assert_eq(completion.reason, WHARF_REASON_REQUEST_ENCODER);
}

Test(wharfd_compress, batches_are_compressed_chunk_by_chunk)
{
    struct test_wharfd daemon;

    test_wharfd_start(&daemon, "");
    struct wharf *there = test_wharfd_open(&daemon, WHARF_ENGINE_AUTO, 0, 0);
    struct wharf *here = open_embedded();
    check_batch(there);
    check_batch(here);
    wharf_close(here);
    wharf_close(there);
    test_wharfd_finish(&daemon);
}

/* ---- a source that changes ----------------------------------------------------------------- */

struct rewriter {
    uint8_t *memory;
    bool stop;
};

static void *rewrite(void *data)
{
    struct rewriter *rewriter = data;
    uint8_t n = 0;

    while (!__atomic_load_n(&rewriter->stop, __ATOMIC_RELAXED))
        for (size_t i = 0; i < CHUNK_NBYTES; i += 1 + n % 13)
            __atomic_store_n(&rewriter->memory[i], n++ & 1, __ATOMIC_RELAXED);
    return NULL;
}

static void compress_what_changes(struct wharf *wharf)
{
    struct wharf *here = open_embedded();
    void *memory;

    cr_assert_eq(wharf_alloc(wharf, CHUNK_NBYTES + OUT_NBYTES, &memory), 0);
    memset(memory, 0, CHUNK_NBYTES);
    struct rewriter rewriter = {.memory = memory};
    pthread_t thread;
    cr_assert_eq(pthread_create(&thread, NULL, rewrite, &rewriter), 0);
    for (size_t i = 0; i < 4 * test_compress_n_codecs; i++) {
        struct wharf_job job =
            test_compress_job(test_compress_codecs[i % test_compress_n_codecs], 0, 0, 0);
        job.flags = WHARF_JOB_COMPRESS;
        job.in = memory;
        job.in_nbytes = CHUNK_NBYTES;
        job.out = (char *)memory + CHUNK_NBYTES;
        job.out_avail = OUT_NBYTES;
        cr_assert_eq(wharf_submit(wharf, &job, 1), 1);
        struct wharf_completion completion = take(wharf);
        cr_assert_eq(completion.result, WHARF_OK);
        test_compress_decodes(here, &job, completion.out_nbytes, 1);
    }
    __atomic_store_n(&rewriter.stop, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    wharf_close(here);
}

Test(wharfd_compress, source_that_is_rewritten_meanwhile_gives_a_good_stream)
{
    struct test_wharfd daemon;

    test_wharfd_start(&daemon, "");
    struct wharf *there = test_wharfd_open(&daemon, WHARF_ENGINE_AUTO, 0, 0);
    struct wharf *here = open_embedded();
    compress_what_changes(there);
    /* Here the race is one of threads of one process, and on purpose. */
#ifndef __SANITIZE_THREAD__
    compress_what_changes(here);
#endif
    wharf_close(here);
    wharf_close(there);
    test_wharfd_finish(&daemon);
}

/* ---- limits, and daemons and clients of other ages ----------------------------------------- */

Test(wharfd_compress, encoders_memory_counts_against_the_quota)
{
    struct test_wharfd daemon;
    struct wharf_outcome outcome;
    uint8_t in[100] = {0}, out[200];
    struct wharf_job job = test_compress_job(WHARF_CODEC_LZ4, 0, 0, 0);

    test_wharfd_start(&daemon, "[quota]\nmax_memory = 12M\nmax_arena = 8M\nmax_job = 4M\n");
    struct wharf *wharf = test_wharfd_open(&daemon, WHARF_ENGINE_AUTO, 8, 8 * MiB);
    job.in = in;
    job.in_nbytes = sizeof(in);
    job.out = out;
    job.out_avail = sizeof(out);
    cr_assert_eq(wharf_compress(wharf, &job, &outcome), 0);
    cr_assert_eq(outcome.result, WHARF_QUOTA);
    wharf_close(wharf);
    test_wharfd_finish(&daemon);
}

static struct wharf *open_any(const char *path, uint32_t flags)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *wharf;

    options.socket_path = path;
    options.patience_ms = TEST_PATIENCE_MS;
    options.flags = flags;
    cr_assert_eq(wharf_open(&options, &wharf), 0, "%s", wharf_error_message());
    return wharf;
}

/* Refuses what is submitted; compresses in this process where the handle lets it. */
static void check_daemon_that_does_not(const char *path)
{
    struct wharf_outcome outcome;
    struct wharf_info info = {.struct_nbytes = sizeof(info)};
    struct wharf *strict = open_any(path, WHARF_OPEN_DAEMON), *lax = open_any(path, 0);
    struct wharf_job jobs[N_JOBS];

    cr_assert_eq(wharf_get_info(lax, &info), 0);
    cr_assert_eq(info.is_daemon, 1);
    cr_assert_eq(info.max_compress_nbytes, 0);
    make_jobs(strict, jobs, 0);
    cr_assert_eq(wharf_submit(strict, jobs, 1), -EOPNOTSUPP);
    cr_assert(strstr(wharf_error_message(), "does not compress"), "%s", wharf_error_message());
    cr_assert_eq(wharf_compress(strict, jobs, &outcome), -EOPNOTSUPP);
    test_compress_round_trip(lax, test_compress_job(WHARF_CODEC_LZ4, 0, 0, 0), "text", 5000);
    wharf_close(lax);
    wharf_close(strict);
}

Test(wharfd_compress, daemon_that_does_not_is_told_by_its_features)
{
    struct test_daemon *old = test_daemon_new();
    struct test_wharfd daemon;

    test_daemon_start(old);
    check_daemon_that_does_not(old->path);
    test_daemon_free(old);
    test_wharfd_start(&daemon, "[quota]\nmax_compress = 0\n");
    check_daemon_that_does_not(daemon.socket);
    test_wharfd_finish(&daemon);
}

/* A client that did not agree on it: the flag is an unknown one. */
Test(wharfd_compress, client_that_did_not_agree_on_it_is_refused_the_flag)
{
    const struct wharf_submission submission = {
        .opcode = WHARF_OP_DECODE,
        .codec = WHARF_CODEC_STORED,
        .flags = WHARF_JOB_COMPRESS,
        .src_nbytes = 10,
        .dst_offset = 100,
        .dst_nbytes = 10,
    };
    struct wharf_completion completion;
    struct test_wharfd daemon;

    test_wharfd_start(&daemon, "");
    for (int agrees = 0; agrees < 2; agrees++) {
        struct test_client *client = test_client_new();
        client->optional_features = agrees ? COMPRESS : 0;
        cr_assert_eq(test_client_connect(client, daemon.socket), 0);
        cr_assert_eq(test_client_hello(client), 0);
        cr_assert_eq(client->limits.max_compress_nbytes, agrees ? MiB : 0);
        cr_assert_eq(test_client_open_with(client, 8, 4096, 0, 0), 0);
        cr_assert_eq(test_client_submit(client, &submission), 0);
        cr_assert_eq(test_client_reap(client, &completion), 0);
        cr_assert_eq(completion.result, agrees ? WHARF_OK : WHARF_BAD_REQUEST);
        cr_assert_eq(completion.reason, agrees ? 0 : WHARF_REASON_REQUEST_FLAGS);
        test_client_free(client);
    }
    test_wharfd_finish(&daemon);
}
