/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoded chunks that a daemon's GPU keeps: the GPU's own code on the CPU.  Results and bytes are
 * those of decoding, for each user alone, whatever becomes of sources, clients and workers.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/wharf.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_gpu_memory.h"
#include "tests/lib/test_pack.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"
#include "tests/lib/test_worker.h"

enum { N_JOBS = 30, PLAIN_NBYTES = 4800, PLACE_NBYTES = 16 * 1024 };

static const uint32_t codecs[] = {WHARF_CODEC_DEFLATE, WHARF_CODEC_ZLIB, WHARF_CODEC_GZIP};
enum { N_CODECS = sizeof(codecs) / sizeof(codecs[0]) };

static struct test_wharfd wharfd;

static void start(const char *more)
{
    test_wharfd_start_gpu(&wharfd, "simt", more);
}

/* A tenant without any has no sample. */
static double metric(const char *name)
{
    double value = test_wharfd_metric(&wharfd, name, NULL);

    return value > 0 ? value : 0;
}

static struct wharf_completion take(struct wharf *wharf)
{
    struct wharf_completion completion;

    cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), 1, "%s", wharf_error_message());
    return completion;
}

/* ---- jobs ---------------------------------------------------------------------------------- */

struct set {
    struct wharf_job jobs[N_JOBS];
    uint8_t *plain[N_JOBS];
};

/* N_JOBS different chunks, each with a place of the arena, or of `own`. */
static void set_make(struct set *set, struct wharf *wharf, uint8_t *own, unsigned seed)
{
    for (unsigned i = 0; i < N_JOBS; i++) {
        struct wharf_job *job = &set->jobs[i];
        size_t nbytes;
        void *memory = own + i * (size_t)PLACE_NBYTES;
        if (!own)
            cr_assert_eq(wharf_alloc(wharf, PLACE_NBYTES, &memory), 0);
        set->plain[i] = test_data_new(test_data_find("text"), seed + i, PLAIN_NBYTES);
        uint8_t *stream =
            test_pack(codecs[i % N_CODECS], NULL, set->plain[i], PLAIN_NBYTES, &nbytes);
        *job = (struct wharf_job)WHARF_JOB_INIT;
        job->codec = codecs[i % N_CODECS];
        job->in = memcpy((uint8_t *)memory + PLAIN_NBYTES, stream, nbytes);
        job->in_nbytes = nbytes;
        job->out = memory;
        job->out_avail = PLAIN_NBYTES;
        job->user_data = i;
        free(stream);
    }
}

static void set_free(struct set *set)
{
    for (unsigned i = 0; i < N_JOBS; i++)
        free(set->plain[i]);
}

static void expect_plain(const struct set *set, const struct wharf_completion *completion)
{
    const struct wharf_job *job = &set->jobs[completion->user_data];

    cr_assert_eq(completion->result, WHARF_OK, "%s", wharf_result_string(completion->result));
    cr_assert_eq(completion->in_nbytes, job->in_nbytes);
    cr_assert_eq(completion->out_nbytes, PLAIN_NBYTES);
    cr_assert_eq(memcmp(job->out, set->plain[completion->user_data], PLAIN_NBYTES), 0);
}

static void run(struct wharf *wharf, const struct set *set)
{
    for (unsigned i = 0; i < N_JOBS; i++)
        memset(set->jobs[i].out, 0x5a, PLAIN_NBYTES);
    cr_assert_eq(wharf_submit(wharf, set->jobs, N_JOBS), N_JOBS, "%s", wharf_error_message());
    for (unsigned i = 0; i < N_JOBS; i++) {
        struct wharf_completion completion = take(wharf);
        cr_assert_eq(completion.engine, WHARF_ENGINE_SIMT);
        expect_plain(set, &completion);
    }
}

static void expect_counts(double n_looked, double n_hits, double n_kept, double n_evicted)
{
    cr_expect_eq(metric("wharf_memo_lookups_total"), n_looked);
    cr_expect_eq(metric("wharf_memo_hits_total"), n_hits);
    cr_expect_eq(metric("wharf_memo_kept_total"), n_kept);
    cr_expect_eq(metric("wharf_memo_evicted_total"), n_evicted);
}

/* ---- what comes again ---------------------------------------------------------------------- */

static void check_rounds(const char *more, bool is_on)
{
    struct set set;

    start(more);
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 0);
    set_make(&set, wharf, NULL, 1);
    for (unsigned round = 0; round < 4; round++)
        run(wharf, &set);
    expect_counts(is_on * 4 * N_JOBS, is_on * 3 * N_JOBS, is_on * N_JOBS, 0);
    cr_expect_eq(metric("wharf_gpu_chunks_total"), 4 * N_JOBS);
    wharf_close(wharf);
    set_free(&set);
    test_wharfd_finish(&wharfd);
}

Test(wharfd_gpu_memo, repeated_chunks_are_copied)
{
    check_rounds("memo = 8M\n", true);
}

Test(wharfd_gpu_memo, nothing_is_kept_unless_asked_for)
{
    check_rounds("", false);
}

Test(wharfd_gpu_memo, chunks_of_batches_count_too)
{
    struct wharf_batch batch = WHARF_BATCH_INIT;
    struct wharf_batch_chunk chunks[N_JOBS] = {0};
    struct wharf_chunk_result results[N_JOBS];
    struct set set;
    unsigned n = 0;

    start("memo = 8M\n");
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 0);
    set_make(&set, wharf, NULL, 1);
    for (unsigned i = 0; i < N_JOBS; i++)
        if (set.jobs[i].codec == WHARF_CODEC_ZLIB)
            chunks[n++] = (struct wharf_batch_chunk){
                .in = set.jobs[i].in,
                .in_nbytes = (uint32_t)set.jobs[i].in_nbytes,
                .out = set.jobs[i].out,
                .out_avail = PLAIN_NBYTES,
            };
    batch.codec = WHARF_CODEC_ZLIB;
    batch.chunks = chunks;
    batch.results = results;
    batch.n_chunks = n;
    run(wharf, &set);
    cr_assert_eq(wharf_submit_batch(wharf, &batch), 0, "%s", wharf_error_message());
    cr_assert_eq(take(wharf).result, WHARF_OK);
    expect_counts(N_JOBS + n, n, N_JOBS, 0);
    wharf_close(wharf);
    set_free(&set);
    test_wharfd_finish(&wharfd);
}

/* What clients write into their GPU memory is not what others of the same user get. */
Test(wharfd_gpu_memo, outputs_in_gpu_memory_are_not_what_is_kept)
{
    struct set set, here;

    start("memo = 8M\n");
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 0);
    struct wharf *other = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 0);
    struct test_gpu_memory memory = test_gpu_memory_new(NULL, N_JOBS * (size_t)PLACE_NBYTES);
    cr_assert_eq(test_gpu_memory_register(wharf, &memory), 0, "%s", wharf_error_message());
    set_make(&set, wharf, memory.at, 1);
    set_make(&here, other, NULL, 1);
    run(wharf, &set);
    for (unsigned i = 0; i < N_JOBS; i++)
        memset(set.jobs[i].out, 0xee, PLAIN_NBYTES);
    run(other, &here);
    run(wharf, &set);
    expect_counts(3 * N_JOBS, 2 * N_JOBS, N_JOBS, 0);
    wharf_close(wharf);
    wharf_close(other);
    test_gpu_memory_free(&memory);
    set_free(&set);
    set_free(&here);
    test_wharfd_finish(&wharfd);
}

Test(wharfd_gpu_memo, errors_are_found_each_time)
{
    struct wharf_completion first[N_JOBS];
    struct set set;

    start("memo = 8M\n");
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 0);
    set_make(&set, wharf, NULL, 1);
    for (unsigned i = 0; i < N_JOBS; i++)
        set.jobs[i].out_avail -= 1 + i;
    for (unsigned round = 0; round < 3; round++) {
        cr_assert_eq(wharf_submit(wharf, set.jobs, N_JOBS), N_JOBS);
        for (unsigned i = 0; i < N_JOBS; i++) {
            struct wharf_completion completion = take(wharf);
            struct wharf_completion *same = &first[completion.user_data];
            cr_assert_eq(completion.result, WHARF_OUTPUT_TOO_SMALL);
            if (round == 0)
                *same = completion;
            cr_assert_eq(completion.reason, same->reason);
            cr_assert_eq(completion.bit_offset, same->bit_offset);
        }
    }
    expect_counts(3 * N_JOBS, 0, 0, 0);
    wharf_close(wharf);
    set_free(&set);
    test_wharfd_finish(&wharfd);
}

/* ---- bounds -------------------------------------------------------------------------------- */

/* The oldest leave. */
Test(wharfd_gpu_memo, memory_is_bounded)
{
    enum { N_SETS = 4 };
    struct set sets[N_SETS];

    start("memo = 512K\nmemo_users = 1\n[quota]\nmax_arena = 64M\n");
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 16 << 20);
    for (unsigned i = 0; i < N_SETS; i++) {
        set_make(&sets[i], wharf, NULL, i * N_JOBS);
        run(wharf, &sets[i]);
    }
    double n_evicted = metric("wharf_memo_evicted_total");
    cr_expect_eq(metric("wharf_memo_hits_total"), 0);
    cr_expect_gt(n_evicted, 0);
    cr_expect_leq((metric("wharf_memo_kept_total") - n_evicted) * PLAIN_NBYTES, 512 << 10);
    run(wharf, &sets[N_SETS - 1]);
    cr_expect_gt(metric("wharf_memo_hits_total"), 0);
    wharf_close(wharf);
    for (unsigned i = 0; i < N_SETS; i++)
        set_free(&sets[i]);
    test_wharfd_finish(&wharfd);
}

/* ---- users --------------------------------------------------------------------------------- */

static double metric_of(const char *name, const char *tenant)
{
    double value = test_wharfd_metric(&wharfd, name, tenant);

    return value > 0 ? value : 0;
}

static struct wharf *open_at(const char *path)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *wharf;

    options.socket_path = path;
    options.engine = WHARF_ENGINE_SIMT;
    cr_assert_eq(wharf_open(&options, &wharf), 0, "%s", wharf_error_message());
    return wharf;
}

/* Two tenants with the same chunks, of whom the second may have no part. */
static void check_users(unsigned n_parts)
{
    char more[300], path[100];
    struct set set, others;

    snprintf(path, sizeof(path), "/tmp/wharf-memo-%d", (int)getpid());
    snprintf(more, sizeof(more),
             "memo = 8M\nmemo_users = %u\n[listen pods]\npath = %s\ntenant = socket\n", n_parts,
             path);
    start(more);
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 0);
    struct wharf *other = open_at(path);
    set_make(&set, wharf, NULL, 1);
    set_make(&others, other, NULL, 1);
    run(wharf, &set);
    run(other, &others);
    cr_expect_eq(metric("wharf_all_memo_hits_total"), 0);
    run(other, &others);
    run(wharf, &set);
    bool has_part = n_parts > 1;
    cr_expect_eq(metric("wharf_all_memo_hits_total"), N_JOBS + has_part * N_JOBS);
    cr_expect_eq(metric_of("wharf_memo_hits_total", "socket:pods"), has_part * N_JOBS);
    cr_expect_eq(metric_of("wharf_memo_lookups_total", "socket:pods"), has_part * 2 * N_JOBS);
    wharf_close(wharf);
    wharf_close(other);
    set_free(&set);
    set_free(&others);
    test_wharfd_finish(&wharfd);
}

Test(wharfd_gpu_memo, users_share_nothing)
{
    check_users(2);
}

Test(wharfd_gpu_memo, users_beyond_the_parts_have_none)
{
    check_users(1);
}

/* ---- workers that are killed --------------------------------------------------------------- */

/* The next worker begins with nothing. */
Test(wharfd_gpu_memo, no_job_is_lost_when_workers_are_killed)
{
    struct set set;
    pid_t worker = 0;

    start("memo = 8M\nhang_timeout = 10min\n");
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 0);
    set_make(&set, wharf, NULL, 1);
    for (unsigned round = 0; round < 4; round++) {
        cr_assert(TEST_WAIT(metric("wharf_gpus_up") == 1));
        worker = test_worker_wait(wharfd.pid, worker);
        double n_hits = metric("wharf_memo_hits_total");
        run(wharf, &set);
        cr_expect_eq(metric("wharf_memo_hits_total"), n_hits);
        cr_assert_eq(wharf_submit(wharf, set.jobs, N_JOBS), N_JOBS);
        kill(worker, SIGKILL);
        for (unsigned i = 0; i < N_JOBS; i++) {
            struct wharf_completion completion = take(wharf);
            expect_plain(&set, &completion);
        }
    }
    wharf_close(wharf);
    set_free(&set);
    test_wharfd_finish(&wharfd);
}

/* ---- a source that changes ----------------------------------------------------------------- */

struct rewriter {
    uint8_t *source;
    const uint8_t *streams[2];
    size_t nbytes;
    bool stop;
};

static void *rewrite(void *data)
{
    struct rewriter *rewriter = data;

    for (unsigned n = 0; !__atomic_load_n(&rewriter->stop, __ATOMIC_RELAXED); n++)
        for (size_t i = 0; i < rewriter->nbytes; i++)
            __atomic_store_n(&rewriter->source[i], rewriter->streams[n % 2][i], __ATOMIC_RELAXED);
    return NULL;
}

/* Two streams in turn: what is good is the one chunk or the other, since gzip's checksum tells
 * mixtures; and each stays what it is. */
Test(wharfd_gpu_memo, source_that_is_rewritten_meanwhile_gives_what_it_was)
{
    enum { N = 100 };
    uint8_t *plain[2], *streams[2], *source;
    size_t nbytes[2];
    pthread_t thread;
    void *memory;

    start("memo = 1M\n");
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 0);
    cr_assert_eq(wharf_alloc(wharf, 2 * PLACE_NBYTES, &memory), 0);
    source = (uint8_t *)memory + PLACE_NBYTES;
    for (unsigned i = 0; i < 2; i++) {
        plain[i] = test_data_new(test_data_find("text"), 1 + i, PLAIN_NBYTES);
        streams[i] = test_pack(WHARF_CODEC_GZIP, NULL, plain[i], PLAIN_NBYTES, &nbytes[i]);
    }
    size_t most = nbytes[0] > nbytes[1] ? nbytes[0] : nbytes[1];
    for (unsigned i = 0; i < 2; i++) {
        streams[i] = realloc(streams[i], most);
        memset(streams[i] + nbytes[i], 0, most - nbytes[i]);
    }
    struct rewriter rewriter = {
        .source = source, .streams = {streams[0], streams[1]}, .nbytes = most};
    cr_assert_eq(pthread_create(&thread, NULL, rewrite, &rewriter), 0);
    struct wharf_job job = WHARF_JOB_INIT;
    job.codec = WHARF_CODEC_GZIP;
    job.in = source;
    job.in_nbytes = most;
    job.out = memory;
    job.out_avail = PLAIN_NBYTES;
    for (unsigned i = 0; i < N + 4; i++) {
        if (i == N) {
            __atomic_store_n(&rewriter.stop, true, __ATOMIC_RELAXED);
            pthread_join(thread, NULL);
        }
        if (i >= N)
            memcpy(source, streams[i % 2], most);
        memset(memory, 0x5a, PLAIN_NBYTES);
        cr_assert_eq(wharf_submit(wharf, &job, 1), 1);
        struct wharf_completion completion = take(wharf);
        bool is_0 = memcmp(memory, plain[0], PLAIN_NBYTES) == 0;
        bool is_1 = memcmp(memory, plain[1], PLAIN_NBYTES) == 0;
        if (i >= N)
            cr_assert(completion.result == WHARF_OK && (i % 2 ? is_1 : is_0));
        else if (completion.result == WHARF_OK)
            cr_assert(is_0 || is_1);
    }
    cr_expect_gt(metric("wharf_memo_hits_total"), 0);
    wharf_close(wharf);
    for (unsigned i = 0; i < 2; i++) {
        free(plain[i]);
        free(streams[i]);
    }
    test_wharfd_finish(&wharfd);
}
