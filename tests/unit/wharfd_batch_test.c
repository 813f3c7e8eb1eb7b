/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches: their tables, their results, and how they are cancelled.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/wharf_job.h"
#include "tests/lib/test_core.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_wait.h"

#define MiB ((uint64_t)1 << 20)

enum { N_CHUNKS = 300, SMALL = 3000, TABLE = 8 << 20, RESULTS = 9 << 20, OUTPUTS = 4 << 20 };

/* A batch of N_CHUNKS chunks in the arena, all of the same data; odd alignments. */
static struct wharf_submission put_batch(struct test_core_client *client, const uint8_t *plain)
{
    size_t nbytes = test_core_put_chunk(client, 5, plain, SMALL);
    struct wharf_chunk chunk = {
        .src_offset = 5,
        .src_nbytes = (uint32_t)nbytes,
        .dst_nbytes = SMALL,
    };

    for (unsigned i = 0; i < N_CHUNKS; i++) {
        chunk.dst_offset = OUTPUTS + i * SMALL;
        memcpy(client->arena + TABLE + 3 + i * sizeof(chunk), &chunk, sizeof(chunk));
    }
    return (struct wharf_submission){
        .opcode = WHARF_OP_BATCH,
        .codec = WHARF_CODEC_ZLIB,
        .user_data = 1234,
        .src_offset = TABLE + 3,
        .src_nbytes = N_CHUNKS * sizeof(chunk),
        .dst_offset = RESULTS + 1,
        .dst_nbytes = N_CHUNKS * sizeof(struct wharf_chunk_result),
    };
}

static struct wharf_chunk_result result_of(const struct test_core_client *client, unsigned i)
{
    struct wharf_chunk_result result;

    memcpy(&result, client->arena + RESULTS + 1 + i * sizeof(result), sizeof(result));
    return result;
}

/* A member of an entry of the table, at whatever alignment. */
#define ENTRY_AT(client, i, member)                                                                \
    ((client)->arena + TABLE + 3 + (i) * sizeof(struct wharf_chunk) +                              \
     offsetof(struct wharf_chunk, member))

Test(wharfd_batch, batch_is_decoded_whole, .init = test_core_set_up)
{
    uint8_t *plain = test_data_new(test_data_find("text"), 1, SMALL);
    struct test_core_client client;

    test_core_client_init(&client, 1, "uid:1", 8, 16 * MiB);
    struct wharf_submission batch = put_batch(&client, plain);
    uint32_t in_nbytes;
    memcpy(&in_nbytes, ENTRY_AT(&client, 0, src_nbytes), 4);
    test_core_submit(&client, &batch);
    struct wharf_completion completion = test_core_reap(&client);
    cr_assert_eq(completion.result, WHARF_OK);
    cr_assert_eq(completion.flags, WHARF_COMPLETION_RESULTS);
    cr_assert_eq(completion.out_nbytes, N_CHUNKS * SMALL);
    cr_assert_eq(completion.in_nbytes, (uint64_t)N_CHUNKS * in_nbytes);
    cr_assert_eq(completion.engine, WHARF_ENGINE_CPU);
    for (unsigned i = 0; i < N_CHUNKS; i++) {
        cr_assert_arr_eq(client.arena + OUTPUTS + i * SMALL, plain, SMALL);
        cr_assert_eq(result_of(&client, i).result, WHARF_OK);
        cr_assert_eq(result_of(&client, i).out_nbytes, SMALL);
        cr_assert_eq(result_of(&client, i).engine, WHARF_ENGINE_CPU);
    }
    cr_assert_eq(TEST_CORE_LOCKED(test_core.tenants.n), 1);
    cr_assert_eq(TEST_CORE_LOCKED(client.session->tenant->used.memory_nbytes), 0);
    cr_assert_eq(TEST_CORE_LOCKED(client.session->regions[0].n_users), 0);
    test_core_client_deinit(&client);
    test_core_stop();
    free(plain);
}

Test(wharfd_batch, first_bad_chunk_is_the_lowest_and_others_are_decoded, .init = test_core_set_up)
{
    static const uint8_t nonsense[8] = {0x78, 0x9c, 0xff};
    uint8_t *plain = test_data_new(test_data_find("text"), 1, SMALL);
    struct test_core_client client;

    test_core_client_init(&client, 1, "uid:1", 8, 16 * MiB);
    struct wharf_submission batch = put_batch(&client, plain);
    memcpy(client.arena + 6 * MiB, nonsense, sizeof(nonsense));
    for (unsigned i = 250; i >= 50; i -= 50) {
        uint64_t offset = 6 * MiB;
        memcpy(ENTRY_AT(&client, i, src_offset), &offset, sizeof(offset));
    }
    test_core_submit(&client, &batch);
    struct wharf_completion completion = test_core_reap(&client);
    cr_assert_eq(completion.result, WHARF_BAD_DATA);
    cr_assert_eq(completion.reason, WHARF_REASON_DEFLATE_BLOCK_TYPE);
    cr_assert_eq(completion.bit_offset, 16);
    cr_assert_eq(completion.first_bad_chunk, 50);
    cr_assert_eq(completion.flags, WHARF_COMPLETION_RESULTS);
    cr_assert_eq(completion.out_nbytes, 0);
    for (unsigned i = 0; i < N_CHUNKS; i++) {
        bool is_bad = i % 50 == 0 && i > 0 && i <= 250;
        cr_assert_eq(result_of(&client, i).result, is_bad ? WHARF_BAD_DATA : WHARF_OK);
        if (!is_bad)
            cr_assert_arr_eq(client.arena + OUTPUTS + i * SMALL, plain, SMALL);
    }
    test_core_client_deinit(&client);
    test_core_stop();
    free(plain);
}

Test(wharfd_batch, bad_table_entry_stops_a_batch_before_it_begins, .init = test_core_set_up)
{
    uint8_t *plain = test_data_new(test_data_find("text"), 1, SMALL);
    struct test_core_client client;
    uint64_t offset = 16 * MiB - 1;
    uint16_t region = 9;

    test_core_client_init(&client, 1, "uid:1", 8, 16 * MiB);
    struct wharf_submission batch = put_batch(&client, plain);
    memcpy(ENTRY_AT(&client, 299, dst_offset), &offset, sizeof(offset));
    test_core_submit(&client, &batch);
    struct wharf_completion completion = test_core_reap(&client);
    cr_assert_eq(completion.result, WHARF_BAD_REQUEST);
    cr_assert_eq(completion.reason, WHARF_REASON_REQUEST_RANGE);
    cr_assert_eq(completion.first_bad_chunk, 299);
    cr_assert_eq(completion.flags, 0);
    memcpy(ENTRY_AT(&client, 150, src_region), &region, sizeof(region));
    test_core_submit(&client, &batch);
    completion = test_core_reap(&client);
    cr_assert_eq(completion.reason, WHARF_REASON_REQUEST_REGION);
    cr_assert_eq(completion.first_bad_chunk, 150);
    for (unsigned i = 0; i < N_CHUNKS * SMALL; i++)
        cr_assert_eq(client.arena[OUTPUTS + i], 0, "something was decoded");
    cr_assert_eq(TEST_CORE_LOCKED(client.session->tenant->used.memory_nbytes), 0);
    cr_assert_eq(TEST_CORE_LOCKED(client.session->regions[0].n_users), 0);
    test_core_client_deinit(&client);
    test_core_stop();
    free(plain);
}

Test(wharfd_batch, batch_sizes_are_checked, .init = test_core_set_up)
{
    struct test_core_client client;

    test_core_client_init(&client, 1, "uid:1", 8, 16 * MiB);
    struct wharf_submission s = {.opcode = WHARF_OP_BATCH, .codec = WHARF_CODEC_ZLIB};
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_BATCH);
    s.src_nbytes = 33;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_BATCH);
    s.src_nbytes = 2001 * 32;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_BATCH);
    s.src_nbytes = 64;
    s.dst_nbytes = 24;
    s.dst_offset = 64;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_BATCH);
    s.dst_nbytes = 0;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_BATCH);
    s.dst_nbytes = 48;
    s.dst_offset = 63;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_OVERLAP);
    s.dst_offset = 64;
    s.checksum = 1;
    test_core_refused(&client, &s, WHARF_REASON_REQUEST_RESERVED);
    s.checksum = 0;
    /* Zeroes are two chunks of nothing: that is truncated data. */
    test_core_submit(&client, &s);
    struct wharf_completion completion = test_core_reap(&client);
    cr_assert_eq(completion.result, WHARF_BAD_DATA);
    cr_assert_eq(completion.reason, WHARF_REASON_INPUT_TRUNCATED);
    test_core_client_deinit(&client);
    test_core_stop();
}

Test(wharfd_batch, batch_over_the_memory_quota_is_quota, .init = test_core_set_up)
{
    uint8_t *plain = test_data_new(test_data_find("text"), 1, SMALL);
    struct test_core_client client;

    test_core_client_init(&client, 1, "uid:1", 8, 16 * MiB);
    wharf_core_enter(&test_core);
    client.session->tenant->quota.max_memory_nbytes = 1000;
    wharf_core_leave(&test_core);
    struct wharf_submission batch = put_batch(&client, plain);
    test_core_submit(&client, &batch);
    cr_assert_eq(test_core_reap(&client).result, WHARF_QUOTA);
    test_core_client_deinit(&client);
    test_core_stop();
    free(plain);
}
/* Waits until a chunk of a batch is done: its result is there. */
static void wait_for_result(const struct test_core_client *client, unsigned i)
{
    cr_assert(TEST_WAIT(result_of(client, i).engine != WHARF_ENGINE_AUTO), "chunk %u was not begun",
              i);
}

/* Once this waited for some time instead of for the first chunk, and a batch that was cancelled
 * before it was opened has no results. */
Test(wharfd_batch, cancelled_batch_stops_between_chunks)
{
    /* Work for ten seconds and more, so that it is not done before the cancel comes. */
    enum { N = 4000, LARGE = 2 << 20 };
    struct test_core_client client;
    uint8_t *plain = test_data_new(test_data_find("text"), 1, LARGE);
    unsigned n_ok = 0, n_cancelled = 0;

    wharf_config_init(&test_core_config);
    test_core_start(1);
    test_core_client_init(&client, 1, "uid:1", 8, 16 * MiB);
    size_t nbytes = test_core_put_chunk(&client, 0, plain, LARGE);
    cr_assert_leq(nbytes, OUTPUTS);
    for (unsigned i = 0; i < N; i++) {
        struct wharf_chunk chunk = {
            .src_nbytes = (uint32_t)nbytes, .dst_offset = OUTPUTS, .dst_nbytes = LARGE};
        memcpy(client.arena + TABLE + i * sizeof(chunk), &chunk, sizeof(chunk));
    }
    struct wharf_submission s = {
        .opcode = WHARF_OP_BATCH,
        .codec = WHARF_CODEC_ZLIB,
        .user_data = 3,
        .src_offset = TABLE,
        .src_nbytes = N * sizeof(struct wharf_chunk),
        .dst_offset = RESULTS + 1,
        .dst_nbytes = N * sizeof(struct wharf_chunk_result),
    };
    test_core_submit(&client, &s);
    wait_for_result(&client, 0);
    s = (struct wharf_submission){.opcode = WHARF_OP_CANCEL, .src_offset = 3};
    test_core_submit(&client, &s);
    test_core_sleep(&client, 2);
    struct wharf_completion completion;
    while (wharf_ring_reap(&client.ring, &completion) == 1) {
        if (completion.user_data != 3)
            continue;
        cr_assert_eq(completion.result, WHARF_CANCELLED);
        cr_assert_eq(completion.flags, WHARF_COMPLETION_RESULTS);
    }
    for (unsigned i = 0; i < N; i++) {
        n_ok += result_of(&client, i).result == WHARF_OK;
        n_cancelled += result_of(&client, i).result == WHARF_CANCELLED;
    }
    cr_assert_eq(n_ok + n_cancelled, N);
    cr_assert_gt(n_ok, 0);
    cr_assert_gt(n_cancelled, 0);
    test_core_client_deinit(&client);
    test_core_stop();
    free(plain);
}
