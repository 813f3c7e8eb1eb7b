/* SPDX-License-Identifier: Apache-2.0 */
/* The running daemon's control socket: every message, its refusals, quotas, drain and reload. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "encoders/codec.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_wharfd.h"

#define MiB ((uint64_t)1 << 20)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

static struct test_wharfd wharfd;

/* Both ways of waiting in turn, by the process number, so that all tests see both over time. */
static void start_by(const char *io, const char *more)
{
    char config[1024];

    snprintf(config, sizeof(config), "[daemon]\nio = %s\nlog_level = debug\n%s", io, more);
    test_wharfd_start(&wharfd, config);
}

static void finish(void)
{
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    test_wharfd_remove(&wharfd);
}

static struct test_client *connected(void)
{
    struct test_client *client = test_client_new();

    cr_assert_eq(test_client_connect(client, wharfd.socket), 0);
    return client;
}

static struct test_client *greeted(void)
{
    struct test_client *client = connected();

    int r = test_client_hello(client);
    cr_assert_eq(r, 0, "Hello: %s (%s)", strerror(-r), client->error);
    return client;
}

static void expect_end(struct test_client *client)
{
    cr_assert_eq(test_client_wait_for_end(client), 0);
    test_client_free(client);
}

/* ---- jobs, from end to end ----------------------------------------------------------------- */

static void check_job(const char *io)
{
    enum { N = 100000 };
    const struct wharf_encoder_ops *ops = wharf_codec_find(WHARF_CODEC_GZIP)->ops->encoder;
    uint8_t *plain = test_data_new(test_data_find("text"), 1, N);
    struct wharf_encoder *encoder;
    struct wharf_completion completion;
    size_t nbytes;

    start_by(io, "");
    struct test_client *client = test_client_start(wharfd.socket, 16, MiB);
    cr_assert_eq(ops->new (NULL, &encoder), 0);
    cr_assert_eq(ops->encode(encoder, plain, N, client->arena, N, &nbytes), 0);
    ops->free(encoder);
    struct wharf_submission s = {
        .opcode = WHARF_OP_DECODE,
        .codec = WHARF_CODEC_GZIP,
        .flags = WHARF_JOB_EXACT_INPUT | WHARF_JOB_EXACT_OUTPUT,
        .user_data = 77,
        .src_nbytes = nbytes,
        .dst_offset = 2 * N,
        .dst_nbytes = N,
    };
    for (unsigned i = 0; i < 50; i++) {
        cr_assert_eq(test_client_submit(client, &s), 0);
        cr_assert_eq(test_client_reap(client, &completion), 0);
        cr_assert_eq(completion.result, WHARF_OK);
        cr_assert_eq(completion.user_data, 77);
        cr_assert_arr_eq(client->arena + 2 * N, plain, N);
        if (i % 10 == 0)
            usleep(2000);
    }
    test_client_free(client);
    free(plain);
    finish();
}

Test(wharfd_control, jobs_run_by_io_uring)
{
    check_job("io_uring");
}

Test(wharfd_control, jobs_run_by_epoll)
{
    check_job("epoll");
}

Test(wharfd_control, reference_engine_runs_jobs_of_its_sessions)
{
    static const uint8_t stored[] = {0x01, 0x03, 0x00, 0xfc, 0xff, 'a', 'b', 'c'};
    Wharf__OpenQueueRequest open = WHARF__OPEN_QUEUE_REQUEST__INIT;
    struct wharf_completion completion;

    start_by("auto", "");
    struct test_client *client = greeted();
    cr_assert_eq(client->engines, 1u << WHARF_ENGINE_CPU | 1u << WHARF_ENGINE_REFERENCE);
    open.n_entries = 2;
    open.arena_nbytes = 4096;
    open.engine = WHARF_ENGINE_REFERENCE;
    cr_assert_eq(test_client_open(client, &open, -1), 0);
    memcpy(client->arena, stored, sizeof(stored));
    struct wharf_submission s = {
        .opcode = WHARF_OP_DECODE,
        .codec = WHARF_CODEC_DEFLATE,
        .src_nbytes = sizeof(stored),
        .dst_offset = 100,
        .dst_nbytes = 100,
    };
    cr_assert_eq(test_client_submit(client, &s), 0);
    cr_assert_eq(test_client_reap(client, &completion), 0);
    cr_assert_eq(completion.result, WHARF_OK);
    cr_assert_eq(completion.engine, WHARF_ENGINE_REFERENCE);
    cr_assert_arr_eq(client->arena + 100, "abc", 3);
    test_client_free(client);
    finish();
}

/* ---- the queue's memory -------------------------------------------------------------------- */

Test(wharfd_control, segments_are_sealed_as_promised)
{
    start_by("auto", "");
    struct test_client *client = test_client_start(wharfd.socket, 64, 10000);
    size_t ring_nbytes = wharf_ring_segment_nbytes(64);
    struct stat st;

    cr_assert_eq(client->n_entries, 64);
    cr_assert_eq(client->arena_nbytes, 12288);
    cr_assert_eq(fstat(client->arena_fd, &st), 0);
    cr_assert_eq(st.st_size, 12288);
    cr_assert_eq(fstat(client->d_fd, &st), 0);
    cr_assert_eq((size_t)st.st_size, ring_nbytes);
    int both = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    cr_assert_eq(fcntl(client->c_fd, F_GET_SEALS) & both, both);
    cr_assert_eq(fcntl(client->d_fd, F_GET_SEALS) & both, both);
    cr_assert_eq(fcntl(client->arena_fd, F_GET_SEALS) & both, both);
    cr_assert(fcntl(client->d_fd, F_GET_SEALS) & F_SEAL_FUTURE_WRITE);
    /* Nobody can write D, neither by a mapping nor otherwise; root neither. */
    cr_assert_eq(mmap(NULL, ring_nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, client->d_fd, 0),
                 MAP_FAILED);
    cr_assert_neq(mprotect((void *)client->d, ring_nbytes, PROT_READ | PROT_WRITE), 0);
    cr_assert_lt(pwrite(client->d_fd, "x", 1, 0), 0);
    cr_assert_lt(fallocate(client->d_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
    cr_assert_lt(ftruncate(client->c_fd, 0), 0);
    cr_assert_eq(client->d->magic, WHARF_RING_MAGIC);
    cr_assert_eq(client->d->layout, WHARF_RING_LAYOUT);
    cr_assert_eq(client->d->n_entries, 64);
    cr_assert_eq(client->d->arena_nbytes, 12288);
    cr_assert_eq(client->d->generation, client->generation);
    cr_assert_eq(client->d->flags, WHARF_RING_CPU_ONLY);
    test_client_free(client);
    finish();
}

/* Only when the client ends it: what it did not read yet is lost, and nothing stays charged. */
Test(wharfd_control, arena_is_emptied_when_the_client_ends_the_session)
{
    start_by("auto", "");
    struct test_client *client = test_client_start(wharfd.socket, 4, MiB);
    int fd = dup(client->arena_fd);
    struct stat st;

    memset(client->arena, 'x', MiB);
    cr_assert_eq(fstat(fd, &st), 0);
    cr_assert_geq(st.st_blocks, (blkcnt_t)(MiB / 512));
    test_client_free(client);
    for (unsigned i = 0; i < 1000 && st.st_blocks > 0; i++) {
        usleep(1000);
        cr_assert_eq(fstat(fd, &st), 0);
    }
    cr_assert_eq(st.st_blocks, 0);
    close(fd);
    finish();
}

Test(wharfd_control, arena_outlives_its_daemon_and_can_be_brought)
{
    Wharf__OpenQueueRequest open = WHARF__OPEN_QUEUE_REQUEST__INIT;
    struct wharf_completion completion;

    start_by("auto", "");
    struct test_client *client = test_client_start(wharfd.socket, 4, MiB);
    uint64_t generation = client->generation;
    memset(client->arena, 'x', MiB);
    int arena_fd = dup(client->arena_fd);
    test_wharfd_kill(&wharfd);
    cr_assert_eq(test_client_wait_for_end(client), 0);
    test_client_free(client);
    test_wharfd_restart(&wharfd);
    client = greeted();
    cr_assert_neq(client->generation, generation);
    open.n_entries = 4;
    open.arena_nbytes = MiB;
    open.bring_arena = true;
    cr_assert_eq(test_client_open(client, &open, arena_fd), 0);
    cr_assert_eq(client->arena_nbytes, MiB);
    struct wharf_submission s = {
        .opcode = WHARF_OP_DECODE,
        .codec = WHARF_CODEC_STORED,
        .src_nbytes = 1000,
        .dst_offset = 500000,
        .dst_nbytes = 1000,
    };
    memset(client->arena + 500000, 0, 1000);
    cr_assert_eq(test_client_submit(client, &s), 0);
    cr_assert_eq(test_client_reap(client, &completion), 0);
    cr_assert_eq(completion.result, WHARF_OK);
    cr_assert_eq(client->arena[500999], 'x');
    test_client_free(client);
    close(arena_fd);
    finish();
}

/* ---- refusals ------------------------------------------------------------------------------ */

static int hello_with(struct test_client *client, uint32_t version, uint32_t min_version,
                      uint64_t required, const char *name)
{
    Wharf__HelloRequest hello = WHARF__HELLO_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    const Wharf__Reply *reply;

    hello.version = version;
    hello.min_version = min_version;
    hello.required_features = required;
    hello.client_name = (char *)name;
    request.body_case = WHARF__REQUEST__BODY_HELLO;
    request.hello = &hello;
    return test_client_call(client, &request, NULL, 0, &reply);
}

static void expect_hello(int expected, uint32_t version, uint32_t min_version, uint64_t required,
                         const char *name)
{
    struct test_client *client = connected();

    cr_assert_eq(hello_with(client, version, min_version, required, name), expected);
    if (expected < 0)
        expect_end(client);
    else
        test_client_free(client);
}

Test(wharfd_control, hello_is_refused_for_good_reasons_alone)
{
    char name[WHARF_CONTROL_MAX_NAME_NBYTES + 2];

    memset(name, 'n', sizeof(name));
    name[WHARF_CONTROL_MAX_NAME_NBYTES + 1] = 0;
    start_by("auto", "");
    expect_hello(0, 1, 1, 0, "");
    expect_hello(0, 7, 1, 0, "a newer client");
    expect_hello(-EPROTONOSUPPORT, 7, 2, 0, "");
    expect_hello(-EPROTONOSUPPORT, 0, 0, 0, "");
    expect_hello(-EINVAL, 1, 2, 0, "");
    expect_hello(-EOPNOTSUPP, 1, 1, 1, "");
    expect_hello(-EINVAL, 1, 1, 0, name);
    expect_hello(0, 1, 1, 0, name + 1);
    struct test_client *client = greeted();
    cr_assert_eq(hello_with(client, 1, 1, 0, "again"), -EPROTO);
    expect_end(client);
    client = connected();
    cr_assert_eq(test_client_ping(client), -EPROTO);
    expect_end(client);
    finish();
}

static int open_with(struct test_client *client, uint32_t n_entries, uint64_t arena_nbytes,
                     uint32_t class, uint32_t engine)
{
    Wharf__OpenQueueRequest open = WHARF__OPEN_QUEUE_REQUEST__INIT;

    open.n_entries = n_entries;
    open.arena_nbytes = arena_nbytes;
    open.default_class = class;
    open.engine = engine;
    return test_client_open(client, &open, -1);
}

Test(wharfd_control, queues_are_refused_for_good_reasons_alone)
{
    start_by("auto", "[quota]\nmax_entries = 64\nmax_arena = 1M\n");
    struct test_client *client = greeted();

    cr_assert_eq(client->limits.max_entries, 64);
    cr_assert_eq(client->limits.max_arena_nbytes, MiB);
    cr_assert_eq(open_with(client, 0, 0, 0, 0), -EINVAL);
    cr_assert_eq(open_with(client, 3, 0, 0, 0), -EINVAL);
    cr_assert_eq(open_with(client, 65536, 0, 0, 0), -EINVAL);
    cr_assert_eq(open_with(client, 128, 0, 0, 0), -EDQUOT);
    cr_assert_eq(open_with(client, 4, MiB + 1, 0, 0), -EDQUOT);
    cr_assert_eq(open_with(client, 4, UINT64_MAX, 0, 0), -EDQUOT);
    cr_assert_eq(open_with(client, 4, 0, 4, 0), -EINVAL);
    cr_assert_eq(open_with(client, 4, 0, 0, 99), -EINVAL);
    cr_assert_eq(open_with(client, 4, 0, 0, WHARF_ENGINE_GPU), -EOPNOTSUPP);
    cr_assert_eq(open_with(client, 4, 0, 0, WHARF_ENGINE_SIMT), -EOPNOTSUPP);
    cr_assert_eq(open_with(client, 64, 0, WHARF_CLASS_BACKGROUND, WHARF_ENGINE_CPU), 0);
    cr_assert_eq(open_with(client, 4, 0, 0, 0), -EBUSY);
    cr_assert_eq(test_client_ping(client), 0, "refusals leave the connection as it was");
    test_client_free(client);
    finish();
}

Test(wharfd_control, memory_is_refused_for_good_reasons_alone)
{
    start_by("auto", "[quota]\nmax_regions = 2\nmax_memory = 16M\n");
    struct test_client *client = greeted();
    int good = test_memfd(MiB, SEALS);
    int unsealed = test_memfd(MiB, F_SEAL_GROW);
    int read_only = test_memfd(MiB, SEALS | F_SEAL_WRITE);

    cr_assert_eq(test_client_register(client, 1, good, MiB, false), -EINVAL, "no queue yet");
    cr_assert_eq(open_with(client, 4, 4096, 0, 0), 0);
    cr_assert_eq(test_client_register(client, 0, good, MiB, false), -EINVAL);
    cr_assert_eq(test_client_register(client, 65536, good, MiB, false), -EINVAL);
    cr_assert_eq(test_client_register(client, 1, good, 0, false), -EINVAL);
    cr_assert_eq(test_client_register(client, 1, good, MiB + 1, false), -EINVAL);
    cr_assert_eq(test_client_register(client, 1, unsealed, MiB, false), -EPERM);
    cr_assert_eq(test_client_register(client, 1, read_only, MiB, false), -EPERM);
    cr_assert_eq(test_client_register(client, 65535, read_only, MiB, true), 0);
    cr_assert_eq(test_client_register(client, 65535, good, MiB, false), -EEXIST);
    cr_assert_eq(test_client_register(client, 1, good, 4097, false), 0);
    cr_assert_eq(test_client_register(client, 2, good, 1, false), -EDQUOT);
    cr_assert_eq(test_client_unregister(client, 1), 0);
    cr_assert_eq(test_client_unregister(client, 1), -ENOENT);
    cr_assert_eq(test_client_unregister(client, 0), -EINVAL);
    int large = test_memfd(17 * MiB, SEALS);
    cr_assert_eq(test_client_register(client, 1, large, 17 * MiB, false), -EDQUOT);
    /* What was given back can be used again, once it is unmapped. */
    for (unsigned i = 0; i < 100; i++) {
        int r = -EDQUOT;
        for (unsigned n = 0; n < 1000 && r == -EDQUOT; n++) {
            r = test_client_register(client, 7, large, 14 * MiB, false);
            if (r == -EDQUOT)
                usleep(1000);
        }
        cr_assert_eq(r, 0, "%d: %s", r, client->error);
        cr_assert_eq(test_client_unregister(client, 7), 0);
    }
    test_client_free(client);
    close(good);
    close(unsealed);
    close(read_only);
    close(large);
    finish();
}

Test(wharfd_control, region_in_use_is_busy)
{
    start_by("auto", "[cpu]\nworkers = 1\n");
    struct test_client *client = test_client_start(wharfd.socket, 64, 128 * MiB);
    int fd = test_memfd(4096, SEALS);
    struct wharf_completion completion;
    unsigned n_busy = 0;

    cr_assert_eq(test_client_register(client, 9, fd, 4096, false), 0);
    for (unsigned i = 0; i < 8; i++) {
        /* Long ones, then one that names the region. */
        struct wharf_submission s = {
            .opcode = WHARF_OP_DECODE,
            .codec = WHARF_CODEC_STORED,
            .src_nbytes = i < 7 ? 64 * MiB : 1,
            .dst_offset = 64 * MiB,
            .dst_nbytes = 64 * MiB,
        };
        if (i == 7)
            s = (struct wharf_submission){.opcode = WHARF_OP_DECODE,
                                          .codec = WHARF_CODEC_STORED,
                                          .src_nbytes = 10,
                                          .dst_region = 9,
                                          .dst_nbytes = 10};
        wharf_ring_submit(&client->ring, &s);
    }
    cr_assert_eq(test_client_publish(client), 0);
    while (test_client_unregister(client, 9) == -EBUSY) {
        n_busy++;
        usleep(1000);
    }
    cr_assert_gt(n_busy, 0);
    for (unsigned i = 0; i < 8; i++)
        cr_assert_eq(test_client_reap(client, &completion), 0);
    test_client_free(client);
    close(fd);
    finish();
}

/* ---- quotas -------------------------------------------------------------------------------- */

Test(wharfd_control, connections_have_a_quota)
{
    start_by("auto", "[quota]\nmax_connections = 3\n");
    struct test_client *clients[3];

    /* The one that waited for the daemon to serve may not be forgotten yet. */
    usleep(50000);
    for (unsigned i = 0; i < 3; i++)
        clients[i] = greeted();
    struct test_client *fourth = connected();
    int r = test_client_hello(fourth);
    cr_assert(r == -EDQUOT || r == -EPIPE, "%d", r);
    expect_end(fourth);
    test_client_free(clients[0]);
    usleep(50000);
    clients[0] = greeted();
    for (unsigned i = 0; i < 3; i++)
        test_client_free(clients[i]);
    finish();
}

/* The tenant's sessions share jobs and memory; ends give them back. */
Test(wharfd_control, sessions_share_quotas_and_give_them_back)
{
    start_by("auto", "[quota]\nmax_jobs = 128\nmax_memory = 8M\n");

    for (unsigned round = 0; round < 20; round++) {
        struct test_client *first = greeted(), *second = greeted();
        int r = -EDQUOT;
        for (unsigned i = 0; i < 1000 && r == -EDQUOT; i++) {
            r = open_with(first, 64, 4 * MiB, 0, 0);
            if (r == -EDQUOT)
                usleep(1000);
        }
        cr_assert_eq(r, 0);
        cr_assert_eq(open_with(second, 128, 0, 0, 0), -EDQUOT);
        cr_assert_eq(open_with(second, 64, 4 * MiB, 0, 0), -EDQUOT);
        cr_assert_eq(open_with(second, 64, 3 * MiB, 0, 0), 0);
        test_client_free(first);
        test_client_free(second);
    }
    finish();
}

Test(wharfd_control, tenant_of_a_socket_has_its_own_quota)
{
    char config[256];

    start_by("auto", "");
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    snprintf(
        config, sizeof(config),
        "[listen pods]\npath = %s/pods\ntenant = socket\n[tenant socket:pods]\nmax_entries = 2\n",
        wharfd.folder);
    FILE *file = fopen(wharfd.config, "we");
    fputs(config, file);
    fclose(file);
    test_wharfd_restart(&wharfd);
    struct test_client *client = greeted();
    cr_assert_gt(client->limits.max_entries, 2);
    test_client_free(client);
    strcpy(wharfd.socket + strlen(wharfd.folder), "/pods");
    client = greeted();
    cr_assert_eq(client->limits.max_entries, 2);
    cr_assert_eq(test_client_metric(client, "wharf_connections", "", "socket:pods"), 1);
    test_client_free(client);
    finish();
}

/* ---- statistics ---------------------------------------------------------------------------- */

Test(wharfd_control, statistics_count_what_was_done)
{
    start_by("auto", "");
    struct test_client *client = test_client_start(wharfd.socket, 64, MiB);
    struct wharf_completion completion;

    for (unsigned i = 0; i < 30; i++) {
        struct wharf_submission s = {
            .opcode = WHARF_OP_DECODE,
            .codec = i < 20 ? WHARF_CODEC_STORED : WHARF_CODEC_GZIP,
            .src_nbytes = 1000,
            .dst_offset = 5000,
            .dst_nbytes = 1000,
        };
        cr_assert_eq(test_client_submit(client, &s), 0);
        cr_assert_eq(test_client_reap(client, &completion), 0);
    }
    struct wharf_submission bad = {.opcode = 200};
    cr_assert_eq(test_client_submit(client, &bad), 0);
    cr_assert_eq(test_client_reap(client, &completion), 0);
    cr_assert_eq(test_client_metric(client, "wharf_jobs_total", "", "ok"), 20);
    cr_assert_eq(test_client_metric(client, "wharf_jobs_total", "", "bad_data"), 10);
    cr_assert_eq(test_client_metric(client, "wharf_jobs_total", "", "bad_request"), 1);
    cr_assert_eq(test_client_metric(client, "wharf_chunks_total", "", "cpu"), 30);
    cr_assert_eq(test_client_metric(client, "wharf_output_bytes_total", "", "cpu"), 20000);
    cr_assert_eq(test_client_metric(client, "wharf_job_run_seconds", "_count", "cpu"), 30);
    cr_assert_eq(test_client_metric(client, "wharf_job_run_seconds", "_bucket", "+Inf"), 30);
    cr_assert_gt(test_client_metric(client, "wharf_job_run_seconds", "_sum", "cpu"), 0);
    cr_assert_eq(test_client_metric(client, "wharf_sessions_total", "", NULL), 1);
    cr_assert_eq(test_client_metric(client, "wharf_connections", "", NULL), 1);
    cr_assert_gt(test_client_metric(client, "wharf_memory_bytes", "", NULL), (double)MiB);
    cr_assert_gt(test_client_metric(client, "wharf_uptime_seconds", "", NULL), 0);
    cr_assert_eq(test_client_metric(client, "wharf_info", "", WHARF_VERSION), 1);
    cr_assert_eq(test_client_metric(client, "no_such_metric", "", NULL), -1);
    test_client_free(client);
    finish();
}

/* Every page is a good message, they end, and no group of samples comes twice. */
Test(wharfd_control, pages_of_statistics_end)
{
    Wharf__StatsRequest stats = WHARF__STATS_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    const Wharf__Reply *reply;
    unsigned n_pages = 0, n_buckets = 0;
    struct wharf_completion completion;

    start_by("auto", "");
    struct test_client *client = test_client_start(wharfd.socket, 64, MiB);
    struct wharf_submission s = {
        .opcode = WHARF_OP_DECODE, .codec = WHARF_CODEC_STORED, .src_nbytes = 1, .dst_offset = 1};
    s.dst_nbytes = 1;
    cr_assert_eq(test_client_submit(client, &s), 0);
    cr_assert_eq(test_client_reap(client, &completion), 0);
    request.body_case = WHARF__REQUEST__BODY_STATS;
    request.stats = &stats;
    do {
        cr_assert_eq(test_client_call(client, &request, NULL, 0, &reply), 0);
        for (size_t i = 0; i < reply->stats->n_families; i++)
            for (size_t k = 0; k < reply->stats->families[i]->n_samples; k++)
                n_buckets += strcmp(reply->stats->families[i]->samples[k]->suffix, "_bucket") == 0;
        stats.first = reply->stats->next;
    } while (stats.first && ++n_pages < 100);
    cr_assert_eq(stats.first, 0);
    cr_assert_geq(n_pages, 1);
    cr_assert_eq(n_buckets, 2 * 27);
    stats.first = UINT64_MAX;
    cr_assert_eq(test_client_call(client, &request, NULL, 0, &reply), -EINVAL);
    stats.first = 0xff;
    cr_assert_eq(test_client_call(client, &request, NULL, 0, &reply), -EINVAL);
    test_client_free(client);
    finish();
}

/* ---- drain, stop, reload ------------------------------------------------------------------- */

static void submit_long(struct test_client *client, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct wharf_submission s = {
            .opcode = WHARF_OP_DECODE,
            .codec = WHARF_CODEC_STORED,
            .src_nbytes = 64 * MiB,
            .dst_offset = 64 * MiB,
            .dst_nbytes = 64 * MiB,
            .user_data = i,
        };
        wharf_ring_submit(&client->ring, &s);
    }
    cr_assert_eq(test_client_publish(client), 0);
}

/* What was taken is completed, what was not is not, and the sum is what was submitted. */
static void check_drained(struct test_client *client, unsigned n_submitted)
{
    struct wharf_completion completion;
    uint32_t n_taken;
    unsigned n = 0;

    cr_assert_eq(test_client_wait_for_end(client), 0);
    n_taken = wharf_ring_load_sq_head(&client->d->sq_head);
    cr_assert_leq(n_taken, n_submitted);
    while (wharf_ring_reap(&client->ring, &completion) == 1) {
        cr_assert_eq(completion.result, WHARF_OK);
        n++;
    }
    cr_assert_eq(n, n_taken);
    cr_assert(wharf_ring_load_flags(&client->d->flags) & WHARF_RING_DRAINING);
}

static void check_stop(bool by_request)
{
    start_by("auto", "[daemon]\ndrain_timeout = 60s\n");
    struct test_client *client = test_client_start(wharfd.socket, 64, 128 * MiB);
    struct test_client *idle = greeted();
    int arena_fd = dup(client->arena_fd);
    struct stat st;

    client->arena[0] = 'x';
    submit_long(client, 6);
    usleep(20000);
    if (by_request)
        cr_assert_eq(test_client_drain(idle), 0);
    else
        kill(wharfd.pid, SIGTERM);
    cr_assert_eq(test_client_wait_for_end(idle), 0);
    check_drained(client, 6);
    cr_assert_eq(client->arena[64 * MiB], 'x', "its arena is left to the client");
    cr_assert_eq(fstat(arena_fd, &st), 0);
    cr_assert_gt(st.st_blocks, 0);
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    cr_assert_neq(access(wharfd.socket, F_OK), 0);
    test_client_free(client);
    test_client_free(idle);
    close(arena_fd);
    test_wharfd_remove(&wharfd);
}

Test(wharfd_control, sigterm_finishes_jobs)
{
    check_stop(false);
}

Test(wharfd_control, drain_request_finishes_jobs)
{
    check_stop(true);
}

Test(wharfd_control, drain_ends_after_its_timeout)
{
    start_by("auto", "[daemon]\ndrain_timeout = 1ms\n[cpu]\nworkers = 1\n");
    struct test_client *client = test_client_start(wharfd.socket, 64, 128 * MiB);

    submit_long(client, 60);
    usleep(20000);
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    cr_assert_eq(test_client_wait_for_end(client), 0);
    cr_assert(test_wharfd_says(&wharfd, "jobs are left undone"));
    test_client_free(client);
    test_wharfd_remove(&wharfd);
}

Test(wharfd_control, second_signal_ends_at_once)
{
    start_by("auto", "[daemon]\ndrain_timeout = 1min\n[cpu]\nworkers = 1\n");
    struct test_client *client = test_client_start(wharfd.socket, 64, 128 * MiB);

    submit_long(client, 60);
    usleep(20000);
    kill(wharfd.pid, SIGINT);
    cr_assert(test_wharfd_says(&wharfd, "finishing jobs"));
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    test_client_free(client);
    test_wharfd_remove(&wharfd);
}

Test(wharfd_control, only_root_and_its_own_user_may_drain)
{
    if (geteuid() != 0)
        cr_skip_test("needs another user's process: run as root");
    start_by("auto", "[daemon]\nsocket_mode = 0666\n");
    cr_assert_eq(chmod(wharfd.folder, 0755), 0);
    cr_assert_eq(chmod(wharfd.socket, 0666), 0);
    struct test_client *mine = greeted();
    cr_assert_eq(seteuid(65534), 0);
    struct test_client *client = greeted();
    cr_assert_eq(test_client_drain(client), -EPERM);
    /* Nor may it see others' numbers. */
    cr_assert_eq(test_client_metric(client, "wharf_connections", "", "uid:65534"), 1);
    cr_assert_eq(test_client_metric(client, "wharf_connections", "", "uid:0"), -1);
    cr_assert_eq(seteuid(0), 0);
    cr_assert_eq(test_client_metric(mine, "wharf_connections", "", "uid:65534"), 1);
    test_client_free(client);
    test_client_free(mine);
    finish();
}

static void write_config(const char *text)
{
    FILE *file = fopen(wharfd.config, "we");

    fputs(text, file);
    fclose(file);
    kill(wharfd.pid, SIGHUP);
}

Test(wharfd_control, reload_takes_over_or_keeps)
{
    start_by("auto", "[quota]\nmax_entries = 64\n");
    struct test_client *client = greeted();

    write_config("[quota]\nmax_entries = 16\n[cpu]\nworkers = 9\n");
    cr_assert(test_wharfd_says(&wharfd, "read the configuration again"));
    cr_assert(test_wharfd_says(&wharfd, "[cpu] workers takes effect when the daemon starts anew"));
    cr_assert_eq(open_with(client, 64, 0, 0, 0), -EDQUOT);
    write_config("[quota]\nmax_entries = sixteen\n");
    cr_assert(test_wharfd_says(&wharfd, "line 2: max_entries = sixteen: not a number"));
    cr_assert_eq(open_with(client, 16, 0, 0, 0), 0);
    test_client_free(client);
    finish();
}

/* ---- several daemons ----------------------------------------------------------------------- */

Test(wharfd_control, second_daemon_on_the_same_socket_is_refused)
{
    start_by("auto", "");
    struct test_wharfd second = wharfd;

    snprintf(second.log, sizeof(second.log), "%s/log2", wharfd.folder);
    test_wharfd_spawn(&second);
    cr_assert_eq(test_wharfd_wait(&second), 1);
    cr_assert(test_wharfd_says(&second, "is served by another daemon"));
    struct test_client *client = greeted();
    test_client_free(client);
    finish();
}

/* Something of an earlier daemon lives on: nobody is answered before it is gone. */
Test(wharfd_control, hello_is_not_answered_while_an_earlier_daemon_lives)
{
    char path[128];

    start_by("auto", "[daemon]\nhello_timeout = 100ms\n");
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    snprintf(path, sizeof(path), "%s.lock", wharfd.socket);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    cr_assert_eq(flock(fd, LOCK_EX), 0);
    test_wharfd_restart(&wharfd);
    struct test_client *client = connected();
    Wharf__HelloRequest hello = WHARF__HELLO_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    const Wharf__Reply *reply;
    hello.version = hello.min_version = 1;
    request.body_case = WHARF__REQUEST__BODY_HELLO;
    request.hello = &hello;
    cr_assert_eq(test_client_send(client, &request, NULL, 0), 0);
    usleep(300000);
    char byte;
    cr_assert_lt(recv(client->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK), 0);
    cr_assert_eq(errno, EAGAIN);
    close(fd);
    cr_assert_eq(test_client_receive(client, &reply), 0);
    cr_assert_eq(reply->body_case, WHARF__REPLY__BODY_HELLO);
    test_client_free(client);
    finish();
}
