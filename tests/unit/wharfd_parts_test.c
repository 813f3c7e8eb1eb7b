/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams with splits that the GPU's worker decodes in parts: as many as there are warps idle,
 * whole when there is more to do, with the outcome that one decoder gives; counted, not timed.
 */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/gpu/gpu_state.h"
#include "encoders/checksum.h"
#include "encoders/decode_job.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_core.h"
#include "tests/lib/test_poison.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_rans.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_worker.h"

#define KiB ((uint64_t)1 << 10)
/* An item's room; what is larger is decoded in parts only. */
#define CHUNK_NBYTES (64 * KiB)
#define ARENA_NBYTES (4 << 20)
/* Where sources and outputs are in the arena. */
#define OUT_AT (1 << 20)
#define OUT_STEP (128 * KiB)

TEST_POISON_TAKEN

static struct test_core_client client;

static void set_up(void)
{
    test_core_config_simt();
    test_core_config.gpu_pin_after_ns = 0;
    test_core_config.gpu_chunk_nbytes = CHUNK_NBYTES;
    test_core_start(1);
    test_core_client_init(&client, 1, "uid:1", 64, ARENA_NBYTES);
    test_core_wait_until_up();
}

static void tear_down(void)
{
    test_core_client_deinit(&client);
    test_core_stop();
}

static uint64_t n_parted(void)
{
    return TEST_CORE_LOCKED(test_core.fleet.n_parted_chunks);
}

static uint64_t n_parts(void)
{
    return TEST_CORE_LOCKED(test_core.fleet.n_parts);
}

static struct test_rans stream_of(uint32_t n_symbols, uint32_t n_splits, uint64_t seed)
{
    return test_rans_new(&(struct test_rans_plan){11, 1, 1, n_symbols, n_splits, 200, seed});
}

static struct wharf_submission submission_of(const struct test_rans *rans, uint64_t user_data)
{
    memcpy(client.arena, rans->stream, rans->stream_nbytes);
    return (struct wharf_submission){
        .user_data = user_data,
        .opcode = WHARF_OP_DECODE,
        .codec = WHARF_CODEC_RANS,
        .src_nbytes = rans->stream_nbytes,
        .dst_offset = OUT_AT,
        .dst_nbytes = rans->plain_nbytes,
    };
}

static struct wharf_completion run(const struct wharf_submission *submission)
{
    memset(client.arena + submission->dst_offset, 0, submission->dst_nbytes);
    test_core_submit(&client, submission);
    return test_core_reap(&client);
}

static void expect_good(const struct wharf_completion *completion, const struct test_rans *rans,
                        uint64_t at)
{
    cr_assert_eq(completion->result, WHARF_OK);
    cr_assert_eq(completion->out_nbytes, rans->plain_nbytes);
    cr_assert(memcmp(client.arena + at, rans->plain, rans->plain_nbytes) == 0);
}

/* The worker has two warps, and both decode it. */
Test(wharfd_parts, idle_warps_share_a_lone_chunk)
{
    struct test_rans rans = stream_of(60000, 20, 1);
    set_up();
    for (unsigned i = 0; i < 3; i++) {
        struct wharf_submission submission = submission_of(&rans, i);
        submission.flags = i == 1 ? WHARF_JOB_CHECKSUM : 0;
        submission.checksum = wharf_crc32(WHARF_CRC32_INIT, rans.plain, rans.plain_nbytes);
        struct wharf_completion completion = run(&submission);
        expect_good(&completion, &rans, OUT_AT);
        cr_expect_eq(completion.engine, WHARF_ENGINE_SIMT);
    }
    cr_expect_eq(n_parted(), 3);
    cr_expect_eq(n_parts(), 6);
    tear_down();
    test_rans_free(&rans);
}

/* Of many that come at once none is cut: each warp has one of its own. */
Test(wharfd_parts, chunks_are_whole_where_others_wait)
{
    enum { N = 8 };
    struct test_rans rans = stream_of(60000, 20, 2);
    set_up();
    /* Published together, so that nobody takes the first before the last is there. */
    for (unsigned i = 0; i < N; i++) {
        struct wharf_submission submission = submission_of(&rans, i);
        submission.dst_offset += i * OUT_STEP;
        wharf_ring_submit(&client.ring, &submission);
    }
    test_core_publish(&client);
    for (unsigned i = 0; i < N; i++) {
        struct wharf_completion completion = test_core_reap(&client);
        expect_good(&completion, &rans, OUT_AT + completion.user_data * OUT_STEP);
    }
    /* But for those that nothing waits behind at that moment. */
    cr_expect_lt(n_parted(), N / 2);
    tear_down();
    test_rans_free(&rans);
}

/* It is larger than an item may be, and has as many parts as that takes. */
Test(wharfd_parts, large_chunks_are_for_the_gpu_too)
{
    struct test_rans rans = stream_of(200000, 40, 3);
    set_up();
    for (unsigned i = 0; i < 2; i++) {
        struct wharf_submission submission = submission_of(&rans, i);
        struct wharf_completion completion = run(&submission);
        expect_good(&completion, &rans, OUT_AT);
        cr_expect_eq(completion.engine, WHARF_ENGINE_SIMT);
    }
    cr_expect_eq(n_parted(), 2);
    cr_expect_eq(n_parts(), 2 * ((2 * 200000 + CHUNK_NBYTES - 1) / CHUNK_NBYTES));
    tear_down();
    test_rans_free(&rans);
}

/* Of too few splits for that: who wants the GPU alone has it decoded in a place for large chunks,
 * and the next one in parts again. */
Test(wharfd_parts, what_cannot_be_cut_is_decoded_whole)
{
    struct test_rans large = stream_of(200000, 2, 4);
    struct test_rans small = stream_of(60000, 20, 5);
    set_up();
    struct wharf_submission submission = submission_of(&large, 1);
    struct wharf_completion completion = run(&submission);
    expect_good(&completion, &large, OUT_AT);
    cr_expect_eq(completion.engine, WHARF_ENGINE_SIMT);
    cr_expect_eq(TEST_CORE_LOCKED(test_core.fleet.n_parts_refused), 1);
    submission = submission_of(&small, 2);
    completion = run(&submission);
    expect_good(&completion, &small, OUT_AT);
    cr_expect_eq(completion.engine, WHARF_ENGINE_SIMT);
    tear_down();
    test_rans_free(&large);
    test_rans_free(&small);
}

/* Damaged anywhere, and in header and splits: the outcome of one decoder, whoever found it. */
Test(wharfd_parts, damage_has_the_outcome_of_one_decoder, .timeout = 600)
{
    struct test_random random = {6};
    uint8_t *out = malloc(40000);
    set_up();
    for (unsigned i = 0; i < 40; i++) {
        struct test_rans rans = stream_of(40000, 20, 100 + i);
        uint64_t limit = i % 2 ? 8 * rans.stream_nbytes : 4096;
        uint64_t bit = test_random_below(&random, limit);
        struct wharf_outcome want;
        rans.stream[bit / 8] ^= (uint8_t)(1u << bit % 8);
        cr_assert_null(test_rans_decode_all(rans.stream, rans.stream_nbytes, 0, out, 40000, &want));
        struct wharf_submission submission = submission_of(&rans, i);
        struct wharf_completion completion = run(&submission);
        cr_assert_eq(completion.result, want.result, "bit %lu", (unsigned long)bit);
        cr_assert_eq(completion.reason, want.reason, "bit %lu", (unsigned long)bit);
        cr_assert_eq(completion.bit_offset, want.bit_offset, "bit %lu", (unsigned long)bit);
        cr_assert_eq(completion.out_nbytes, want.out_nbytes);
        if (want.result == WHARF_OK)
            cr_assert(memcmp(client.arena + OUT_AT, out, want.out_nbytes) == 0);
        test_rans_free(&rans);
    }
    cr_expect_gt(n_parted(), 30);
    cr_expect_eq(TEST_CORE_LOCKED(test_core.fleet.gpus[0].n_ended), 0);
    tear_down();
    free(out);
}

/* As if by another process: a bit of header, model or splits. */
__attribute__((no_sanitize("thread"))) static void flip(struct test_random *random)
{
    uint64_t bit = test_random_below(random, (uint64_t)8 * 1200);

    ((volatile uint8_t *)client.arena)[bit / 8] ^= (uint8_t)(1u << bit % 8);
    usleep(20);
}

/* The source is another one for each of them: that is a bad chunk, or a good one, and no more. */
Test(wharfd_parts, a_source_that_is_written_meanwhile_harms_nobody)
{
    struct test_random random = {7};
    struct test_rans rans = stream_of(40000, 20, 7);
    set_up();
    for (unsigned i = 0; i < 20; i++) {
        struct wharf_submission submission = submission_of(&rans, i);
        uint8_t *behind = client.arena + OUT_AT + rans.plain_nbytes;
        memset(behind, 0xa5, 256);
        test_core_submit(&client, &submission);
        struct wharf_completion completion;
        while (wharf_ring_reap(&client.ring, &completion) == 0)
            flip(&random);
        cr_assert(completion.result == WHARF_OK || completion.result == WHARF_BAD_DATA ||
                  completion.result == WHARF_OUTPUT_TOO_SMALL ||
                  completion.result == WHARF_UNSUPPORTED);
        for (unsigned k = 0; k < 256; k++)
            cr_assert_eq(behind[k], 0xa5);
    }
    cr_expect_eq(TEST_CORE_LOCKED(test_core.fleet.gpus[0].n_ended), 0);
    tear_down();
    test_rans_free(&rans);
}

Test(wharfd_parts, a_stopped_chunk_is_completed_once)
{
    struct test_rans rans = stream_of(200000, 40, 8);
    set_up();
    for (unsigned i = 0; i < 10; i++) {
        struct wharf_submission submission = submission_of(&rans, 1);
        struct wharf_submission cancel = {
            .user_data = 2, .opcode = WHARF_OP_CANCEL, .src_offset = 1};
        test_core_submit(&client, &submission);
        usleep(i * 1000);
        test_core_submit(&client, &cancel);
        for (unsigned n = 0; n < 2; n++) {
            struct wharf_completion completion = test_core_reap(&client);
            if (completion.user_data == 1 && completion.result == WHARF_OK)
                expect_good(&completion, &rans, OUT_AT);
            else if (completion.user_data == 1)
                cr_assert_eq(completion.result, WHARF_CANCELLED);
        }
    }
    cr_expect_eq(TEST_CORE_LOCKED(client.session->tenant->n_gpu_items), 0);
    cr_expect_eq(TEST_CORE_LOCKED(test_core.fleet.n_gpu_tenants), 0);
    tear_down();
    test_rans_free(&rans);
}

/* A worker that ends in the middle of one part, when others of the chunk are done: it comes from
 * the CPU. */
Test(wharfd_parts, a_fault_in_one_part_loses_no_chunk)
{
    struct test_rans rans = stream_of(200000, 40, 9);
    set_up();
    struct wharf_submission submission = submission_of(&rans, TEST_POISON(WHARF_WORK_FAULT));
    struct wharf_completion completion = run(&submission);
    expect_good(&completion, &rans, OUT_AT);
    cr_expect_eq(completion.engine, WHARF_ENGINE_CPU);
    cr_expect_eq(completion.attempt, 1);
    cr_expect_eq(TEST_CORE_LOCKED(test_core.fleet.n_gpu_tenants), 0);
    tear_down();
    test_rans_free(&rans);
}

Test(wharfd_parts, killed_workers_lose_no_chunk, .timeout = 600)
{
    enum { N_KILLS = 5 };
    struct test_random random = {10};
    struct test_rans rans = stream_of(200000, 40, 10);
    unsigned n_of_cpu = 0;
    pid_t pid = 0;
    set_up();
    for (unsigned i = 0; i < N_KILLS; i++) {
        struct wharf_submission submission = submission_of(&rans, i);
        pid = test_worker_wait(getpid(), pid);
        cr_assert_neq(pid, 0);
        test_core_wait_until_up();
        /* At last one that has some of it for sure, and has not done it. */
        if (i == N_KILLS - 1) {
            test_core_wait_until_registered(&client);
            test_process_stop(pid);
        }
        test_core_submit(&client, &submission);
        if (i == N_KILLS - 1)
            cr_assert(TEST_WAIT(TEST_CORE_LOCKED(test_core.fleet.gpus[0].n_in_flight) > 0));
        else
            usleep((useconds_t)test_random_below(&random, 500 * i + 1));
        kill(pid, SIGKILL);
        struct wharf_completion completion = test_core_reap(&client);
        expect_good(&completion, &rans, OUT_AT);
        n_of_cpu += completion.engine == WHARF_ENGINE_CPU;
    }
    cr_expect_gt(n_of_cpu, 0);
    tear_down();
    test_rans_free(&rans);
}
