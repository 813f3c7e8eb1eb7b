/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources and outputs in GPU memory that clients made themselves.  The worker's engine is the GPU's
 * own code on the CPU, for which a memfd stands for such memory: all is as on a GPU but for the
 * descriptor.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_gpu_memory.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"
#include "tests/lib/test_worker.h"
#include "tests/unit/gpu_storm.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define MiB ((uint64_t)1 << 20)

static struct test_wharfd wharfd;

static void start(const char *more)
{
    test_wharfd_start_gpu(&wharfd, "simt", more);
}

static void finish(void)
{
    test_wharfd_finish(&wharfd);
}

static struct wharf *open_handle(uint32_t engine)
{
    return test_wharfd_open(&wharfd, engine, 0, 0);
}

static double metric(const char *name, const char *label)
{
    return test_wharfd_metric(&wharfd, name, label);
}

static void wait_for_metric(const char *name, double value)
{
    cr_assert(TEST_WAIT(metric(name, NULL) == value));
}

/* ---- what works ---------------------------------------------------------------------------- */

static void check_storm(uint32_t engine, uint64_t seed)
{
    struct gpu_storm g;

    start("");
    struct wharf *wharf = open_handle(engine);
    gpu_storm_run(&g, wharf, seed, 1000, 600, 32);
    cr_expect_gt(g.storm.n_bad, 10);
    cr_expect_gt(metric("wharf_placements_total", "gpu_memory"), 300);
    cr_expect_eq(metric("wharf_gpu_memory_bytes", NULL), (double)(g.out.nbytes + g.in.nbytes));
    cr_assert_eq(wharf_unregister(wharf, g.out.at), 0);
    cr_assert_eq(wharf_unregister(wharf, g.in.at), 0);
    wait_for_metric("wharf_gpu_memory_bytes", 0);
    wharf_close(wharf);
    gpu_storm_free(&g);
    finish();
}

/* Every codec, good and bad, chunks and batches, at any alignment; sources and outputs in GPU
 * memory and in the arena, in all four ways. */
Test(wharfd_gpu_memory, storm_in_gpu_memory_by_who_wants_the_gpu)
{
    check_storm(WHARF_ENGINE_SIMT, 1);
}

Test(wharfd_gpu_memory, storm_in_gpu_memory_by_who_wants_any_engine)
{
    check_storm(WHARF_ENGINE_AUTO, 2);
}

/* Who calls wharf_decompress need not know where memory is; but the processor never reads what is
 * the GPU's, nor writes there. */
Test(wharfd_gpu_memory, decompress_takes_gpu_memory_as_source_and_destination)
{
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_outcome outcome;
    uint8_t in[1000], out[1000];

    start("");
    struct wharf *wharf = open_handle(WHARF_ENGINE_AUTO);
    struct test_gpu_memory device = test_gpu_memory_new(NULL, 8192);
    cr_assert_eq(test_gpu_memory_register(wharf, &device), 0, "%s", wharf_error_message());
    memset(in, 7, sizeof(in));
    job.in = in;
    job.in_nbytes = job.out_avail = sizeof(in);
    job.out = device.at + 33;
    cr_assert_eq(wharf_decompress(wharf, &job, &outcome), 0, "%s", wharf_error_message());
    cr_assert_eq(outcome.result, WHARF_OK);
    cr_assert_arr_eq(device.at + 33, in, sizeof(in));
    cr_assert_eq(device.at[32], 0);
    cr_assert_eq(device.at[33 + sizeof(in)], 0);
    job.in = device.at + 33;
    job.out = out;
    cr_assert_eq(wharf_decompress(wharf, &job, &outcome), 0, "%s", wharf_error_message());
    cr_assert_eq(outcome.result, WHARF_OK);
    cr_assert_arr_eq(out, in, sizeof(in));
    job.out = device.at + 5000;
    cr_assert_eq(wharf_decompress(wharf, &job, &outcome), 0, "%s", wharf_error_message());
    cr_assert_eq(outcome.result, WHARF_OK);
    cr_assert_arr_eq(device.at + 5000, in, sizeof(in));
    job.in = in;
    /* From here on a copy would be a fault, as it is of the GPU's addresses. */
    cr_assert_eq(mprotect(device.at, device.nbytes, PROT_NONE), 0);
    job.out = device.at + device.nbytes - 10;
    cr_expect_eq(wharf_decompress(wharf, &job, &outcome), -EFAULT);
    cr_expect_eq(wharf_submit(wharf, &job, 1), -EFAULT);
    job.out = in;
    job.in = device.at + device.nbytes - 10;
    cr_expect_eq(wharf_decompress(wharf, &job, &outcome), -EFAULT);
    cr_expect_eq(wharf_submit(wharf, &job, 1), -EFAULT);
    job.in = device.at - 10;
    cr_expect_eq(wharf_decompress(wharf, &job, &outcome), -EFAULT);
    wharf_close(wharf);
    test_gpu_memory_free(&device);
    finish();
}

/* Of memory that is registered so the daemon only reads. */
Test(wharfd_gpu_memory, read_only_memory_is_for_sources, .timeout = 600)
{
    struct wharf_memory memory = WHARF_MEMORY_INIT;
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_outcome outcome;
    uint8_t out[100];

    start("");
    struct wharf *wharf = open_handle(WHARF_ENGINE_AUTO);
    struct test_gpu_memory device = test_gpu_memory_new(NULL, 4096);
    memset(device.at, 3, sizeof(out));
    memory.kind = WHARF_MEMORY_GPU;
    memory.flags = WHARF_MEMORY_READ_ONLY;
    memory.fd = device.fd;
    memory.address = device.at;
    memory.nbytes = device.nbytes;
    cr_assert_eq(wharf_register(wharf, &memory), 0, "%s", wharf_error_message());
    job.in = device.at;
    job.in_nbytes = job.out_avail = sizeof(out);
    job.out = out;
    cr_assert_eq(wharf_decompress(wharf, &job, &outcome), 0, "%s", wharf_error_message());
    cr_expect_eq(outcome.result, WHARF_OK);
    cr_expect_arr_eq(out, device.at, sizeof(out));
    job.out = device.at + 1000;
    cr_expect_eq(wharf_submit(wharf, &job, 1), -EFAULT);
    wharf_close(wharf);
    test_gpu_memory_free(&device);
    finish();
}

/* The library offers it again to the next daemon. */
Test(wharfd_gpu_memory, outlives_the_daemon, .timeout = 600)
{
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_completion completion;
    struct wharf_info info = {.struct_nbytes = sizeof(info)};
    void *in;

    start("");
    struct wharf *wharf = open_handle(WHARF_ENGINE_SIMT);
    struct test_gpu_memory device = test_gpu_memory_new(NULL, 4096);
    cr_assert_eq(test_gpu_memory_register(wharf, &device), 0, "%s", wharf_error_message());
    cr_assert_eq(wharf_alloc(wharf, 100, &in), 0);
    memset(in, 9, 100);
    job.in = in;
    job.in_nbytes = job.out_avail = 100;
    job.out = device.at;
    for (unsigned i = 0; i < 3; i++) {
        test_wharfd_kill(&wharfd);
        test_wharfd_spawn(&wharfd);
        device.at[0] = 0;
        cr_assert_eq(wharf_submit(wharf, &job, 1), 1, "%s", wharf_error_message());
        cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), 1, "%s", wharf_error_message());
        cr_assert_eq(completion.result, WHARF_OK);
        cr_assert_arr_eq(device.at, in, 100);
    }
    cr_assert_eq(wharf_get_info(wharf, &info), 0);
    cr_expect_eq(info.max_gpu_chunk_nbytes, 256 << 10);
    cr_expect_geq(info.n_reconnects, 3);
    wharf_close(wharf);
    test_gpu_memory_free(&device);
    finish();
}

/* ---- what is refused ----------------------------------------------------------------------- */

static void expect_refused(struct wharf *wharf, int fd, size_t nbytes, int error)
{
    cr_expect_eq(wharf_register_gpu(wharf, fd, (uintptr_t)16 << 30, nbytes), error,
                 "descriptor %d, %zu bytes: %s", fd, nbytes, wharf_error_message());
}

/* What the GPU cannot have is said when it is registered, and leaves nothing behind. */
Test(wharfd_gpu_memory, what_is_no_such_memory_is_refused)
{
    int ends[2];

    start("");
    struct wharf *wharf = open_handle(WHARF_ENGINE_AUTO);
    pid_t worker = test_worker_pid(wharfd.pid);
    int good = test_memfd(8192, SEALS), loose = test_memfd(8192, F_SEAL_SHRINK);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int path = open("/", O_PATH | O_CLOEXEC);
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    for (unsigned round = 0; round < 3; round++) {
        expect_refused(wharf, -1, 4096, -EBADF);
        expect_refused(wharf, null, 4096, -EBADF);
        expect_refused(wharf, path, 4096, -EBADF);
        expect_refused(wharf, ends[0], 4096, -EBADF);
        expect_refused(wharf, loose, 4096, -EPERM);
        expect_refused(wharf, good, 0, -EINVAL);
        expect_refused(wharf, good, 4095, -EINVAL);
        expect_refused(wharf, good, 12288, -EINVAL);
        expect_refused(wharf, good, (size_t)1 << 37, -EDQUOT);
        cr_expect_neq(strlen(wharf_error_message()), 0);
    }
    wait_for_metric("wharf_gpu_memory_bytes", 0);
    expect_refused(wharf, good, 8192, 0);
    cr_expect_eq(test_worker_pid(wharfd.pid), worker);
    wharf_close(wharf);
    finish();
}

Test(wharfd_gpu_memory, engine_cpu_and_daemons_without_a_gpu_have_none)
{
    int fd = test_memfd(4096, SEALS);

    start("");
    struct wharf *wharf = open_handle(WHARF_ENGINE_CPU);
    expect_refused(wharf, fd, 4096, -EOPNOTSUPP);
    wharf_close(wharf);
    finish();
    test_wharfd_start(&wharfd, "[gpu]\nengine = cpu\n");
    wharf = open_handle(WHARF_ENGINE_AUTO);
    expect_refused(wharf, fd, 4096, -EOPNOTSUPP);
    wharf_close(wharf);
    finish();
    struct wharf_options options = WHARF_OPTIONS_INIT;
    options.flags = WHARF_OPEN_EMBEDDED;
    cr_assert_eq(wharf_open(&options, &wharf), 0);
    expect_refused(wharf, fd, 4096, -EOPNOTSUPP);
    wharf_close(wharf);
    close(fd);
}

/* By bytes and by pieces, of all clients of a user together, until the worker has let go. */
Test(wharfd_gpu_memory, has_limits_of_its_own)
{
    struct test_gpu_memory devices[4];

    start("[quota]\nmax_gpu_memory = 64K\nmax_gpu_regions = 3\n");
    struct wharf *first = open_handle(WHARF_ENGINE_AUTO), *second = open_handle(WHARF_ENGINE_SIMT);
    for (unsigned i = 0; i < 4; i++)
        devices[i] = test_gpu_memory_new(NULL, 16384);
    cr_assert_eq(test_gpu_memory_register(first, &devices[0]), 0, "%s", wharf_error_message());
    expect_refused(first, devices[0].fd, 65536, -EDQUOT);
    cr_assert(strstr(wharf_error_message(), "max_gpu_memory"), "%s", wharf_error_message());
    cr_assert_eq(test_gpu_memory_register(second, &devices[1]), 0);
    cr_assert_eq(test_gpu_memory_register(second, &devices[2]), 0);
    cr_assert_eq(test_gpu_memory_register(second, &devices[3]), -EDQUOT);
    cr_assert_eq(test_gpu_memory_register(first, &devices[3]), -EDQUOT);
    cr_assert(strstr(wharf_error_message(), "max_gpu_regions"), "%s", wharf_error_message());
    wharf_close(second);
    wait_for_metric("wharf_gpu_memory_bytes", 16384);
    cr_assert_eq(test_gpu_memory_register(first, &devices[1]), 0, "%s", wharf_error_message());
    cr_assert_eq(test_gpu_memory_register(first, &devices[2]), 0);
    wharf_close(first);
    wait_for_metric("wharf_gpu_memory_bytes", 0);
    for (unsigned i = 0; i < 4; i++)
        test_gpu_memory_free(&devices[i]);
    finish();
}

/* ---- against the rules --------------------------------------------------------------------- */

static void expect_result(struct test_client *client, const struct wharf_submission *submission,
                          uint32_t result, uint32_t reason)
{
    struct wharf_completion completion;

    cr_assert_eq(test_client_submit(client, submission), 0);
    cr_assert_eq(test_client_reap(client, &completion), 0);
    cr_expect_eq(completion.result, result, "result %u", completion.result);
    cr_expect_eq(completion.reason, reason, "reason %u", completion.reason);
}

/* Of jobs that the other way round are good. */
static void check_sources(struct test_client *client, const struct wharf_submission *good)
{
    struct wharf_submission s = *good;

    s.src_region = 1;
    s.src_offset = good->dst_offset;
    s.dst_region = 0;
    s.dst_offset = 0;
    expect_result(client, &s, WHARF_OK, WHARF_REASON_NONE);
    s.src_offset++;
    expect_result(client, &s, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_RANGE);
    s.src_offset = UINT64_MAX - 50;
    expect_result(client, &s, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_RANGE);
    s = *good;
    s.src_region = 1;
    s.src_offset = s.dst_offset - 99;
    expect_result(client, &s, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_OVERLAP);
    s.src_offset--;
    expect_result(client, &s, WHARF_OK, WHARF_REASON_NONE);
}

/* What a library would not let through: the daemon checks every range by itself. */
Test(wharfd_gpu_memory, ranges_and_uses_are_checked_for_each_job)
{
    const struct wharf_submission good = {
        .opcode = WHARF_OP_DECODE,
        .src_nbytes = 100,
        .dst_nbytes = 100,
        .dst_region = 1,
        .dst_offset = 8092,
    };
    struct wharf_submission s = good;

    start("chunk = 64K\n");
    struct test_client *client = test_gpu_memory_client(wharfd.socket, 8192);
    cr_expect_eq(client->limits.max_gpu_chunk_nbytes, 65536);
    int fd = test_memfd(8192, SEALS);
    cr_expect_eq(test_client_register_gpu(client, 1, fd, 8192), -EEXIST);
    close(fd);
    expect_result(client, &s, WHARF_OK, WHARF_REASON_NONE);
    s.dst_offset++;
    expect_result(client, &s, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_RANGE);
    s.dst_offset = UINT64_MAX - 50;
    expect_result(client, &s, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_RANGE);
    s = good;
    s.dst_region = 2;
    expect_result(client, &s, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_REGION);
    check_sources(client, &good);
    /* A batch's table and results. */
    s = (struct wharf_submission){
        .opcode = WHARF_OP_BATCH, .src_region = 1, .src_nbytes = sizeof(struct wharf_chunk)};
    expect_result(client, &s, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_REGION);
    s.src_region = 0;
    s.dst_region = 1;
    s.dst_nbytes = sizeof(struct wharf_chunk_result);
    expect_result(client, &s, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_REGION);
    /* Its chunks. */
    s.dst_region = 0;
    s.dst_offset = 4096;
    struct wharf_chunk *chunk = (struct wharf_chunk *)client->arena;
    *chunk = (struct wharf_chunk){
        .src_offset = 1024, .src_nbytes = 100, .dst_nbytes = 100, .dst_region = 1};
    expect_result(client, &s, WHARF_OK, WHARF_REASON_NONE);
    chunk->dst_offset = 8093;
    expect_result(client, &s, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_RANGE);
    /* Source and destination in it, which share a byte, and then none. */
    chunk->dst_offset = 1123;
    chunk->src_region = 1;
    expect_result(client, &s, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_OVERLAP);
    chunk->dst_offset = 1124;
    expect_result(client, &s, WHARF_OK, WHARF_REASON_NONE);
    chunk->src_offset = 8093;
    expect_result(client, &s, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_RANGE);
    /* Outputs in host memory are the GPU's too where sources are not the CPU's. */
    chunk->src_offset = 0;
    chunk->dst_region = 0;
    chunk->dst_offset = 8192;
    expect_result(client, &s, WHARF_OK, WHARF_REASON_NONE);
    test_client_free(client);
    finish();
}

/* A chunk of random bytes, which are in all places from 1 MiB to 2 MiB of their memory; and its
 * output, which is in the first. */
static void check_large(struct wharf *wharf, const uint8_t *in, uint8_t *out, size_t nbytes)
{
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_outcome outcome;

    memset(out, 0xa5, nbytes + 1);
    job.codec = WHARF_CODEC_LZ4;
    job.in = in;
    job.in_nbytes = nbytes / 2;
    job.out = out;
    job.out_avail = nbytes;
    cr_assert_eq(wharf_decompress(wharf, &job, &outcome), 0, "%s", wharf_error_message());
    job.codec = WHARF_CODEC_STORED;
    cr_assert_neq(outcome.result, WHARF_OK, "random bytes are no LZ4");
    cr_assert_eq(wharf_decompress(wharf, &job, &outcome), 0, "%s", wharf_error_message());
    cr_assert_eq(outcome.result, WHARF_OK, "%u, %u", outcome.result, outcome.reason);
    cr_assert_eq(outcome.out_nbytes, nbytes / 2);
    cr_assert_arr_eq(out, in, nbytes / 2);
    cr_assert_eq(out[nbytes], 0xa5);
}

/* Two at a time, where they hold up nothing else; up to `large`. */
Test(wharfd_gpu_memory, chunks_that_are_too_large_for_a_warp_have_places, .timeout = 600)
{
    enum { NBYTES = 300000 };
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_outcome outcome;
    struct test_random random = {5};
    void *host;

    start("chunk = 64K\nlarge = 1M\n");
    struct wharf *wharf = test_wharfd_open(&wharfd, WHARF_ENGINE_AUTO, 0, 4 * MiB);
    struct test_gpu_memory device = test_gpu_memory_new(NULL, 2 * MiB);
    cr_assert_eq(test_gpu_memory_register(wharf, &device), 0, "%s", wharf_error_message());
    cr_assert_eq(wharf_alloc(wharf, 2 * MiB, &host), 0);
    for (size_t i = MiB; i < 2 * MiB; i++)
        ((uint8_t *)host)[i] = device.at[i] = (uint8_t)test_random_next(&random);
    check_large(wharf, device.at + MiB + 3, device.at + 5, NBYTES);
    check_large(wharf, device.at + MiB, host, NBYTES);
    check_large(wharf, (uint8_t *)host + MiB, device.at, NBYTES);
    cr_expect_gt(metric("wharf_gpu_large_chunks_total", NULL), 5);
    job.in = device.at + MiB;
    job.out = device.at;
    job.in_nbytes = job.out_avail = MiB / 2 + 1;
    cr_assert_eq(wharf_decompress(wharf, &job, &outcome), 0, "%s", wharf_error_message());
    cr_expect_eq(outcome.result, WHARF_QUOTA, "%u", outcome.result);
    cr_expect_eq(outcome.reason, WHARF_REASON_GPU_LARGE);
    wharf_close(wharf);
    test_gpu_memory_free(&device);
    finish();
}

/* Hello's feature bit is what allows it. */
Test(wharfd_gpu_memory, has_to_be_agreed_on)
{
    start("");
    struct test_client *client = test_client_start(wharfd.socket, 16, MiB);
    int fd = test_memfd(4096, SEALS);
    cr_expect_eq(test_client_register_gpu(client, 1, fd, 4096), -EOPNOTSUPP);
    cr_expect_eq(client->limits.max_gpu_chunk_nbytes, 0);
    close(fd);
    test_client_free(client);
    finish();
}

/* Clients from before sources could be there are told what they were always told. */
Test(wharfd_gpu_memory, sources_have_to_be_agreed_on)
{
    const uint64_t gpu_memory = (uint64_t)1 << WHARF__FEATURE__FEATURE_GPU_MEMORY;
    struct wharf_submission s = {
        .opcode = WHARF_OP_DECODE, .src_region = 1, .src_nbytes = 100, .dst_nbytes = 100};

    start("");
    struct test_client *client = test_client_new();
    int fd = test_memfd(4096, SEALS);
    client->optional_features = gpu_memory;
    cr_assert_eq(test_client_connect(client, wharfd.socket), 0);
    cr_assert_eq(test_client_hello(client), 0);
    cr_assert_eq(test_client_open_with(client, 64, MiB, 0, WHARF_ENGINE_AUTO), 0);
    cr_assert_eq(test_client_register_gpu(client, 1, fd, 4096), 0);
    expect_result(client, &s, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_REGION);
    s.src_region = 0;
    s.dst_region = 1;
    expect_result(client, &s, WHARF_OK, WHARF_REASON_NONE);
    close(fd);
    test_client_free(client);
    finish();
}

/* A region that is being imported is not there yet: neither for jobs, nor for another request. */
Test(wharfd_gpu_memory, nothing_is_answered_before_it_is_imported, .timeout = 600)
{
    Wharf__RegisterMemoryRequest memory = WHARF__REGISTER_MEMORY_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    const Wharf__Reply *reply;

    start("hang_timeout = 10min\n");
    struct test_client *client = test_gpu_memory_client(wharfd.socket, 4096);
    pid_t worker = test_worker_pid(wharfd.pid);
    test_process_stop(worker);
    int fd = test_memfd(4096, SEALS);
    memory.region = 2;
    memory.kind = WHARF__MEMORY_KIND__MEMORY_KIND_GPU;
    memory.nbytes = 4096;
    request.body_case = WHARF__REQUEST__BODY_REGISTER_MEMORY;
    request.register_memory = &memory;
    cr_assert_eq(test_client_send(client, &request, &fd, 1), 0);
    memory.region = 3;
    cr_assert_eq(test_client_send(client, &request, &fd, 1), 0);
    /* The ring is looked at meanwhile. */
    const struct wharf_submission noop = {.opcode = WHARF_OP_NOOP};
    for (unsigned i = 0; i < 20; i++) {
        usleep(i * 500);
        expect_result(client, &noop, WHARF_OK, WHARF_REASON_NONE);
    }
    kill(worker, SIGCONT);
    cr_assert_eq(test_client_receive(client, &reply), 0, "%s", client->error);
    cr_assert_eq(reply->body_case, WHARF__REPLY__BODY_DONE);
    cr_assert_eq(test_client_receive(client, &reply), 0, "%s", client->error);
    cr_assert_eq(reply->body_case, WHARF__REPLY__BODY_DONE);
    /* Who goes while it waits leaves nothing behind, also with the next request sent already. */
    test_process_stop(worker);
    memory.region = 4;
    cr_assert_eq(test_client_send(client, &request, &fd, 1), 0);
    memory.region = 5;
    cr_assert_eq(test_client_send(client, &request, &fd, 1), 0);
    close(fd);
    test_client_free(client);
    /* But for that memory all comes back before the worker has answered; who asks has a queue. */
    wait_for_metric("wharf_connections", 1);
    wait_for_metric("wharf_queue_entries", 2);
    kill(worker, SIGCONT);
    wait_for_metric("wharf_gpu_memory_bytes", 0);
    cr_expect_eq(test_worker_pid(wharfd.pid), worker);
    finish();
}

/* A worker that hung with nothing to decode was left as it was, and who registered memory waited
 * for ever. */
Test(wharfd_gpu_memory, worker_that_hangs_while_idle_is_replaced, .timeout = 600)
{
    start("hang_timeout = 1s\n");
    struct test_client *client = test_gpu_memory_client(wharfd.socket, 4096);
    pid_t worker = test_worker_pid(wharfd.pid);
    int fd = test_memfd(4096, SEALS);
    test_process_stop(worker);
    cr_assert_eq(test_client_register_gpu(client, 2, fd, 4096), 0, "%s", client->error);
    cr_assert_neq(test_worker_pid(wharfd.pid), worker);
    close(fd);
    test_client_free(client);
    finish();
}
