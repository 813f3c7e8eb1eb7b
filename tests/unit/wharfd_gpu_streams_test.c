/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large chunks of Deflate, zlib and gzip, which a worker decodes by its whole GPU.  The engine is
 * the GPU's own code on the CPU, which here takes streams from 4 KiB up and cuts them into parts of
 * 512 bytes.
 */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "clientlib/wharf.h"
#include "daemon/base/clock.h"
#include "encoders/codec.h"
#include "encoders/decode_job.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_gpu_memory.h"
#include "tests/lib/test_outcome.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"
#include "tests/unit/gpu_storm.h"

#define MiB ((size_t)1 << 20)
enum { N_CODECS = 3, NBYTES = 30000 };

static const uint32_t codecs[N_CODECS] = {WHARF_CODEC_DEFLATE, WHARF_CODEC_ZLIB, WHARF_CODEC_GZIP};
static const int window_bits[N_CODECS] = {-15, 15, 15 + 16};

static struct test_wharfd wharfd;

static void start(void)
{
    setenv("WHARF_SIMT_STREAMS", "4096", 1);
    test_wharfd_start_gpu(&wharfd, "simt", "chunk = 4K\nhang_timeout = 10min\n");
}

static double metric(const char *name)
{
    return test_wharfd_metric(&wharfd, name, NULL);
}

/* A session that wants the GPU alone, with memory in all places that a chunk can be in. */
struct place {
    struct wharf *wharf;
    struct test_gpu_memory device;
    uint8_t *host;
};

static struct place new_place(void)
{
    struct place place = {.wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 4 * MiB)};
    void *host;

    place.device = test_gpu_memory_new(NULL, 2 * MiB);
    cr_assert_eq(test_gpu_memory_register(place.wharf, &place.device), 0, "%s",
                 wharf_error_message());
    cr_assert_eq(wharf_alloc(place.wharf, 2 * MiB, &host), 0);
    place.host = host;
    return place;
}

static void free_place(struct place *place)
{
    wharf_close(place->wharf);
    test_gpu_memory_free(&place->device);
    test_wharfd_finish(&wharfd);
}

/* Sources are in the first half of a memory, outputs in the second one. */
static uint8_t *memory_of(const struct place *place, bool is_device)
{
    return is_device ? place->device.at : place->host;
}

static size_t pack(unsigned codec, const uint8_t *raw, size_t nbytes, uint8_t *to, size_t avail)
{
    z_stream stream = {0};

    /* The least memory, so that blocks are short. */
    cr_assert_eq(deflateInit2(&stream, 6, Z_DEFLATED, window_bits[codec], 1, Z_DEFAULT_STRATEGY),
                 Z_OK);
    stream.next_in = (Bytef *)(uintptr_t)raw;
    stream.avail_in = (uInt)nbytes;
    stream.next_out = to;
    stream.avail_out = (uInt)avail;
    cr_assert_eq(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return stream.total_out;
}

/* Decodes by the daemon and here, and compares.  Returns the outcome. */
static struct wharf_outcome expect_same(const struct place *place, unsigned codec, uint32_t flags,
                                        const uint8_t *in, size_t in_nbytes, size_t out_avail,
                                        unsigned number)
{
    uint8_t *source = memory_of(place, number & 1) + number % 7;
    uint8_t *out = memory_of(place, number >> 1 & 1) + MiB + number % 5;
    uint8_t *want_out = malloc(out_avail);
    struct wharf_outcome want, got;
    struct wharf_decode_job here = {
        .codec = codecs[codec],
        .flags = flags & ~(uint32_t)WHARF_JOB_CHECKSUM,
        .in = in,
        .in_nbytes = in_nbytes,
        .out = want_out,
        .out_avail = out_avail,
    };
    struct wharf_job job = WHARF_JOB_INIT;

    cr_assert(want_out);
    wharf_decode_job_run(&here, 0, &want);
    if (flags & WHARF_JOB_CHECKSUM) {
        /* Every other one is right. */
        here.checksum = (uint32_t)crc32(0, want_out, (uInt)want.out_nbytes) + number % 2;
        here.flags = flags;
        wharf_decode_job_run(&here, 0, &want);
    }
    memcpy(source, in, in_nbytes);
    memset(out - 1, 0xa5, out_avail + 2);
    job.codec = codecs[codec];
    job.flags = flags;
    job.checksum = here.checksum;
    job.in = source;
    job.in_nbytes = in_nbytes;
    job.out = out;
    job.out_avail = out_avail;
    cr_assert_eq(wharf_decompress(place->wharf, &job, &got), 0, "%s", wharf_error_message());
    cr_assert(test_outcome_same(&want, &got), "codec %u, number %u: %s, not %s", codecs[codec],
              number, test_outcome_text(&got).text, test_outcome_text(&want).text);
    if (want.result == WHARF_OK)
        cr_assert_eq(memcmp(want_out, out, want.out_nbytes), 0, "number %u: other bytes", number);
    cr_assert_eq(out[-1], 0xa5);
    cr_assert_eq(out[out_avail], 0xa5);
    free(want_out);
    return want;
}

static uint8_t *new_text(void)
{
    return test_data_new(test_data_find("text"), 1, NBYTES);
}

Test(wharfd_gpu_streams, sources_and_outputs_are_in_host_and_gpu_memory, .timeout = 600)
{
    uint8_t *raw = new_text(), packed[NBYTES];

    start();
    struct place place = new_place();
    for (unsigned i = 0; i < 4 * N_CODECS; i++) {
        unsigned codec = i / 4;
        size_t n = pack(codec, raw, NBYTES, packed, sizeof(packed));
        struct wharf_outcome outcome = expect_same(
            &place, codec, WHARF_JOB_EXACT_INPUT | WHARF_JOB_EXACT_OUTPUT, packed, n, NBYTES, i);
        cr_expect_eq(outcome.result, WHARF_OK);
    }
    cr_expect_eq(metric("wharf_gpu_streams_total"), 4 * N_CODECS);
    cr_expect_eq(metric("wharf_gpu_large_chunks_total"), 4 * N_CODECS);
    free_place(&place);
    free(raw);
}

/* What is wrong, and where, and what the job wants besides. */
Test(wharfd_gpu_streams, outcomes_are_the_processors, .timeout = 600)
{
    static const uint32_t flags[] = {
        0,
        WHARF_JOB_EXACT_INPUT,
        WHARF_JOB_EXACT_OUTPUT,
        WHARF_JOB_CHECKSUM,
        WHARF_JOB_CHECKSUM | WHARF_JOB_EXACT_INPUT | WHARF_JOB_EXACT_OUTPUT,
    };
    uint8_t *raw = new_text(), packed[NBYTES];
    struct test_random random = {7};
    unsigned n_bad = 0;

    start();
    struct place place = new_place();
    for (unsigned i = 0; i < 100; i++) {
        size_t n = pack(i % N_CODECS, raw, NBYTES, packed, sizeof(packed));
        size_t in_nbytes = n + 3, out_avail = NBYTES + 9;
        memset(packed + n, 0, 3);
        if (i % 4 == 1)
            packed[test_random_below(&random, n)] ^= (uint8_t)(1 << test_random_below(&random, 8));
        else if (i % 4 == 2)
            in_nbytes = 4096 + test_random_below(&random, n - 4096);
        else if (i % 4 == 3)
            out_avail = test_random_below(&random, NBYTES);
        struct wharf_outcome outcome =
            expect_same(&place, i % N_CODECS, flags[i / 4 % 5], packed, in_nbytes, out_avail, i);
        n_bad += outcome.result != WHARF_OK;
    }
    cr_expect_gt(n_bad, 50);
    cr_expect_eq(metric("wharf_gpu_streams_total"), 100);
    free_place(&place);
    free(raw);
}

/* Right and wrong ones, of outputs that all warps have pieces of, and of short ones. */
Test(wharfd_gpu_streams, checksums_of_outputs_are_compared, .timeout = 600)
{
    uint8_t *raw = new_text(), packed[NBYTES];
    unsigned n_bad = 0;

    start();
    struct place place = new_place();
    for (unsigned i = 0; i < 24; i++) {
        unsigned codec = i / 2 % N_CODECS;
        size_t nbytes = NBYTES - 5167 * i / 9;
        size_t n = pack(codec, raw + i, nbytes, packed, sizeof(packed));
        struct wharf_outcome outcome =
            expect_same(&place, codec, WHARF_JOB_CHECKSUM, packed, n, nbytes, i);
        cr_expect_eq(outcome.result, i % 2 ? WHARF_BAD_CHECKSUM : WHARF_OK);
        cr_expect(i % 2 == 0 || outcome.reason == WHARF_REASON_JOB_CHECKSUM);
        n_bad += outcome.result != WHARF_OK;
    }
    cr_expect_eq(n_bad, 12);
    cr_expect_eq(metric("wharf_gpu_streams_total"), 24);
    free_place(&place);
    free(raw);
}

/* By the GPU's own code without a destination, as with one, in a session that wants no other
 * engine; and what cannot be decoded so is refused. */
Test(wharfd_gpu_streams, outputs_are_discarded, .timeout = 600)
{
    uint8_t *raw = new_text(), packed[NBYTES];
    struct wharf_completion completion;

    start();
    struct place place = new_place();
    for (unsigned i = 0; i < 20; i++) {
        unsigned codec = i % N_CODECS;
        size_t n = pack(codec, raw, NBYTES, packed, sizeof(packed));
        struct wharf_outcome want;
        struct wharf_job job = WHARF_JOB_INIT;
        if (i % 4 == 1)
            packed[n / 2 + i] ^= 4;
        const struct wharf_decode_job here = {
            .codec = codecs[codec],
            .flags = i % 4 == 2 ? WHARF_JOB_CHECKSUM : 0,
            .checksum = (uint32_t)crc32(0, raw, NBYTES) + i % 8 / 4,
            .in = packed,
            .in_nbytes = n,
            .out = memory_of(&place, true),
            .out_avail = NBYTES - (i % 4 == 3),
        };
        wharf_decode_job_run(&here, 0, &want);
        memcpy(place.host, packed, n);
        job.codec = here.codec;
        job.flags = here.flags | WHARF_JOB_DISCARD;
        job.checksum = here.checksum;
        job.in = place.host;
        job.in_nbytes = n;
        job.out_avail = here.out_avail;
        cr_assert_eq(wharf_submit(place.wharf, &job, 1), 1, "%s", wharf_error_message());
        cr_assert_eq(wharf_wait(place.wharf, &completion, 1, 1, -1), 1);
        struct wharf_outcome got = {completion.result, completion.reason, completion.bit_offset,
                                    completion.in_nbytes, completion.out_nbytes};
        cr_expect(test_outcome_same(&want, &got), "%u: %s, not %s", i, test_outcome_text(&got).text,
                  test_outcome_text(&want).text);
        cr_expect_eq(memcmp(place.host, packed, n), 0);
        cr_expect_eq(completion.engine, WHARF_ENGINE_SIMT);
        /* Too short for the whole GPU, and another codec. */
        job.codec = i % 2 ? here.codec : WHARF_CODEC_LZ4;
        job.in_nbytes = i % 2 ? 4000 : n;
        cr_assert_eq(wharf_submit(place.wharf, &job, 1), 1, "%s", wharf_error_message());
        cr_assert_eq(wharf_wait(place.wharf, &completion, 1, 1, -1), 1);
        cr_expect(completion.result == WHARF_BAD_REQUEST &&
                      completion.reason == WHARF_REASON_GPU_CODEC,
                  "%u, %u", completion.result, completion.reason);
        cr_expect_eq(memcmp(place.host, packed, n), 0);
    }
    cr_expect_eq(metric("wharf_gpu_streams_total"), 20);
    free_place(&place);
    free(raw);
}

Test(wharfd_gpu_streams, short_ones_are_a_warps, .timeout = 600)
{
    uint8_t *raw = new_text(), packed[NBYTES];

    start();
    struct place place = new_place();
    size_t n = pack(1, raw, 6000, packed, sizeof(packed));
    cr_assert_lt(n, 4096);
    expect_same(&place, 1, 0, packed, n, 6000, 0);
    cr_expect_eq(metric("wharf_gpu_streams_total"), 0);
    cr_expect_eq(metric("wharf_gpu_large_chunks_total"), 1);
    free_place(&place);
    free(raw);
}

/* ---- clients that write to a source, or cancel ---------------------------------------------- */

struct changer {
    uint64_t seed;
    uint8_t *source;
    size_t nbytes;
    bool is_over;
};

/* Half of the time some byte is another. */
static void *change(void *data)
{
    struct changer *changer = data;
    struct test_random random = {changer->seed};

    while (!__atomic_load_n(&changer->is_over, __ATOMIC_RELAXED)) {
        size_t at = test_random_below(&random, changer->nbytes);
        uint8_t byte = __atomic_load_n(&changer->source[at], __ATOMIC_RELAXED);
        __atomic_store_n(&changer->source[at], (uint8_t)(byte ^ 1u << (at % 8)), __ATOMIC_RELAXED);
        usleep(50);
        __atomic_store_n(&changer->source[at], byte, __ATOMIC_RELAXED);
        usleep(50);
    }
    return NULL;
}

/* Each pass reads the same bytes, so that what comes out has the checksum of its trailer or is an
 * error; and nothing is written elsewhere. */
Test(wharfd_gpu_streams, sources_may_change_meanwhile, .timeout = 600)
{
    uint8_t *raw = new_text(), packed[NBYTES];
    struct wharf_outcome outcome;
    unsigned n_bad = 0;

    start();
    struct place place = new_place();
    size_t n = pack(2, raw, NBYTES, packed, sizeof(packed));
    for (unsigned i = 0; i < 40; i++) {
        struct wharf_job job = WHARF_JOB_INIT;
        struct changer changer = {.seed = i, .source = memory_of(&place, i & 1), .nbytes = n};
        uint8_t *out = memory_of(&place, i >> 1 & 1) + MiB;
        pthread_t thread;
        memcpy(changer.source, packed, n);
        memset(out - 1, 0xa5, NBYTES + 2);
        job.codec = WHARF_CODEC_GZIP;
        job.in = changer.source;
        job.in_nbytes = n;
        job.out = out;
        job.out_avail = NBYTES;
        cr_assert_eq(pthread_create(&thread, NULL, change, &changer), 0);
        cr_assert_eq(wharf_decompress(place.wharf, &job, &outcome), 0, "%s", wharf_error_message());
        __atomic_store_n(&changer.is_over, true, __ATOMIC_RELAXED);
        cr_assert_eq(pthread_join(thread, NULL), 0);
        cr_expect(outcome.result <= WHARF_BAD_CHECKSUM, "result %u", outcome.result);
        if (outcome.result == WHARF_OK)
            cr_expect_eq(crc32(0, out, (uInt)outcome.out_nbytes), crc32(0, raw, NBYTES));
        n_bad += outcome.result != WHARF_OK;
        cr_assert_eq(out[-1], 0xa5);
        cr_assert_eq(out[NBYTES], 0xa5);
    }
    cr_expect_gt(n_bad, 0);
    cr_expect_lt(n_bad, 40);
    cr_expect_eq(metric("wharf_gpu_streams_total"), 40);
    cr_expect_eq(metric("wharf_gpu_workers_ended_total"), 0);
    free_place(&place);
    free(raw);
}

/* One that is decoded, and one that waits for it. */
Test(wharfd_gpu_streams, cancels_are_heard, .timeout = 600)
{
    enum { N = 1 << 20 };
    uint8_t *raw = test_data_new(test_data_find("text"), 3, N);
    struct wharf_completion completions[2] = {{0}};

    start();
    struct place place = new_place();
    size_t n = pack(0, raw, N, place.host, MiB);
    for (unsigned i = 0; i < 2; i++) {
        struct wharf_job job = WHARF_JOB_INIT;
        job.codec = WHARF_CODEC_DEFLATE;
        job.in = place.host;
        job.in_nbytes = n;
        job.out = place.device.at + i * MiB / 2;
        job.out_avail = MiB;
        job.user_data = i;
        cr_assert_eq(wharf_submit(place.wharf, &job, 1), 1, "%s", wharf_error_message());
    }
    cr_assert(TEST_WAIT(test_wharfd_metric(&wharfd, "wharf_placements_total", "gpu_memory") == 2));
    for (unsigned i = 0; i < 2; i++)
        cr_assert_eq(wharf_cancel(place.wharf, i), 1);
    cr_assert_eq(wharf_wait(place.wharf, completions, 2, 2, -1), 2);
    for (unsigned i = 0; i < 2; i++)
        cr_expect_eq(completions[i].result, WHARF_CANCELLED, "%u", completions[i].result);
    free_place(&place);
    free(raw);
}

/* ---- tenants -------------------------------------------------------------------------------- */

enum { MOST_JOBS = 12 };

/* A session with a stream, and room for the output of several jobs. */
struct tenant {
    struct wharf *wharf;
    uint8_t *memory;
    size_t nbytes;
};

static struct tenant new_tenant(const char *path, const uint8_t *raw)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct tenant tenant;
    void *memory;

    options.flags = WHARF_OPEN_DAEMON;
    options.engine = WHARF_ENGINE_SIMT;
    options.socket_path = path;
    options.arena_nbytes = 2 * MiB;
    cr_assert_eq(wharf_open(&options, &tenant.wharf), 0, "%s", wharf_error_message());
    cr_assert_eq(wharf_alloc(tenant.wharf, MiB + MOST_JOBS * NBYTES, &memory), 0);
    tenant.memory = memory;
    tenant.nbytes = pack(0, raw, NBYTES, memory, MiB);
    return tenant;
}

static void submit_streams(const struct tenant *tenant, unsigned n)
{
    struct wharf_job jobs[MOST_JOBS];

    for (unsigned i = 0; i < n; i++) {
        jobs[i] = (struct wharf_job)WHARF_JOB_INIT;
        jobs[i].codec = WHARF_CODEC_DEFLATE;
        jobs[i].in = tenant->memory;
        jobs[i].in_nbytes = tenant->nbytes;
        jobs[i].out = tenant->memory + MiB + i * NBYTES;
        jobs[i].out_avail = NBYTES;
    }
    cr_assert_eq(wharf_submit(tenant->wharf, jobs, n), (int)n, "%s", wharf_error_message());
}

static void await_streams(const struct tenant *tenant, unsigned n)
{
    struct wharf_completion completions[MOST_JOBS];

    cr_assert_eq(wharf_wait(tenant->wharf, completions, n, n, -1), (int)n);
    for (unsigned i = 0; i < n; i++)
        cr_expect_eq(completions[i].result, WHARF_OK);
}

/* A stream whose place is behind another one's does not pay for that. */
Test(wharfd_gpu_streams, streams_pay_for_their_own_time, .timeout = 600)
{
    uint8_t *raw = new_text();

    start();
    struct tenant tenant = new_tenant(wharfd.socket, raw);
    submit_streams(&tenant, 1);
    await_streams(&tenant, 1);
    double paid_s = metric("wharf_gpu_busy_seconds_total");
    uint64_t begun_ns = wharf_now_ns();
    submit_streams(&tenant, 6);
    await_streams(&tenant, 6);
    uint64_t took_ns = wharf_now_ns() - begun_ns;
    paid_s = metric("wharf_gpu_busy_seconds_total") - paid_s;
    cr_expect_gt(paid_s, 0);
    cr_expect_leq(paid_s, 1e-9 * (double)took_ns);
    wharf_close(tenant.wharf);
    test_wharfd_finish(&wharfd);
    free(raw);
}

/* However many streams of another tenant wait, one waits for those that have places and for one
 * more. */
Test(wharfd_gpu_streams, tenants_take_turns, .timeout = 600)
{
    enum { N_STORM = MOST_JOBS, N_PLACES = 2 };
    uint8_t *raw = new_text();
    struct wharf_completion completions[N_STORM];
    char path[128], more[512];

    setenv("WHARF_SIMT_STREAMS", "4096", 1);
    snprintf(path, sizeof(path), "/tmp/wharf-streams.%d", (int)getpid());
    snprintf(more, sizeof(more),
             "chunk = 4K\nhang_timeout = 10min\n[listen storm]\npath = %s\ntenant = socket\n",
             path);
    test_wharfd_start_gpu(&wharfd, "simt", more);
    struct tenant storm = new_tenant(path, raw), other = new_tenant(wharfd.socket, raw);
    submit_streams(&storm, N_STORM);
    /* They wait, and two of them have places. */
    cr_assert(TEST_WAIT(metric("wharf_gpu_streams_total") > 0));
    int n_before = wharf_poll(storm.wharf, completions, N_STORM);
    cr_assert_geq(n_before, 0);
    submit_streams(&other, 1);
    await_streams(&other, 1);
    int n_meanwhile = wharf_poll(storm.wharf, completions, N_STORM);
    cr_expect_geq(n_meanwhile, 0);
    cr_expect_leq(n_meanwhile, N_PLACES + 2, "%d streams of the other tenant", n_meanwhile);
    await_streams(&storm, N_STORM - (unsigned)(n_before + n_meanwhile));
    wharf_close(other.wharf);
    wharf_close(storm.wharf);
    test_wharfd_finish(&wharfd);
    free(raw);
}

/* ---- storms --------------------------------------------------------------------------------- */

/* Of all codecs, of which some are streams: damaged, cancelled and in batches. */
Test(wharfd_gpu_streams, a_storm_of_jobs_is_decoded_right, .timeout = 600)
{
    struct gpu_storm g;

    start();
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_SIMT, 0, 0);
    gpu_storm_run(&g, wharf, 1, 30000, 150, 24);
    cr_expect_gt(metric("wharf_gpu_streams_total"), 5);
    wharf_close(wharf);
    gpu_storm_free(&g);
    test_wharfd_finish(&wharfd);
}
