/* SPDX-License-Identifier: Apache-2.0 */
/* Background jobs that compress take idle processors alone: by counts and order. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/core/core.h"
#include "daemon/core/job.h"
#include "daemon/schedule/idle_work.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_core.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_wait.h"

#define MiB ((uint64_t)1 << 20)

enum { N_IDLE = 6, N_OTHERS = 10, PLAIN_NBYTES = 8192 };

/* ---- order --------------------------------------------------------------------------------- */

/* Numbers from 100 on: compresses the arena's first bytes. */
static struct wharf_submission compress_of(uint64_t number, uint8_t job_class)
{
    return (struct wharf_submission){
        .opcode = WHARF_OP_DECODE,
        .codec = WHARF_CODEC_DEFLATE,
        .flags = WHARF_JOB_COMPRESS,
        .job_class = job_class,
        .user_data = 100 + number,
        .src_nbytes = PLAIN_NBYTES,
        .dst_offset = MiB / 2 + number * 2 * PLAIN_NBYTES,
        .dst_nbytes = 2 * PLAIN_NBYTES,
    };
}

/* One worker, which finds all of it in the ring at once, compressing before decoding.  Returns how
 * many decodes were done before the first chunk was compressed. */
static unsigned decodes_before_the_first(uint8_t compress_class, uint8_t decode_class)
{
    uint8_t *plain = test_data_new(test_data_find("text"), 1, PLAIN_NBYTES);
    struct test_core_client client;
    unsigned n_before = 0, n_compressed = 0;

    test_core_start(1);
    test_core_client_init(&client, 2, "uid:2", 64, 2 * MiB);
    memcpy(client.arena, plain, PLAIN_NBYTES);
    size_t nbytes = test_core_put_chunk(&client, 64 * 1024, plain, PLAIN_NBYTES);
    for (unsigned i = 0; i < N_IDLE; i++) {
        struct wharf_submission s = compress_of(i, compress_class);
        wharf_ring_submit(&client.ring, &s);
    }
    for (unsigned i = 0; i < N_OTHERS; i++) {
        struct wharf_submission s =
            test_core_decode_of(i, 64 * 1024, nbytes, 128 * 1024 + i * PLAIN_NBYTES, PLAIN_NBYTES);
        s.job_class = decode_class;
        wharf_ring_submit(&client.ring, &s);
    }
    test_core_publish(&client);
    for (unsigned i = 0; i < N_IDLE + N_OTHERS; i++) {
        struct wharf_completion completion = test_core_reap(&client);
        cr_assert_eq(completion.result, WHARF_OK, "%u", completion.result);
        n_compressed += completion.user_data >= 100;
        n_before += completion.user_data < 100 && n_compressed == 0;
    }
    cr_assert_eq(n_compressed, N_IDLE);
    cr_assert_eq(TEST_CORE_LOCKED(test_core.idle_work.n_running), 0);
    cr_assert_eq(TEST_CORE_LOCKED(test_core.idle_work.n_pieces),
                 compress_class == WHARF_CLASS_BACKGROUND ? N_IDLE : 0);
    cr_assert_eq(TEST_CORE_LOCKED(client.session->tenant->stats.n_compressed), N_IDLE);
    test_core_client_deinit(&client);
    test_core_stop();
    free(plain);
    return n_before;
}

Test(wharfd_idle, nothing_is_begun_while_others_wait)
{
    wharf_config_init(&test_core_config);
    cr_assert_eq(decodes_before_the_first(WHARF_CLASS_BACKGROUND, WHARF_CLASS_NORMAL), N_OTHERS);
    cr_assert_eq(decodes_before_the_first(WHARF_CLASS_BACKGROUND, WHARF_CLASS_INTERACTIVE),
                 N_OTHERS);
    cr_assert_eq(decodes_before_the_first(WHARF_CLASS_BACKGROUND, WHARF_CLASS_BACKGROUND),
                 N_OTHERS);
}

/* A background job that decodes becomes a normal one at once here. */
Test(wharfd_idle, nothing_grows_old)
{
    wharf_config_init(&test_core_config);
    test_core_config.background_age_ns = 0;
    cr_assert_eq(decodes_before_the_first(WHARF_CLASS_BACKGROUND, WHARF_CLASS_NORMAL), N_OTHERS);
}

/* Others take their turn by the clock: first come, first served within a session. */
Test(wharfd_idle, normal_jobs_that_compress_have_their_turn)
{
    wharf_config_init(&test_core_config);
    cr_assert_eq(decodes_before_the_first(WHARF_CLASS_NORMAL, WHARF_CLASS_NORMAL), 0);
}

/* ---- cancelled, and gone ------------------------------------------------------------------- */

Test(wharfd_idle, those_that_wait_end_when_they_are_cancelled)
{
    struct test_core_client client;
    unsigned n_cancelled = 0;

    wharf_config_init(&test_core_config);
    test_core_start(1);
    test_core_client_init(&client, 2, "uid:2", 64, 2 * MiB);
    for (unsigned i = 0; i < N_IDLE; i++) {
        struct wharf_submission s = compress_of(i, WHARF_CLASS_BACKGROUND);
        s.user_data = 100;
        wharf_ring_submit(&client.ring, &s);
    }
    struct wharf_submission cancel = {.opcode = WHARF_OP_CANCEL, .user_data = 1, .src_offset = 100};
    wharf_ring_submit(&client.ring, &cancel);
    test_core_publish(&client);
    for (unsigned i = 0; i < N_IDLE + 1; i++) {
        struct wharf_completion completion = test_core_reap(&client);
        n_cancelled += completion.result == WHARF_CANCELLED;
    }
    /* All but the one that may have been begun. */
    cr_assert_geq(n_cancelled, N_IDLE - 1);
    cr_assert_eq(TEST_CORE_LOCKED(test_core.idle_work.n_running), 0);
    test_core_client_deinit(&client);
    test_core_stop();
}

/* ---- the throttle -------------------------------------------------------------------------- */

static struct wharf_piece take_kind(struct wharf_core *core, struct wharf_job *job,
                                    enum wharf_piece_kind kind, uint64_t waited_ns)
{
    struct wharf_piece piece = {.kind = kind, .job = job};

    job->taken_ns = 1000;
    wharf_idle_work_taken(core, &piece, 1000 + waited_ns);
    return piece;
}

static struct wharf_piece take(struct wharf_core *core, struct wharf_job *job, uint64_t waited_ns)
{
    return take_kind(core, job, WHARF_PIECE_CHUNK, waited_ns);
}

Test(wharfd_idle, jobs_that_wait_leave_it_fewer_workers)
{
    static struct wharf_core core;
    struct wharf_job idle = {.lane = WHARF_LANE_IDLE}, normal = {.lane = WHARF_LANE_NORMAL},
                     late = {.lane = WHARF_LANE_BACKGROUND};
    static const uint32_t expected[] = {8, 4, 2, 1, 1};

    core.workers.n_workers = 8;
    core.config.slice_ns = 500000;
    /* Nobody's fault: none was running. */
    take(&core, &normal, 600000);
    cr_assert_eq(wharf_idle_work_allowed(&core.idle_work, 8), 8);
    struct wharf_piece running = take(&core, &idle, 900000);
    cr_assert_eq(core.idle_work.n_running, 1);
    take(&core, &late, 900000);
    /* Nor has anybody waited for these: a batch's later slices, the done word of what has ended. */
    take_kind(&core, &normal, WHARF_PIECE_SLICE, 900000);
    take_kind(&core, &normal, WHARF_PIECE_WORD, 900000);
    take(&core, &normal, 400000);
    for (unsigned i = 0; i < 5; i++) {
        cr_assert_eq(wharf_idle_work_allowed(&core.idle_work, 8), expected[i], "%u", i);
        struct wharf_piece piece = take(&core, &normal, 600000);
        wharf_idle_work_ended(&core, &piece);
    }
    cr_assert_eq(core.idle_work.n_throttled, 5);
    cr_assert_eq(core.idle_work.n_running, 1);
    wharf_idle_work_ended(&core, &running);
}

/* Pieces of idle work that end and begin, and what they leave allowed. */
static uint32_t in_peace(struct wharf_core *core, struct wharf_piece *piece, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct wharf_job *job = piece->job;
        wharf_idle_work_ended(core, piece);
        *piece = take(core, job, 0);
    }
    return wharf_idle_work_allowed(&core->idle_work, core->workers.n_workers);
}

/* Sixteen pieces in peace give it one worker more, but not as many as delayed somebody. */
Test(wharfd_idle, what_delayed_a_job_is_tried_again_when_many_have_not_waited)
{
    static struct wharf_core core;
    struct wharf_job idle = {.lane = WHARF_LANE_IDLE}, normal = {.lane = WHARF_LANE_NORMAL};
    struct wharf_piece running[8];

    core.workers.n_workers = 8;
    core.config.slice_ns = 500000;
    for (unsigned i = 0; i < 8; i++)
        running[i] = take(&core, &idle, 0);
    take(&core, &normal, 600000);
    cr_assert_eq(in_peace(&core, &running[0], 0), 4);
    cr_assert_eq(in_peace(&core, &running[0], 2 * 16), 6);
    cr_assert_eq(in_peace(&core, &running[0], 32 * 16), 7);
    for (unsigned i = 0; i < 999; i++)
        take(&core, &normal, 0);
    cr_assert_eq(in_peace(&core, &running[0], 16), 7);
    take(&core, &normal, 0);
    cr_assert_eq(in_peace(&core, &running[0], 16), 8);
    /* Nobody else is left. */
    take(&core, &normal, 600000);
    cr_assert_eq(in_peace(&core, &running[0], 4095), 7);
    cr_assert_eq(in_peace(&core, &running[0], 16), 8);
    for (unsigned i = 0; i < 8; i++)
        wharf_idle_work_ended(&core, &running[i]);
    cr_assert_eq(core.idle_work.n_running, 0);
}

/* On a GPU: chunks that take longer beside idle work than alone, on average, halve it. */
Test(wharfd_idle, chunks_that_take_longer_leave_a_gpu_less_of_it)
{
    struct wharf_idle_work idle = {.n_running = 8};
    unsigned n = 0;

    for (; wharf_idle_work_allowed(&idle, 32) == 32 && n < 100; n++)
        wharf_idle_work_compare(&idle, 32, 1150000, 1000000);
    cr_assert(n > 8 && n < 32, "%u", n);
    cr_assert_eq(wharf_idle_work_allowed(&idle, 32), 16);
    for (unsigned i = 0; i < 1000; i++)
        wharf_idle_work_compare(&idle, 32, 1150000, 1000000);
    cr_assert_eq(wharf_idle_work_allowed(&idle, 32), 1);
    cr_assert_gt(idle.n_throttled, 5);
}

/* Times that scatter around what chunks take alone, and every fiftieth that meets something else,
 * tell of no strain. */
Test(wharfd_idle, noise_does_not_throttle)
{
    struct wharf_idle_work idle = {.n_running = 8};
    struct test_random random = {1};

    for (unsigned i = 0; i < 100000; i++) {
        uint64_t took_ns = 800000 + test_random_below(&random, 400000);
        wharf_idle_work_compare(&idle, 32, i % 50 == 0 ? 10 * took_ns : took_ns, 1000000);
    }
    cr_assert_eq(wharf_idle_work_allowed(&idle, 32), 32);
    cr_assert_eq(idle.n_throttled, 0);
}

/* What is withdrawn does not run, and is counted when it is begun again. */
Test(wharfd_idle, work_that_is_put_off_is_begun_again)
{
    struct wharf_idle_work idle = {.n_running = 0};
    struct wharf_job job = {.lane = WHARF_LANE_IDLE};
    struct wharf_piece piece = {.kind = WHARF_PIECE_CHUNK, .job = &job};
    static struct wharf_core core;

    wharf_idle_work_begin(&idle, &piece);
    wharf_idle_work_put_off(&idle, &piece);
    cr_assert_eq(idle.n_running, 0);
    cr_assert_eq(idle.n_withdrawn, 1);
    wharf_idle_work_begin(&idle, &piece);
    piece.in_nbytes = 100;
    wharf_idle_work_ended(&core, &piece);
    wharf_idle_work_ended(&core, &piece); /* it counts nowhere any more */
    cr_assert_eq(idle.n_running, 0);
    cr_assert_eq(idle.n_pieces, 2);
    cr_assert_eq(idle.nbytes, 100);
}

/* A batch that is cancelled while slices of it run: they are idle work until they have ended. */
Test(wharfd_idle, cancelled_batches_leave_none_running)
{
    enum { N_CHUNKS = 64, TABLE = MiB + MiB / 2 };
    struct test_core_client client;
    uint8_t *plain = test_data_new(test_data_find("text"), 1, PLAIN_NBYTES);

    wharf_config_init(&test_core_config);
    test_core_config.slice_ns = 1000;
    test_core_start(2);
    test_core_client_init(&client, 2, "uid:2", 64, 4 * MiB);
    memcpy(client.arena, plain, PLAIN_NBYTES);
    struct wharf_chunk *table = (struct wharf_chunk *)(client.arena + TABLE);
    for (unsigned i = 0; i < N_CHUNKS; i++)
        table[i] = (struct wharf_chunk){.src_nbytes = PLAIN_NBYTES,
                                        .dst_offset = 2 * MiB + i * 2 * PLAIN_NBYTES,
                                        .dst_nbytes = 2 * PLAIN_NBYTES};
    for (unsigned round = 0; round < 20; round++) {
        struct wharf_submission s = compress_of(0, WHARF_CLASS_BACKGROUND);
        s.opcode = WHARF_OP_BATCH;
        s.src_offset = TABLE;
        s.src_nbytes = N_CHUNKS * sizeof(*table);
        s.dst_offset = s.dst_nbytes = 0;
        test_core_submit(&client, &s);
        cr_assert(TEST_WAIT(TEST_CORE_LOCKED(test_core.idle_work.n_pieces) >= 3));
        struct wharf_submission cancel = {
            .opcode = WHARF_OP_CANCEL, .user_data = 1, .src_offset = 100};
        test_core_submit(&client, &cancel);
        for (unsigned i = 0; i < 2; i++)
            test_core_reap(&client);
        cr_assert_eq(TEST_CORE_LOCKED(test_core.idle_work.n_running), 0, "round %u", round);
        test_core.idle_work.n_pieces = 0;
    }
    test_core_client_deinit(&client);
    test_core_stop();
    free(plain);
}
