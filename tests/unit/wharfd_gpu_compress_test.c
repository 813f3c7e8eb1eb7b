/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines that a daemon's GPU compresses: the GPU's own code on the CPU.  The bytes are those of the
 * CPU's encoder, whatever becomes of clients and workers meanwhile.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/wharf.h"
#include "encoders/encode_job.h"
#include "tests/lib/test_compress.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_gpu_memory.h"
#include "tests/lib/test_lines.h"
#include "tests/lib/test_pack.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"
#include "tests/lib/test_worker.h"

enum { N_JOBS = 40, CHUNK_NBYTES = 20000, OUT_NBYTES = 48 * 1024 };

static const uint32_t codecs[] = {WHARF_CODEC_BDI, WHARF_CODEC_FPC, WHARF_CODEC_CPACK,
                                  WHARF_CODEC_BEST, WHARF_CODEC_PALETTE};
enum { N_CODECS = sizeof(codecs) / sizeof(codecs[0]) };

static struct test_wharfd wharfd;

static void start(const char *more)
{
    test_wharfd_start_gpu(&wharfd, "simt", more);
}

static double metric(const char *name, const char *label)
{
    return test_wharfd_metric(&wharfd, name, label);
}

static struct wharf_completion take(struct wharf *wharf)
{
    struct wharf_completion completion;

    cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), 1, "%s", wharf_error_message());
    return completion;
}

/* The CPU's stream of a job's source. */
static uint8_t *stream_of(const struct wharf_job *job, const uint8_t *in, size_t *ret_nbytes)
{
    const struct wharf_encode_choice choice = {job->codec, 0, job->encoder, 0};
    struct wharf_line_choice lines;

    cr_assert(wharf_encode_lines(&choice, &lines));
    return test_lines_encode(&lines, in, job->in_nbytes, ret_nbytes);
}

static void expect_stream(const struct wharf_job *job, const struct wharf_completion *completion)
{
    size_t nbytes;
    uint8_t *want = stream_of(job, job->in, &nbytes);

    cr_assert_eq(completion->result, WHARF_OK, "%s: %s", wharf_codec_name(job->codec),
                 wharf_result_string(completion->result));
    cr_assert_eq(completion->in_nbytes, job->in_nbytes);
    cr_assert_eq(completion->out_nbytes, nbytes);
    cr_assert_eq(memcmp(job->out, want, nbytes), 0, "%s", wharf_codec_name(job->codec));
    free(want);
}

static struct wharf_job job_of(unsigned i, uint8_t *memory)
{
    struct wharf_job job = test_compress_job(codecs[i % N_CODECS], 0, 0, 0);

    test_lines_fill((enum test_lines_kind)(i % TEST_LINES_N_KINDS), i, memory, CHUNK_NBYTES);
    job.in = memory;
    job.in_nbytes = CHUNK_NBYTES - i;
    job.out = memory + CHUNK_NBYTES;
    job.out_avail = OUT_NBYTES;
    job.flags = WHARF_JOB_COMPRESS;
    job.user_data = i;
    return job;
}

/* Each with a piece of the arena, or of `own`. */
static void make_jobs(struct wharf *wharf, uint8_t *own, struct wharf_job *jobs, uint32_t job_class)
{
    for (unsigned i = 0; i < N_JOBS; i++) {
        void *memory = own + i * (CHUNK_NBYTES + OUT_NBYTES);
        if (!own)
            cr_assert_eq(wharf_alloc(wharf, CHUNK_NBYTES + OUT_NBYTES, &memory), 0);
        jobs[i] = job_of(i, memory);
        jobs[i].job_class = job_class;
    }
}

static void run_jobs(struct wharf *wharf, const struct wharf_job *jobs)
{
    cr_assert_eq(wharf_submit(wharf, jobs, N_JOBS), N_JOBS, "%s", wharf_error_message());
    for (unsigned i = 0; i < N_JOBS; i++) {
        struct wharf_completion completion = take(wharf);
        cr_assert_eq(completion.engine, WHARF_ENGINE_SIMT);
        expect_stream(&jobs[completion.user_data], &completion);
    }
}

/* ---- what works ---------------------------------------------------------------------------- */

static void check_engine(uint32_t engine, uint32_t job_class)
{
    struct wharf_job jobs[N_JOBS];

    start("");
    struct wharf *wharf = test_wharfd_open(&wharfd, engine, 0, 0);
    make_jobs(wharf, NULL, jobs, job_class);
    run_jobs(wharf, jobs);
    cr_assert_eq(metric("wharf_gpu_compressed_chunks_total", NULL), N_JOBS);
    cr_assert_eq(metric("wharf_gpu_idle_work_pieces_total", NULL) > 0,
                 job_class == WHARF_CLASS_BACKGROUND);
    cr_assert_eq(metric("wharf_gpu_idle_work_running", NULL), 0);
    cr_assert_eq(metric("wharf_gpu_chunks_total", NULL), 0);
    wharf_close(wharf);
    test_wharfd_finish(&wharfd);
}

Test(wharfd_gpu_compress, bytes_are_those_of_the_processor)
{
    check_engine(WHARF_ENGINE_SIMT, WHARF_CLASS_DEFAULT);
}

Test(wharfd_gpu_compress, background_jobs_are_idle_work)
{
    check_engine(WHARF_ENGINE_SIMT, WHARF_CLASS_BACKGROUND);
}

/* As many as the GPU has warps go there, and others to the processors. */
Test(wharfd_gpu_compress, sessions_of_any_engine_use_it)
{
    struct wharf_job jobs[N_JOBS];

    start("");
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_AUTO, 0, 0);
    make_jobs(wharf, NULL, jobs, WHARF_CLASS_DEFAULT);
    unsigned n_of_gpu = 0;
    /* Those that come before the memory is pinned go to the processors. */
    for (unsigned round = 0; round < 10000 && n_of_gpu == 0; round++) {
        cr_assert_eq(wharf_submit(wharf, jobs, N_JOBS), N_JOBS);
        for (unsigned i = 0; i < N_JOBS; i++) {
            struct wharf_completion completion = take(wharf);
            n_of_gpu += completion.engine == WHARF_ENGINE_SIMT;
            expect_stream(&jobs[completion.user_data], &completion);
        }
    }
    cr_assert_gt(n_of_gpu, 0);
    cr_assert_eq(metric("wharf_gpu_compressed_chunks_total", NULL), n_of_gpu);
    wharf_close(wharf);
    test_wharfd_finish(&wharfd);
}

Test(wharfd_gpu_compress, sources_and_streams_may_be_in_gpu_memory)
{
    struct wharf_job jobs[N_JOBS];

    start("");
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_AUTO, 0, 0);
    struct test_gpu_memory memory =
        test_gpu_memory_new(NULL, (size_t)N_JOBS * (CHUNK_NBYTES + OUT_NBYTES));
    cr_assert_eq(test_gpu_memory_register(wharf, &memory), 0, "%s", wharf_error_message());
    make_jobs(wharf, memory.at, jobs, WHARF_CLASS_DEFAULT);
    run_jobs(wharf, jobs);
    /* From the arena there, and back. */
    for (unsigned i = 0; i < 2 * N_CODECS; i++) {
        void *here;
        cr_assert_eq(wharf_alloc(wharf, CHUNK_NBYTES + OUT_NBYTES, &here), 0);
        struct wharf_job job = job_of(i, here);
        if (i % 2)
            job.out = memory.at;
        else
            job.in = memcpy(memory.at, here, CHUNK_NBYTES);
        cr_assert_eq(wharf_submit(wharf, &job, 1), 1);
        struct wharf_completion completion = take(wharf);
        cr_assert_eq(completion.engine, WHARF_ENGINE_SIMT);
        expect_stream(&job, &completion);
        wharf_free(wharf, here);
    }
    wharf_close(wharf);
    test_gpu_memory_free(&memory);
    test_wharfd_finish(&wharfd);
}

/* The third chunk has a byte too little. */
Test(wharfd_gpu_compress, batches_are_compressed_chunk_by_chunk)
{
    struct wharf_batch batch = WHARF_BATCH_INIT;
    struct wharf_batch_chunk chunks[N_JOBS] = {0};
    struct wharf_chunk_result results[N_JOBS];
    struct wharf_job jobs[N_JOBS];
    size_t nbytes;

    start("");
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 0);
    make_jobs(wharf, NULL, jobs, WHARF_CLASS_DEFAULT);
    for (unsigned i = 0; i < N_JOBS; i++) {
        jobs[i].codec = WHARF_CODEC_BEST;
        free(stream_of(&jobs[i], jobs[i].in, &nbytes));
        chunks[i] = (struct wharf_batch_chunk){
            .in = jobs[i].in,
            .in_nbytes = (uint32_t)jobs[i].in_nbytes,
            .out = jobs[i].out,
            .out_avail = (uint32_t)nbytes - (i == 3),
        };
    }
    batch.codec = WHARF_CODEC_BEST;
    batch.flags = WHARF_JOB_COMPRESS;
    batch.chunks = chunks;
    batch.results = results;
    batch.n_chunks = N_JOBS;
    cr_assert_eq(wharf_submit_batch(wharf, &batch), 0, "%s", wharf_error_message());
    struct wharf_completion completion = take(wharf);
    cr_assert_eq(completion.result, WHARF_OUTPUT_TOO_SMALL);
    cr_assert_eq(completion.reason, WHARF_REASON_OUTPUT_FULL);
    cr_assert_eq(completion.first_bad_chunk, 3);
    for (unsigned i = 0; i < N_JOBS; i++) {
        uint8_t *want = stream_of(&jobs[i], jobs[i].in, &nbytes);
        cr_assert_eq(results[i].result, i == 3 ? WHARF_OUTPUT_TOO_SMALL : WHARF_OK);
        if (i != 3)
            cr_assert_eq(memcmp(jobs[i].out, want, nbytes), 0);
        free(want);
    }
    wharf_close(wharf);
    test_wharfd_finish(&wharfd);
}

/* ---- what does not ------------------------------------------------------------------------- */

static void expect_refusal(struct wharf *wharf, uint32_t codec, uint32_t result, uint8_t *memory)
{
    struct wharf_job job = job_of(0, memory);

    job.codec = codec;
    cr_assert_eq(wharf_submit(wharf, &job, 1), 1);
    struct wharf_completion completion = take(wharf);
    cr_assert_eq(completion.result, result);
    cr_assert_eq(completion.reason, WHARF_REASON_GPU_CODEC);
}

/* Other codecs; and all of them, where GPUs do not compress. */
Test(wharfd_gpu_compress, what_the_gpu_does_not_compress_is_refused)
{
    for (unsigned off = 0; off < 2; off++) {
        void *here;
        start(off ? "compress = 0\n" : "");
        struct wharf *forced = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 0);
        struct wharf *any = test_wharfd_open(&wharfd, WHARF_ENGINE_AUTO, 0, 0);
        struct test_gpu_memory memory = test_gpu_memory_new(NULL, CHUNK_NBYTES + OUT_NBYTES);
        uint32_t codec = off ? WHARF_CODEC_BDI : WHARF_CODEC_DEFLATE;
        cr_assert_eq(test_gpu_memory_register(any, &memory), 0);
        cr_assert_eq(wharf_alloc(forced, CHUNK_NBYTES + OUT_NBYTES, &here), 0);
        expect_refusal(forced, codec, WHARF_BAD_REQUEST, here);
        expect_refusal(any, codec, WHARF_UNSUPPORTED, memory.at);
        wharf_close(any);
        wharf_close(forced);
        test_gpu_memory_free(&memory);
        test_wharfd_finish(&wharfd);
    }
}

/* ---- cancelled, killed, gone --------------------------------------------------------------- */

enum { LONG_NBYTES = 1 << 20 };

static void *long_memory;

/* Jobs that would take the two simulated warps long, all with the same source. */
static void submit_long(struct wharf *wharf, unsigned n, uint32_t job_class)
{
    void *memory;

    cr_assert_eq(wharf_alloc(wharf, (n + 1) * 2 * (size_t)LONG_NBYTES, &memory), 0);
    long_memory = memory;
    test_lines_fill(TEST_LINES_MIXED, 1, memory, LONG_NBYTES);
    for (unsigned i = 0; i < n; i++) {
        struct wharf_job job = test_compress_job(WHARF_CODEC_BEST, 0, 0, 0);
        job.flags = WHARF_JOB_COMPRESS;
        job.in = memory;
        job.in_nbytes = LONG_NBYTES;
        job.out = (uint8_t *)memory + (i + 1) * 2 * (size_t)LONG_NBYTES;
        job.out_avail = 2 * (size_t)LONG_NBYTES;
        job.user_data = 7;
        job.job_class = job_class;
        cr_assert_eq(wharf_submit(wharf, &job, 1), 1, "%s", wharf_error_message());
    }
}

static void free_long(struct wharf *wharf)
{
    wharf_free(wharf, long_memory);
}

#define LONG_CONFIG "[quota]\nmax_compress = 1M\nmax_memory = 1G\nmax_arena = 256M\n"

/* Those that run too. */
Test(wharfd_gpu_compress, cancelled_jobs_end_in_the_middle)
{
    enum { N = 12 };

    start(LONG_CONFIG);
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 64 << 20);
    submit_long(wharf, N, WHARF_CLASS_DEFAULT);
    cr_assert(TEST_WAIT(metric("wharf_jobs_queued", NULL) == N - 2));
    cr_assert_eq(wharf_cancel(wharf, 7), N);
    for (unsigned i = 0; i < N; i++)
        cr_assert_eq(take(wharf).result, WHARF_CANCELLED);
    wharf_close(wharf);
    test_wharfd_finish(&wharfd);
}

static void decode(struct wharf *wharf, const struct wharf_job *job)
{
    cr_assert_eq(wharf_submit(wharf, job, 1), 1, "%s", wharf_error_message());
    cr_assert_eq(take(wharf).result, WHARF_OK);
}

/* Decodes beside it take longer than those before, on average at some time: one of the two chunks
 * is withdrawn, and none is lost. */
Test(wharfd_gpu_compress, work_that_delays_decodes_is_put_off, .timeout = 600)
{
    enum { N = 6, PLAIN_NBYTES = 30000 };
    uint8_t *plain = test_data_new(test_data_find("text"), 1, PLAIN_NBYTES);
    struct wharf_job job = test_compress_job(WHARF_CODEC_LZ4, 0, 0, 0);
    void *memory;
    size_t nbytes;

    start(LONG_CONFIG);
    struct wharf *background = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 64 << 20);
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 0);
    uint8_t *stream = test_pack(WHARF_CODEC_LZ4, NULL, plain, PLAIN_NBYTES, &nbytes);
    cr_assert_eq(wharf_alloc(wharf, nbytes + PLAIN_NBYTES, &memory), 0);
    job.in = memcpy(memory, stream, nbytes);
    job.in_nbytes = nbytes;
    job.out = (uint8_t *)memory + nbytes;
    job.out_avail = PLAIN_NBYTES;
    job.job_class = WHARF_CLASS_INTERACTIVE;
    for (unsigned i = 0; i < 30; i++)
        decode(wharf, &job);
    for (unsigned n = 0; n < 200 && metric("wharf_gpu_idle_work_withdrawn_total", NULL) == 0; n++) {
        submit_long(background, N, WHARF_CLASS_BACKGROUND);
        cr_assert(TEST_WAIT(metric("wharf_gpu_idle_work_running", NULL) > 0));
        do {
            for (unsigned i = 0; i < 10; i++)
                decode(wharf, &job);
        } while (metric("wharf_gpu_idle_work_running", NULL) > 1);
        for (unsigned i = 0; i < N; i++)
            cr_assert_eq(take(background).result, WHARF_OK);
        free_long(background);
    }
    cr_assert_gt(metric("wharf_gpu_idle_work_withdrawn_total", NULL), 0);
    cr_assert_gt(metric("wharf_gpu_idle_work_throttled_total", NULL), 0);
    cr_assert_eq(metric("wharf_gpu_idle_work_running", NULL), 0);
    wharf_close(wharf);
    wharf_close(background);
    test_wharfd_finish(&wharfd);
    free(stream);
    free(plain);
}

/* The processors do what a worker leaves behind, of sessions that want the GPU alone too. */
Test(wharfd_gpu_compress, no_job_is_lost_when_workers_are_killed)
{
    struct wharf_job jobs[N_JOBS];
    pid_t worker = 0;

    start("hang_timeout = 10min\n");
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 0);
    make_jobs(wharf, NULL, jobs, WHARF_CLASS_BACKGROUND);
    for (unsigned round = 0; round < 4; round++) {
        cr_assert(TEST_WAIT(metric("wharf_gpus_up", NULL) == 1));
        worker = test_worker_wait(wharfd.pid, worker);
        double n = metric("wharf_gpu_idle_work_pieces_total", NULL);
        cr_assert_eq(wharf_submit(wharf, jobs, N_JOBS), N_JOBS);
        cr_assert(TEST_WAIT(metric("wharf_gpu_idle_work_pieces_total", NULL) > n));
        kill(worker, SIGKILL);
        for (unsigned i = 0; i < N_JOBS; i++) {
            struct wharf_completion completion = take(wharf);
            expect_stream(&jobs[completion.user_data], &completion);
        }
        cr_assert_eq(metric("wharf_gpu_idle_work_running", NULL), 0);
    }
    wharf_close(wharf);
    test_wharfd_finish(&wharfd);
}

/* The next worker has them, since the processors cannot. */
Test(wharfd_gpu_compress, no_job_in_gpu_memory_is_lost_when_workers_are_killed)
{
    struct wharf_job jobs[N_JOBS];
    pid_t worker = 0;

    start("hang_timeout = 10min\n");
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_AUTO, 0, 0);
    struct test_gpu_memory memory =
        test_gpu_memory_new(NULL, (size_t)N_JOBS * (CHUNK_NBYTES + OUT_NBYTES));
    cr_assert_eq(test_gpu_memory_register(wharf, &memory), 0);
    make_jobs(wharf, memory.at, jobs, WHARF_CLASS_BACKGROUND);
    for (unsigned round = 0; round < 4; round++) {
        cr_assert(TEST_WAIT(metric("wharf_gpus_up", NULL) == 1));
        worker = test_worker_wait(wharfd.pid, worker);
        double n = metric("wharf_gpu_idle_work_pieces_total", NULL);
        cr_assert_eq(wharf_submit(wharf, jobs, N_JOBS), N_JOBS);
        cr_assert(TEST_WAIT(metric("wharf_gpu_idle_work_pieces_total", NULL) > n));
        kill(worker, SIGKILL);
        for (unsigned i = 0; i < N_JOBS; i++) {
            struct wharf_completion completion = take(wharf);
            expect_stream(&jobs[completion.user_data], &completion);
        }
    }
    wharf_close(wharf);
    test_gpu_memory_free(&memory);
    test_wharfd_finish(&wharfd);
}

/* Its memory is given back, and the next client's jobs run. */
Test(wharfd_gpu_compress, client_that_goes_leaves_nothing)
{
    struct wharf_job jobs[N_JOBS];

    start(LONG_CONFIG);
    struct wharf *gone = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 64 << 20);
    submit_long(gone, 12, WHARF_CLASS_BACKGROUND);
    cr_assert(TEST_WAIT(metric("wharf_gpu_idle_work_running", NULL) > 0));
    wharf_close(gone);
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 0);
    make_jobs(wharf, NULL, jobs, WHARF_CLASS_BACKGROUND);
    run_jobs(wharf, jobs);
    wharf_close(wharf);
    cr_assert(TEST_WAIT(metric("wharf_gpu_idle_work_running", NULL) == 0));
    /* But for the rings of who asks. */
    cr_assert(TEST_WAIT(metric("wharf_memory_bytes", NULL) < CHUNK_NBYTES));
    test_wharfd_finish(&wharfd);
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

Test(wharfd_gpu_compress, source_that_is_rewritten_meanwhile_gives_a_good_stream)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *here;
    void *memory;
    pthread_t thread;

    start("");
    options.flags = WHARF_OPEN_EMBEDDED;
    cr_assert_eq(wharf_open(&options, &here), 0);
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 0);
    cr_assert_eq(wharf_alloc(wharf, CHUNK_NBYTES + OUT_NBYTES, &memory), 0);
    struct rewriter rewriter = {.memory = memory};
    cr_assert_eq(pthread_create(&thread, NULL, rewrite, &rewriter), 0);
    for (unsigned i = 0; i < 4 * N_CODECS; i++) {
        struct wharf_job job = test_compress_job(codecs[i % N_CODECS], 0, 0, 0);
        job.flags = WHARF_JOB_COMPRESS;
        job.in = memory;
        job.in_nbytes = CHUNK_NBYTES;
        job.out = (uint8_t *)memory + CHUNK_NBYTES;
        job.out_avail = OUT_NBYTES;
        cr_assert_eq(wharf_submit(wharf, &job, 1), 1);
        struct wharf_completion completion = take(wharf);
        cr_assert_eq(completion.result, WHARF_OK);
        test_compress_decodes(here, &job, completion.out_nbytes, 1);
    }
    __atomic_store_n(&rewriter.stop, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    wharf_close(wharf);
    wharf_close(here);
    test_wharfd_finish(&wharfd);
}
