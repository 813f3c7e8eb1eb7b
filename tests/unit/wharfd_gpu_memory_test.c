/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs in GPU memory that clients made themselves.  The worker's engine is the GPU's own code on
 * the CPU, for which a memfd stands for such memory: all is as on a GPU but for the descriptor.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "daemon/base/clock.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_gpu_memory.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_storm.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"
#include "tests/lib/test_worker.h"

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

/* What is given back twice is less than nothing, once both are. */
static void expect_metric_to_stay(const char *name, double value)
{
    for (unsigned n = 0; n < 60; n++) {
        cr_assert_eq(metric(name, NULL), value);
        usleep(10000);
    }
}

/* ---- what works ---------------------------------------------------------------------------- */

static void check_storm(uint32_t engine, uint64_t seed)
{
    struct test_chunks chunks;

    start("");
    test_chunks_init(&chunks, seed, 60, 1000, 8);
    struct wharf *wharf = open_handle(engine);
    struct test_storm storm = {
        .wharf = wharf,
        .chunks = &chunks,
        .seed = seed,
        .n_jobs = 600,
        .n_in_flight = 32,
        .batch_one_in = 4,
        .cancel_one_in = 10,
        .limit_s = 60,
    };
    struct test_gpu_memory device = test_gpu_memory_new(NULL, test_storm_out_nbytes(&storm));
    storm.out_memory = device.at;
    cr_assert_eq(test_gpu_memory_register(wharf, &device), 0, "%s", wharf_error_message());
    cr_assert_eq(test_storm_run(&storm), 0, "%s", storm.error);
    cr_expect_gt(storm.n_bad, 10);
    cr_expect_gt(metric("wharf_placements_total", "gpu_memory"), 200);
    cr_expect_eq(metric("wharf_gpu_memory_bytes", NULL), (double)device.nbytes);
    cr_assert_eq(wharf_unregister(wharf, device.at), 0);
    wait_for_metric("wharf_gpu_memory_bytes", 0);
    wharf_close(wharf);
    test_gpu_memory_free(&device);
    test_chunks_deinit(&chunks);
    finish();
}

/* Every codec, good and bad, chunks and batches, at any alignment, some outputs in the arena. */
Test(wharfd_gpu_memory, storm_into_gpu_memory_by_who_wants_the_gpu)
{
    check_storm(WHARF_ENGINE_SIMT, 1);
}

Test(wharfd_gpu_memory, storm_into_gpu_memory_by_who_wants_any_engine)
{
    check_storm(WHARF_ENGINE_AUTO, 2);
}

/* Who calls wharf_decompress need not know where memory is; but the processor never reads what is
 * the GPU's, nor writes there. */
Test(wharfd_gpu_memory, decompress_takes_gpu_memory_as_destination_alone)
{
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_outcome outcome;
    uint8_t in[1000];

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
    /* From here on a copy would be a fault, as it is of the GPU's addresses. */
    cr_assert_eq(mprotect(device.at, device.nbytes, PROT_NONE), 0);
    job.out = device.at + device.nbytes - 10;
    cr_expect_eq(wharf_decompress(wharf, &job, &outcome), -EFAULT);
    cr_expect_eq(wharf_submit(wharf, &job, 1), -EFAULT);
    job.out = in;
    job.in = device.at;
    cr_expect_eq(wharf_decompress(wharf, &job, &outcome), -EFAULT);
    cr_expect_eq(wharf_submit(wharf, &job, 1), -EFAULT);
    job.in = device.at - 10;
    cr_expect_eq(wharf_decompress(wharf, &job, &outcome), -EFAULT);
    wharf_close(wharf);
    test_gpu_memory_free(&device);
    finish();
}

/* The library offers it again to the next daemon. */
Test(wharfd_gpu_memory, outlives_the_daemon, .timeout = 120)
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
    struct wharf_memory memory = WHARF_MEMORY_INIT;
    memory.kind = WHARF_MEMORY_GPU;
    memory.flags = WHARF_MEMORY_READ_ONLY;
    memory.fd = good;
    memory.address = &memory;
    memory.nbytes = 4096;
    cr_expect_eq(wharf_register(wharf, &memory), -EINVAL);
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

static int register_raw(struct test_client *client, uint32_t region, int fd, uint64_t nbytes)
{
    Wharf__RegisterMemoryRequest memory = WHARF__REGISTER_MEMORY_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    const Wharf__Reply *reply;

    memory.region = region;
    memory.kind = WHARF__MEMORY_KIND__MEMORY_KIND_GPU;
    memory.nbytes = nbytes;
    request.body_case = WHARF__REQUEST__BODY_REGISTER_MEMORY;
    request.register_memory = &memory;
    return test_client_call(client, &request, &fd, 1, &reply);
}

static void expect_result(struct test_client *client, const struct wharf_submission *submission,
                          uint32_t result, uint32_t reason)
{
    struct wharf_completion completion;

    cr_assert_eq(test_client_submit(client, submission), 0);
    cr_assert_eq(test_client_reap(client, &completion), 0);
    cr_expect_eq(completion.result, result, "result %u", completion.result);
    cr_expect_eq(completion.reason, reason, "reason %u", completion.reason);
}

static struct test_client *client_with_gpu_memory(uint64_t nbytes)
{
    struct test_client *client = test_client_new();
    int fd = test_memfd(nbytes, SEALS);

    client->optional_features = (uint64_t)1 << WHARF__FEATURE__FEATURE_GPU_MEMORY;
    cr_assert_eq(test_client_connect(client, wharfd.socket), 0);
    cr_assert_eq(test_client_hello(client), 0);
    cr_assert_eq(test_client_open_with(client, 64, MiB, 0, WHARF_ENGINE_AUTO), 0);
    cr_assert_geq(register_raw(client, 1, fd, nbytes), 0, "%s", client->error);
    cr_assert_eq(register_raw(client, 1, fd, nbytes), -EEXIST);
    close(fd);
    return client;
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
    struct test_client *client = client_with_gpu_memory(8192);
    cr_expect_eq(client->limits.max_gpu_chunk_nbytes, 65536);
    expect_result(client, &s, WHARF_OK, WHARF_REASON_NONE);
    s.dst_offset++;
    expect_result(client, &s, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_RANGE);
    s.dst_offset = UINT64_MAX - 50;
    expect_result(client, &s, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_RANGE);
    s = good;
    s.dst_region = 2;
    expect_result(client, &s, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_REGION);
    s = good;
    s.src_region = 1;
    s.dst_region = 0;
    expect_result(client, &s, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_REGION);
    s = good;
    s.src_nbytes = 65537;
    expect_result(client, &s, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_RANGE);
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
    chunk->dst_offset = 0;
    chunk->src_region = 1;
    expect_result(client, &s, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_REGION);
    test_client_free(client);
    finish();
}

/* Hello's feature bit is what allows it. */
Test(wharfd_gpu_memory, has_to_be_agreed_on)
{
    start("");
    struct test_client *client = test_client_start(wharfd.socket, 16, MiB);
    int fd = test_memfd(4096, SEALS);
    cr_expect_eq(register_raw(client, 1, fd, 4096), -EOPNOTSUPP);
    cr_expect_eq(client->limits.max_gpu_chunk_nbytes, 0);
    close(fd);
    test_client_free(client);
    finish();
}

/* A region that is being imported is not there yet: neither for jobs, nor for another request. */
Test(wharfd_gpu_memory, nothing_is_answered_before_it_is_imported, .timeout = 120)
{
    Wharf__RegisterMemoryRequest memory = WHARF__REGISTER_MEMORY_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    const Wharf__Reply *reply;

    start("hang_timeout = 10min\n");
    struct test_client *client = client_with_gpu_memory(4096);
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

/* ---- deaths -------------------------------------------------------------------------------- */

/* A worker that hung with nothing to decode was left as it was, and who registered memory waited
 * for ever. */
Test(wharfd_gpu_memory, worker_that_hangs_while_idle_is_replaced, .timeout = 120)
{
    start("hang_timeout = 1s\n");
    struct test_client *client = client_with_gpu_memory(4096);
    pid_t worker = test_worker_pid(wharfd.pid);
    int fd = test_memfd(4096, SEALS);
    test_process_stop(worker);
    cr_assert_eq(register_raw(client, 2, fd, 4096), 0, "%s", client->error);
    cr_assert_neq(test_worker_pid(wharfd.pid), worker);
    close(fd);
    test_client_free(client);
    finish();
}

/* Each new worker is started twice as long after the last one's end. */
#define MOST_KILLS 6

struct killer {
    struct test_random random;
    pid_t victim;
    uint64_t kill_at_ns;
    unsigned n_kills;
};

/* Kills each worker within 40 ms after it was first seen at work, wherever it is by then.  Without
 * workers that get ready jobs end with DEVICE_FAULT, which is for another test. */
static void kill_worker(const struct test_storm *storm)
{
    struct killer *killer = storm->tick_data;
    uint64_t now_ns = wharf_now_ns();

    if (now_ns < killer->kill_at_ns || killer->n_kills == MOST_KILLS)
        return;
    killer->kill_at_ns = now_ns + test_random_below(&killer->random, 40000000);
    pid_t pid = test_worker_pid(wharfd.pid);
    if (killer->victim && killer->victim == pid) {
        kill(pid, SIGKILL);
        killer->n_kills++;
        killer->victim = 0;
    } else if (pid && metric("wharf_gpu_up", NULL) == 1 && test_worker_pid(wharfd.pid) == pid) {
        killer->victim = pid;
    }
}

static void check_kills(uint32_t engine, uint64_t seed)
{
    struct killer killer = {.random = {seed}};
    struct test_chunks chunks;

    start("hang_timeout = 10min\n");
    test_chunks_init(&chunks, seed, 60, 1000, 8);
    struct wharf *wharf = open_handle(engine);
    struct test_storm storm = {
        .wharf = wharf,
        .chunks = &chunks,
        .n_jobs = 1000,
        .n_in_flight = 48,
        .batch_one_in = 4,
        .cancel_one_in = 10,
        .limit_s = 60,
        .tick = kill_worker,
        .tick_data = &killer,
    };
    struct test_gpu_memory device = test_gpu_memory_new(NULL, test_storm_out_nbytes(&storm));
    storm.out_memory = device.at;
    cr_assert_eq(test_gpu_memory_register(wharf, &device), 0, "%s", wharf_error_message());
    for (unsigned n = 0; n < 20 && killer.n_kills < MOST_KILLS; n++) {
        storm.seed = seed + n;
        storm.n_done = storm.n_submitted = 0;
        cr_assert_eq(test_storm_run(&storm), 0, "%s", storm.error);
        cr_assert_eq(storm.n_done, storm.n_jobs);
    }
    cr_expect_gt(killer.n_kills, 2);
    cr_assert_neq(test_worker_wait(wharfd.pid, 0), 0);
    wharf_close(wharf);
    wait_for_metric("wharf_gpu_memory_bytes", 0);
    test_gpu_memory_free(&device);
    test_chunks_deinit(&chunks);
    finish();
}

Test(wharfd_gpu_memory, no_job_is_lost_when_workers_are_killed, .timeout = 300)
{
    check_kills(WHARF_ENGINE_SIMT, 2);
}

Test(wharfd_gpu_memory, no_job_of_any_engine_is_lost_when_workers_are_killed, .timeout = 300)
{
    check_kills(WHARF_ENGINE_AUTO, 3);
}

/* Jobs of a round: as many as a suspect has to run alone.  And jobs, one after the other, after
 * which all cancels are with the worker: before the daemon hands one over it looks at 1024 of its
 * 16384 pieces for cancelled ones. */
#define N_ROUND 8
#define N_LOOKS 20

static struct wharf_submission copy_of(uint64_t user_data)
{
    return (struct wharf_submission){
        .opcode = WHARF_OP_DECODE,
        .user_data = user_data,
        .src_nbytes = 100,
        .dst_nbytes = 100,
        .dst_region = 1,
    };
}

static void submit_copies(struct test_client *client, uint64_t user_data, unsigned n)
{
    double before = metric("wharf_placements_total", "gpu_memory");

    for (unsigned i = 0; i < n; i++) {
        struct wharf_submission s = copy_of(user_data + i);
        cr_assert_eq(test_client_submit(client, &s), 0);
    }
    /* Until the worker has them. */
    cr_assert(TEST_WAIT(metric("wharf_placements_total", "gpu_memory") == before + n),
              "the GPU does not get its jobs");
}

static void expect_all_good(struct test_client *client, unsigned n)
{
    struct wharf_completion completion;

    while (n-- > 0) {
        cr_assert_eq(test_client_reap(client, &completion), 0);
        cr_expect_eq(completion.result, WHARF_OK, "result %u", completion.result);
    }
}

static void cancel(struct test_client *client, uint64_t user_data)
{
    const struct wharf_submission s = {
        .opcode = WHARF_OP_CANCEL, .user_data = UINT64_MAX, .src_offset = user_data};

    cr_assert_eq(test_client_submit(client, &s), 0);
    expect_all_good(client, 1);
}

/* A piece that was lost with a worker kept its places and its job, whoever had those by then: when
 * the job that came after it was cancelled, so was what came to the places. */
Test(wharfd_gpu_memory, cancel_after_a_death_is_not_another_jobs, .timeout = 300)
{
    const struct wharf_submission first = copy_of(0);
    struct wharf_completion completion;

    start("hang_timeout = 10min\nahead = 1s\n");
    struct test_client *client = client_with_gpu_memory(4096);
    expect_result(client, &first, WHARF_OK, WHARF_REASON_NONE);
    /* Lost, and done by the next one, alone; then nobody is a suspect any more. */
    pid_t worker = test_worker_pid(wharfd.pid);
    test_process_stop(worker);
    submit_copies(client, 0, N_ROUND);
    kill(worker, SIGKILL);
    expect_all_good(client, N_ROUND);
    submit_copies(client, 0, N_ROUND);
    expect_all_good(client, N_ROUND);
    /* One that begins with the same places as the first, as soon as it has the memory. */
    worker = test_worker_pid(wharfd.pid);
    kill(worker, SIGKILL);
    worker = test_worker_wait(wharfd.pid, worker);
    expect_result(client, &first, WHARF_OK, WHARF_REASON_NONE);
    test_process_stop(worker);
    submit_copies(client, 0, N_ROUND);
    /* The client's places for jobs are given out again last first: those of the others. */
    for (unsigned i = 1; i < N_ROUND; i += 2)
        cancel(client, i);
    for (unsigned i = 0; i < N_LOOKS; i++)
        submit_copies(client, N_ROUND, 1);
    kill(worker, SIGCONT);
    for (unsigned i = 0; i < N_ROUND + N_LOOKS; i++) {
        cr_assert_eq(test_client_reap(client, &completion), 0);
        bool may_be_cancelled = completion.user_data < N_ROUND && completion.user_data % 2 == 1;
        cr_expect(completion.result == WHARF_OK ||
                      (may_be_cancelled && completion.result == WHARF_CANCELLED),
                  "job %" PRIu64 ": %u", completion.user_data, completion.result);
    }
    test_client_free(client);
    finish();
}

/* Sessions that come and go while workers die: what they registered is given back in every case. */
Test(wharfd_gpu_memory, memory_is_given_back_while_workers_die, .timeout = 120)
{
    struct killer killer = {.random = {5}};
    struct test_storm storm = {.tick_data = &killer};

    start("");
    struct test_gpu_memory device = test_gpu_memory_new(NULL, 65536);
    for (unsigned i = 0; i < 400 && killer.n_kills < MOST_KILLS; i++) {
        struct wharf *wharf = open_handle(WHARF_ENGINE_AUTO);
        cr_assert_eq(test_gpu_memory_register(wharf, &device), 0, "%u: %s", i,
                     wharf_error_message());
        kill_worker(&storm);
        wharf_close(wharf);
    }
    cr_expect_gt(killer.n_kills, 0);
    wait_for_metric("wharf_gpu_memory_bytes", 0);
    test_gpu_memory_free(&device);
    finish();
}

/* Its kernel still has items for it: the memory is the worker's until that has left. */
Test(wharfd_gpu_memory, client_that_goes_with_jobs_under_way_harms_nobody, .timeout = 120)
{
    enum { N = 16, NBYTES = 20000 };

    start("");
    pid_t worker = test_worker_wait(wharfd.pid, 0);
    for (unsigned round = 0; round < 10; round++) {
        struct test_client *client = client_with_gpu_memory(N * 20480);
        for (unsigned i = 0; i < N; i++) {
            struct wharf_submission s = {
                .opcode = WHARF_OP_DECODE,
                .src_nbytes = NBYTES,
                .dst_nbytes = NBYTES,
                .dst_region = 1,
                .dst_offset = i * 20480,
            };
            cr_assert_eq(test_client_submit(client, &s), 0);
        }
        usleep(round * 100);
        test_client_free(client);
    }
    wait_for_metric("wharf_gpu_memory_bytes", 0);
    expect_metric_to_stay("wharf_gpu_memory_bytes", 0);
    cr_expect_eq(test_worker_pid(wharfd.pid), worker);
    finish();
}

/* No worker gets ready any more: who waits for one is told, and so is who comes. */
Test(wharfd_gpu_memory, jobs_end_when_there_are_no_workers_any_more, .timeout = 120)
{
    char program[4096], link[128], config[256];
    struct wharf_job job = WHARF_JOB_INIT;
    struct wharf_completion completion;
    void *in;

    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
    cr_assert_gt(n, 0);
    program[n] = 0;
    for (unsigned i = 0; i < 2; i++)
        *strrchr(program, '/') = 0;
    strcat(program, "/wharfd-simt");
    snprintf(link, sizeof(link), "/tmp/wharf-gpu-memory-test.%d", (int)getpid());
    unlink(link);
    cr_assert_eq(symlink(program, link), 0);
    snprintf(config, sizeof(config), "worker = %s\n", link);
    start(config);
    struct wharf *wharf = open_handle(WHARF_ENGINE_AUTO);
    struct test_gpu_memory device = test_gpu_memory_new(NULL, 4096),
                           other = test_gpu_memory_new(NULL, 4096);
    cr_assert_eq(test_gpu_memory_register(wharf, &device), 0, "%s", wharf_error_message());
    cr_assert_eq(wharf_alloc(wharf, 100, &in), 0);
    job.in = in;
    job.in_nbytes = job.out_avail = 100;
    job.out = device.at;
    unlink(link);
    kill(test_worker_pid(wharfd.pid), SIGKILL);
    cr_assert_eq(wharf_submit(wharf, &job, 1), 1);
    cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), 1, "%s", wharf_error_message());
    cr_expect_eq(completion.result, WHARF_DEVICE_FAULT, "%u", completion.result);
    cr_expect_eq(test_gpu_memory_register(wharf, &other), -ENODEV, "%s", wharf_error_message());
    /* Other jobs do not mind, and there may be one again. */
    job.out = (uint8_t *)in;
    job.in_nbytes = job.out_avail = 0;
    cr_assert_eq(wharf_submit(wharf, &job, 1), 1);
    cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), 1);
    cr_expect_eq(completion.result, WHARF_OK);
    cr_assert_eq(symlink(program, link), 0);
    cr_assert_neq(test_worker_wait(wharfd.pid, 0), 0);
    job.in_nbytes = job.out_avail = 100;
    job.out = device.at;
    do {
        usleep(10000);
        cr_assert_eq(wharf_submit(wharf, &job, 1), 1);
        cr_assert_eq(wharf_wait(wharf, &completion, 1, 1, -1), 1);
    } while (completion.result == WHARF_DEVICE_FAULT);
    cr_expect_eq(completion.result, WHARF_OK);
    unlink(link);
    wharf_close(wharf);
    test_gpu_memory_free(&device);
    test_gpu_memory_free(&other);
    finish();
}
