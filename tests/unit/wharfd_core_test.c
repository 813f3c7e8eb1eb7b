/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's centre: single jobs, what is wrong with submissions, ends of sessions.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/base/loop.h"
#include "daemon/core/core.h"
#include "daemon/core/engine_status.h"
#include "daemon/core/segment.h"
#include "daemon/core/session.h"
#include "daemon/core/session_events.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/dispatch/intake.h"
#include "daemon/dispatch/session_end.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_core.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_wait.h"

#define MiB ((uint64_t)1 << 20)

/* ---- single jobs --------------------------------------------------------------------------- */

Test(wharfd_core, chunk_is_decoded_and_told_of, .init = test_core_set_up)
{
    uint8_t *plain = test_data_new(test_data_find("text"), 1, TEST_CORE_CHUNK);
    struct test_core_client client;

    test_core_client_init(&client, 1, "uid:1", 8, MiB);
    size_t nbytes = test_core_put_chunk(&client, 100, plain, TEST_CORE_CHUNK);
    struct wharf_submission submission =
        test_core_decode_of(42, 100, nbytes, 2 * TEST_CORE_CHUNK, TEST_CORE_CHUNK);
    test_core_submit(&client, &submission);
    struct wharf_completion completion = test_core_reap(&client);
    cr_assert_eq(completion.user_data, 42);
    cr_assert_eq(completion.result, WHARF_OK);
    cr_assert_eq(completion.engine, WHARF_ENGINE_CPU);
    cr_assert_eq(completion.in_nbytes, nbytes);
    cr_assert_eq(completion.out_nbytes, TEST_CORE_CHUNK);
    cr_assert_eq(completion.flags, 0);
    cr_assert_gt(completion.run_ns, 0);
    cr_assert_lt(completion.run_ns + completion.queue_ns, 60 * (uint64_t)WHARF_NS_PER_S);
    cr_assert_arr_eq(client.arena + 2 * TEST_CORE_CHUNK, plain, TEST_CORE_CHUNK);
    test_core_client_deinit(&client);
    test_core_stop();
    free(plain);
}

Test(wharfd_core, bad_data_is_told_like_in_process, .init = test_core_set_up)
{
    struct test_core_client client;

    test_core_client_init(&client, 1, "uid:1", 8, MiB);
    struct wharf_submission submission = test_core_decode_of(7, 0, 1000, 4096, TEST_CORE_CHUNK);
    test_core_submit(&client, &submission);
    struct wharf_completion completion = test_core_reap(&client);
    cr_assert_eq(completion.result, WHARF_BAD_DATA);
    cr_assert_eq(completion.reason, WHARF_REASON_ZLIB_METHOD);
    cr_assert_eq(completion.out_nbytes, 0);
    cr_assert_eq(completion.engine, WHARF_ENGINE_CPU);
    test_core_client_deinit(&client);
    test_core_stop();
}

/* What is wrong, and what stays wrong when it is put right: the order is part of the protocol. */
Test(wharfd_core, bad_requests_have_their_reasons_in_order, .init = test_core_set_up)
{
    struct wharf_submission all_wrong = {
        .opcode = 77,
        .codec = 999,
        .flags = 0x8000,
        .job_class = 4,
        .parameter = 1,
        .level = 1,
        .src_region = 3,
        .src_offset = MiB,
        .src_nbytes = 1,
        .dst_region = 3,
        .dst_offset = UINT64_MAX,
        .dst_nbytes = 2,
    };
    struct test_core_client client;

    test_core_client_init(&client, 1, "uid:1", 8, MiB);
    struct wharf_submission s = all_wrong;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_OPCODE);
    s.opcode = WHARF_OP_DECODE;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_CODEC);
    s.codec = WHARF_CODEC_ZLIB;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_FLAGS);
    s.flags = WHARF_JOB_EXACT_INPUT;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_CLASS);
    s.job_class = WHARF_CLASS_BACKGROUND;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_PARAMETER);
    s.parameter = 0;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_RESERVED);
    s.level = 0;
    s.encoder = 1;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_RESERVED);
    s.encoder = 0;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_REGION);
    s.src_region = 0;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_RANGE);
    s.src_offset = MiB - 1;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_REGION);
    s.dst_region = 0;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_RANGE);
    s.dst_offset = MiB - 2;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_OVERLAP);
    s.dst_offset = MiB - 3;
    test_core_submit(&client, &s);
    cr_assert_eq(test_core_reap(&client).result, WHARF_BAD_DATA);
    /* Simple operations use nothing but their own members. */
    s = (struct wharf_submission){.opcode = WHARF_OP_NOOP, .src_offset = 1};
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_RESERVED);
    s = (struct wharf_submission){.opcode = WHARF_OP_CANCEL, .src_offset = 1};
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_NO_JOB);
    s.checksum = 1;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_RESERVED);
    test_core_client_deinit(&client);
    test_core_stop();
}

Test(wharfd_core, source_and_destination_have_a_limit_together)
{
    struct test_core_client client;

    wharf_config_init(&test_core_config);
    test_core_config.quota.max_job_nbytes = 5000;
    test_core_start(1);
    test_core_client_init(&client, 1, "uid:1", 8, MiB);
    struct wharf_submission s = test_core_decode_of(1, 0, 1000, 4096, 4001);
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_SIZE);
    s.dst_nbytes = 4000;
    test_core_submit(&client, &s);
    cr_assert_eq(test_core_reap(&client).result, WHARF_BAD_DATA);
    test_core_client_deinit(&client);
    test_core_stop();
}

Test(wharfd_core, read_only_regions_are_no_destinations, .init = test_core_set_up)
{
    struct test_core_client client;
    int fd = memfd_create("region", MFD_ALLOW_SEALING | MFD_CLOEXEC);

    test_core_client_init(&client, 1, "uid:1", 8, MiB);
    cr_assert_eq(ftruncate(fd, 8192), 0);
    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    wharf_core_enter(&test_core);
    struct wharf_region *region = wharf_session_region_place(client.session);
    cr_assert_eq(wharf_segment_adopt(fd, 8000, true, &region->segment), 0);
    region->number = 500;
    region->read_only = region->is_there = true;
    wharf_core_leave(&test_core);
    struct wharf_submission s = test_core_decode_of(1, 0, 10, 0, 8000);
    s.dst_region = 500;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_REGION);
    s = test_core_decode_of(1, 0, 8001, 0, 10);
    s.src_region = 500;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_RANGE);
    s.src_nbytes = 8000;
    test_core_submit(&client, &s);
    cr_assert_eq(test_core_reap(&client).result, WHARF_BAD_DATA);
    cr_assert_eq(TEST_CORE_LOCKED(region->n_users), 0);
    test_core_client_deinit(&client);
    test_core_stop();
    close(fd);
}

/* Nothing is written anywhere: an output for which there is no room in all of the arena has its
 * outcome. */
Test(wharfd_core, discarded_outputs_have_outcomes_and_no_place, .init = test_core_set_up)
{
    enum { NBYTES = 4 * MiB };
    uint8_t *plain = calloc(1, NBYTES), *before = malloc(MiB);
    struct test_core_client client;

    cr_assert(plain && before);
    test_core_client_init(&client, 1, "uid:1", 8, MiB);
    size_t nbytes = test_core_put_chunk(&client, 100, plain, NBYTES);
    struct wharf_submission s = test_core_decode_of(42, 100, nbytes, 0, NBYTES);
    s.flags = WHARF_JOB_DISCARD | WHARF_JOB_EXACT_INPUT | WHARF_JOB_EXACT_OUTPUT;
    memcpy(before, client.arena, MiB);
    for (unsigned i = 0; i < 2; i++) {
        test_core_submit(&client, &s);
        struct wharf_completion completion = test_core_reap(&client);
        cr_assert_eq(completion.result, i ? WHARF_BAD_CHECKSUM : WHARF_OK);
        cr_assert_eq(completion.out_nbytes, i ? 0 : NBYTES);
        s.flags |= WHARF_JOB_CHECKSUM;
    }
    s.flags = WHARF_JOB_DISCARD;
    s.dst_nbytes = NBYTES - 1;
    test_core_submit(&client, &s);
    cr_assert_eq(test_core_reap(&client).result, WHARF_OUTPUT_TOO_SMALL);
    cr_assert_eq(memcmp(before, client.arena, MiB), 0);
    s.dst_offset = 1;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_RESERVED);
    s.dst_offset = 0;
    s.dst_region = 1;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_RESERVED);
    s.dst_region = 0;
    s.dst_nbytes = UINT64_MAX;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_SIZE);
    s.dst_nbytes = 64 * MiB - nbytes + 1;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_SIZE);
    s.src_offset = MiB;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_RANGE);
    s.opcode = WHARF_OP_BATCH;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_FLAGS);
    s.opcode = WHARF_OP_DECODE;
    s.flags |= WHARF_JOB_COMPRESS;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_FLAGS);
    test_core_client_deinit(&client);
    test_core_stop();
    free(plain);
    free(before);
}

/* ---- sessions' ends ------------------------------------------------------------------------ */

Test(wharfd_core, broken_indices_end_the_session_and_nothing_else, .init = test_core_set_up)
{
    static const uint32_t jumps[] = {9, 0x80000000u, UINT32_MAX, 1000};
    struct test_core_client good;

    test_core_client_init(&good, 0, "uid:1", 8, MiB);
    for (unsigned i = 0; i < 4; i++) {
        struct test_core_client bad;
        test_core_client_init(&bad, 1 + i, "uid:2", 8, MiB);
        wharf_ring_store_sq_tail(&((struct wharf_ring_c *)bad.c)->sq_tail, jumps[i]);
        wharf_core_enter(&test_core);
        wharf_core_doorbell(&test_core, bad.session, 1);
        wharf_core_leave(&test_core);
        test_core_wait_until_told(&bad, WHARF_SESSION_IS_BROKEN);
        test_core_client_deinit(&bad);
    }
    struct wharf_submission s = {.opcode = WHARF_OP_NOOP, .user_data = 3};
    test_core_submit(&good, &s);
    cr_assert_eq(test_core_reap(&good).user_data, 3);
    test_core_client_deinit(&good);
    test_core_stop();
}

Test(wharfd_core, killed_session_is_free_when_its_pieces_are_done, .init = test_core_set_up)
{
    struct test_core_client client;

    test_core_client_init(&client, 1, "uid:1", 64, 64 * MiB);
    for (unsigned i = 0; i < 50; i++) {
        struct wharf_submission s = test_core_put_long(&client, i);
        s.timeout_us = i % 2 ? 1000000 : 0;
        wharf_ring_submit(&client.ring, &s);
    }
    test_core_publish(&client);
    usleep(5000);
    test_core_client_deinit(&client);
    cr_assert_null(TEST_CORE_LOCKED(test_core.deadlines.root));
    cr_assert_eq(TEST_CORE_LOCKED(wharf_place_n_queued(&test_core)), 0);
    test_core_stop();
}

Test(wharfd_core, drained_session_finishes_what_it_took, .init = test_core_set_up)
{
    struct test_core_client client;
    struct wharf_completion completion;
    unsigned n = 0;

    test_core_client_init(&client, 1, "uid:1", 64, 64 * MiB);
    for (unsigned i = 0; i < 10; i++) {
        struct wharf_submission s = test_core_put_long(&client, i);
        wharf_ring_submit(&client.ring, &s);
    }
    test_core_publish(&client);
    usleep(2000);
    wharf_core_enter(&test_core);
    wharf_core_drain_session(&test_core, client.session);
    wharf_core_leave(&test_core);
    cr_assert(wharf_ring_load_flags(&client.ring.d->flags) & WHARF_RING_DRAINING);
    test_core_wait_until_told(&client, WHARF_SESSION_IS_DRAINED);
    while (wharf_ring_reap(&client.ring, &completion) == 1)
        n++;
    cr_assert_eq(n, wharf_ring_load_sq_head(&client.ring.d->sq_head));
    /* Nothing is taken any more. */
    struct wharf_submission s = {.opcode = WHARF_OP_NOOP};
    if (wharf_ring_room(&client.ring)) {
        test_core_submit(&client, &s);
        usleep(5000);
        cr_assert_eq(wharf_ring_reap(&client.ring, &completion), 0);
    }
    test_core_client_deinit(&client);
    test_core_stop();
}

/* ---- hostile rings ------------------------------------------------------------------------- */

/* Every submission gets its completion, whatever its bytes are. */
Test(wharfd_core, random_submissions_get_one_completion_each, .init = test_core_set_up)
{
    struct test_random random = {3};
    struct test_core_client client;
    struct wharf_submission s;
    uint64_t n_reaped = 0;

    test_core_client_init(&client, 1, "uid:1", 64, 4 * MiB);
    test_random_fill(&random, client.arena, 4 * MiB);
    for (uint64_t i = 0; i < 20000; i++) {
        test_random_fill(&random, (uint8_t *)&s, sizeof(s));
        /* Mostly almost right, so that all checks are reached. */
        s.opcode = (uint8_t)test_random_below(&random, 6);
        s.codec %= 5;
        if (!test_random_one_in(&random, 8)) {
            s.flags = test_random_one_in(&random, 4) ? WHARF_JOB_COMPRESS : s.flags & 7;
            s.job_class &= 3;
            s.parameter = 0;
            s.encoder = s.level = 0;
            s.src_region = s.dst_region = 0;
            /* No job in flight writes where another one reads or writes: what comes of that is the
             * client's own race. */
            s.src_offset %= 2 * MiB - 4096;
            s.src_nbytes %= 4096;
            s.dst_offset = 2 * MiB + i % 128 * 16384 + s.dst_offset % 12288;
            s.dst_nbytes %= 4096;
            s.timeout_us %= 100;
        }
        if (s.opcode == WHARF_OP_BATCH && !test_random_one_in(&random, 4)) {
            s.src_nbytes &= ~(uint64_t)31;
            s.dst_nbytes = s.src_nbytes / 32 * 24;
            s.checksum = 0;
        }
        s.user_data = i;
        while (wharf_ring_room(&client.ring) == 0) {
            test_core_reap(&client);
            n_reaped++;
        }
        test_core_submit(&client, &s);
    }
    for (; n_reaped < 20000; n_reaped++)
        test_core_reap(&client);
    struct wharf_completion completion;
    cr_assert_eq(wharf_ring_reap(&client.ring, &completion), 0);
    cr_assert_eq(TEST_CORE_LOCKED(client.session->n_in_flight), 0);
    test_core_client_deinit(&client);
    test_core_stop();
}

/* ---- the lock ------------------------------------------------------------------------------ */

/* Without workers and a running loop, nobody else wants its lock. */
static struct wharf_core lone_core;
static bool has_had_it;

static void *have_it(void *unused)
{
    (void)unused;
    wharf_core_enter(&lone_core);
    has_had_it = true;
    wharf_core_leave(&lone_core);
    return NULL;
}

/* Who polls rings took the lock again before anybody who slept for it had come. */
Test(wharfd_core, who_sleeps_for_the_lock_has_it_before_who_polls)
{
    struct wharf_config config;
    struct wharf_loop *loop;
    pthread_t thread;

    wharf_config_init(&config);
    cr_assert_eq(wharf_loop_new(WHARF_LOOP_EPOLL, &loop), 0);
    cr_assert_eq(wharf_core_init(&lone_core, &config, loop), 0);
    for (unsigned i = 0; i < 20; i++) {
        has_had_it = false;
        wharf_core_enter(&lone_core);
        cr_assert_eq(pthread_create(&thread, NULL, have_it, NULL), 0);
        cr_assert(TEST_WAIT(__atomic_load_n(&lone_core.n_asleep, __ATOMIC_RELAXED) == 1));
        wharf_core_leave(&lone_core);
        wharf_core_enter_last(&lone_core, TEST_WAIT_LIMIT_NS);
        cr_assert(has_had_it);
        wharf_core_leave(&lone_core);
        pthread_join(thread, NULL);
    }
    /* It does not wait for ever. */
    __atomic_store_n(&lone_core.n_asleep, 1, __ATOMIC_RELAXED);
    wharf_core_enter_last(&lone_core, 1);
    __atomic_store_n(&lone_core.n_asleep, 0, __ATOMIC_RELAXED);
    wharf_core_leave(&lone_core);
    wharf_core_deinit(&lone_core);
    wharf_loop_free(loop);
    wharf_config_deinit(&config);
}
