/* SPDX-License-Identifier: Apache-2.0 */
/* The running daemon's control socket: jobs from end to end, the queue's memory, refusals. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/wharf_job.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_pack.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"

#define MiB ((uint64_t)1 << 20)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

static struct test_wharfd wharfd;

/* ---- jobs, from end to end ----------------------------------------------------------------- */

static void check_job(const char *io)
{
    enum { N = 100000 };
    uint8_t *plain = test_data_new(test_data_find("text"), 1, N);
    struct wharf_completion completion;

    test_wharfd_start_by(&wharfd, io, "");
    struct test_client *client = test_client_start(wharfd.socket, 16, MiB);
    size_t nbytes = test_pack_into(WHARF_CODEC_GZIP, plain, N, client->arena, N);
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
    test_wharfd_finish(&wharfd);
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

    test_wharfd_start_by(&wharfd, "auto", "");
    struct test_client *client = test_client_greeted(wharfd.socket);
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
    test_wharfd_finish(&wharfd);
}

/* ---- the queue's memory -------------------------------------------------------------------- */

Test(wharfd_control, segments_are_sealed_as_promised)
{
    test_wharfd_start_by(&wharfd, "auto", "");
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
    /* Nor can anybody punch C, by no way that there is. */
    cr_assert_lt(fallocate(client->c_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), 0);
    cr_assert_eq(errno, EPERM);
    cr_assert_neq(madvise(client->c, ring_nbytes, MADV_REMOVE), 0);
    cr_assert_eq(client->d->magic, WHARF_RING_MAGIC);
    cr_assert_eq(client->d->layout, WHARF_RING_LAYOUT);
    cr_assert_eq(client->d->n_entries, 64);
    cr_assert_eq(client->d->arena_nbytes, 12288);
    cr_assert_eq(client->d->generation, client->generation);
    cr_assert_eq(client->d->flags, WHARF_RING_CPU_ONLY);
    test_client_free(client);
    test_wharfd_finish(&wharfd);
}

/* The daemon waited under its lock for whoever punched holes into a ring. */
Test(wharfd_control, looks_at_no_ring_that_can_be_punched)
{
    test_wharfd_start_by(&wharfd, "auto", "");
    struct test_client *client = test_client_greeted(wharfd.socket);
    struct test_client *other = test_client_start(wharfd.socket, 4, MiB);

    client->leaves_c_unsealed = true;
    cr_assert_eq(test_client_open_with(client, 4, MiB, 0, 0), 0);
    /* Found to be unsealed with other requests it is not looked at, and may still be sealed. */
    cr_assert_eq(test_client_ping(client), 0);
    /* An index that would end the session: nobody has looked at it, then and now. */
    wharf_ring_store_sq_tail(&client->c->sq_tail, 100);
    cr_assert_eq(test_client_ping(client), 0);
    cr_assert_eq(test_client_ping(other), 0);
    wharf_ring_store_sq_tail(&client->c->sq_tail, 0);
    cr_assert_eq(test_client_submit(client, &(struct wharf_submission){.opcode = WHARF_OP_NOOP}),
                 0);
    const Wharf__Reply *reply;
    int r = test_client_receive(client, &reply);
    cr_assert(r == -EPERM && strstr(client->error, "F_SEAL_FUTURE_WRITE"), "%d: %s", r,
              client->error);
    cr_assert_eq(test_client_wait_for_end(client), 0);
    cr_assert_eq(wharf_ring_load_cq_tail(&client->d->cq_tail), 0);
    cr_assert(wharf_ring_load_flags(&client->d->flags) & WHARF_RING_FORFEITED);
    test_client_free(client);
    test_client_free(other);
    test_wharfd_finish(&wharfd);
}

/* It is in time with the first wake-up. */
Test(wharfd_control, ring_may_be_sealed_after_other_requests)
{
    test_wharfd_start_by(&wharfd, "auto", "");
    struct test_client *client = test_client_greeted(wharfd.socket);
    struct wharf_completion completion;

    client->leaves_c_unsealed = true;
    cr_assert_eq(test_client_open_with(client, 4, MiB, 0, 0), 0);
    cr_assert_eq(test_client_ping(client), 0);
    cr_assert_eq(fcntl(client->c_fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
    cr_assert_eq(test_client_submit(client, &(struct wharf_submission){.opcode = WHARF_OP_NOOP}),
                 0);
    cr_assert_eq(test_client_reap(client, &completion), 0);
    cr_assert_eq(completion.result, WHARF_OK);
    test_client_free(client);
    test_wharfd_finish(&wharfd);
}

/* Only when the client ends it: what it did not read yet is lost, and nothing stays charged. */
Test(wharfd_control, arena_is_emptied_when_the_client_ends_the_session)
{
    test_wharfd_start_by(&wharfd, "auto", "");
    struct test_client *client = test_client_start(wharfd.socket, 4, MiB);
    int fd = dup(client->arena_fd);
    struct stat st;

    memset(client->arena, 'x', MiB);
    cr_assert_eq(fstat(fd, &st), 0);
    cr_assert_geq(st.st_blocks, (blkcnt_t)(MiB / 512));
    test_client_free(client);
    cr_assert(TEST_WAIT(fstat(fd, &st) == 0 && st.st_blocks == 0));
    close(fd);
    test_wharfd_finish(&wharfd);
}

Test(wharfd_control, arena_outlives_its_daemon_and_can_be_brought)
{
    Wharf__OpenQueueRequest open = WHARF__OPEN_QUEUE_REQUEST__INIT;
    struct wharf_completion completion;

    test_wharfd_start_by(&wharfd, "auto", "");
    struct test_client *client = test_client_start(wharfd.socket, 4, MiB);
    uint64_t generation = client->generation;
    memset(client->arena, 'x', MiB);
    int arena_fd = dup(client->arena_fd);
    test_wharfd_kill(&wharfd);
    cr_assert_eq(test_client_wait_for_end(client), 0);
    test_client_free(client);
    test_wharfd_restart(&wharfd);
    client = test_client_greeted(wharfd.socket);
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
    test_wharfd_finish(&wharfd);
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
    struct test_client *client = test_client_connected(wharfd.socket);
    int result = hello_with(client, version, min_version, required, name);

    cr_assert_eq(result, expected,
                 "Hello of version %u, at least %u, features %#llx, name of %zu bytes: %d, not %d",
                 (unsigned)version, (unsigned)min_version, (unsigned long long)required,
                 strlen(name), result, expected);
    if (expected < 0)
        test_client_ended(client);
    else
        test_client_free(client);
}

Test(wharfd_control, hello_is_refused_for_good_reasons_alone)
{
    char name[WHARF_CONTROL_MAX_NAME_NBYTES + 2];

    memset(name, 'n', sizeof(name));
    name[WHARF_CONTROL_MAX_NAME_NBYTES + 1] = 0;
    test_wharfd_start_by(&wharfd, "auto", "");
    expect_hello(0, 1, 1, 0, "");
    expect_hello(0, 7, 1, 0, "a newer client");
    expect_hello(-EPROTONOSUPPORT, 7, 2, 0, "");
    expect_hello(-EPROTONOSUPPORT, 0, 0, 0, "");
    expect_hello(-EINVAL, 1, 2, 0, "");
    expect_hello(-EOPNOTSUPP, 1, 1, 1, "");
    expect_hello(-EINVAL, 1, 1, 0, name);
    expect_hello(0, 1, 1, 0, name + 1);
    struct test_client *client = test_client_greeted(wharfd.socket);
    cr_assert_eq(hello_with(client, 1, 1, 0, "again"), -EPROTO);
    test_client_ended(client);
    client = test_client_connected(wharfd.socket);
    cr_assert_eq(test_client_ping(client), -EPROTO);
    test_client_ended(client);
    test_wharfd_finish(&wharfd);
}

Test(wharfd_control, queues_are_refused_for_good_reasons_alone)
{
    test_wharfd_start_by(&wharfd, "auto", "[quota]\nmax_entries = 64\nmax_arena = 1M\n");
    struct test_client *client = test_client_greeted(wharfd.socket);

    cr_assert_eq(client->limits.max_entries, 64);
    cr_assert_eq(client->limits.max_arena_nbytes, MiB);
    cr_assert_eq(test_client_open_with(client, 0, 0, 0, 0), -EINVAL);
    cr_assert_eq(test_client_open_with(client, 3, 0, 0, 0), -EINVAL);
    cr_assert_eq(test_client_open_with(client, 65536, 0, 0, 0), -EINVAL);
    cr_assert_eq(test_client_open_with(client, 128, 0, 0, 0), -EDQUOT);
    cr_assert_eq(test_client_open_with(client, 4, MiB + 1, 0, 0), -EDQUOT);
    cr_assert_eq(test_client_open_with(client, 4, UINT64_MAX, 0, 0), -EDQUOT);
    cr_assert_eq(test_client_open_with(client, 4, 0, 4, 0), -EINVAL);
    cr_assert_eq(test_client_open_with(client, 4, 0, 0, 99), -EINVAL);
    cr_assert_eq(test_client_open_with(client, 4, 0, 0, WHARF_ENGINE_GPU), -EOPNOTSUPP);
    cr_assert_eq(test_client_open_with(client, 4, 0, 0, WHARF_ENGINE_SIMT), -EOPNOTSUPP);
    cr_assert_eq(test_client_open_with(client, 64, 0, WHARF_CLASS_BACKGROUND, WHARF_ENGINE_CPU), 0);
    cr_assert_eq(test_client_open_with(client, 4, 0, 0, 0), -EBUSY);
    cr_assert_eq(test_client_ping(client), 0, "refusals leave the connection as it was");
    test_client_free(client);
    test_wharfd_finish(&wharfd);
}

Test(wharfd_control, memory_is_refused_for_good_reasons_alone)
{
    test_wharfd_start_by(&wharfd, "auto", "[quota]\nmax_regions = 2\nmax_memory = 16M\n");
    struct test_client *client = test_client_greeted(wharfd.socket);
    int good = test_memfd(MiB, SEALS);
    int unsealed = test_memfd(MiB, F_SEAL_GROW);
    int read_only = test_memfd(MiB, SEALS | F_SEAL_WRITE);

    cr_assert_eq(test_client_register(client, 1, good, MiB, false), -EINVAL, "no queue yet");
    cr_assert_eq(test_client_open_with(client, 4, 4096, 0, 0), 0);
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
    cr_assert(strstr(client->error, "max_regions"), "%s", client->error);
    cr_assert_eq(test_client_unregister(client, 1), 0);
    cr_assert_eq(test_client_unregister(client, 1), -ENOENT);
    cr_assert_eq(test_client_unregister(client, 0), -EINVAL);
    int large = test_memfd(17 * MiB, SEALS);
    cr_assert_eq(test_client_register(client, 1, large, 17 * MiB, false), -EDQUOT);
    cr_assert(strstr(client->error, "max_memory"), "%s", client->error);
    /* What was given back can be used again, once it is unmapped. */
    for (unsigned i = 0; i < 100; i++) {
        int r;
        TEST_WAIT((r = test_client_register(client, 7, large, 14 * MiB, false)) != -EDQUOT);
        cr_assert_eq(r, 0, "%d: %s", r, client->error);
        cr_assert_eq(test_client_unregister(client, 7), 0);
    }
    test_client_free(client);
    close(good);
    close(unsealed);
    close(read_only);
    close(large);
    test_wharfd_finish(&wharfd);
}

Test(wharfd_control, region_in_use_is_busy)
{
    test_wharfd_start_by(&wharfd, "auto", "[cpu]\nworkers = 1\n");
    struct test_client *client = test_client_start(wharfd.socket, 64, TEST_CLIENT_ENDLESS_NBYTES);
    int r, fd = test_memfd(4096, SEALS);
    struct wharf_completion completion;
    struct wharf_submission s = {.opcode = WHARF_OP_CANCEL, .src_offset = 3};

    cr_assert_eq(test_client_register(client, 9, fd, 4096, false), 0);
    test_client_begin_endless(client, 3, 9);
    cr_assert_eq(test_client_unregister(client, 9), -EBUSY);
    cr_assert_eq(test_client_submit(client, &s), 0);
    for (unsigned i = 0; i < 2; i++)
        cr_assert_eq(test_client_reap(client, &completion), 0);
    cr_assert(TEST_WAIT((r = test_client_unregister(client, 9)) != -EBUSY));
    cr_assert_eq(r, 0);
    test_client_free(client);
    close(fd);
    test_wharfd_finish(&wharfd);
}
