/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains: batches whose sources are outputs of earlier batches wait for these, hold nothing
 * meanwhile, and end with the number of the first part that is not good.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "proto/ring_ops.h"
#include "tests/lib/test_core.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_pack.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_wait.h"

#define MiB ((uint64_t)1 << 20)

/* Places in the arena. */
enum {
    N_BLOCKS = 40,
    BLOCK = 700,
    N_PLAIN = 20000,
    SOURCES = 0,
    MIDDLE = 1 << 20,
    OUTPUT = 2 << 20,
    PARTS = 3 << 20,
    RESULTS = (3 << 20) + 100000,
    ORDER = (3 << 20) + 200000,
    CHAIN = (3 << 20) + 300000,
    CHAIN_RESULTS = (3 << 20) + 400000,
    N_ENTRIES = 512,
};

static struct test_core_client client;
static uint64_t *starts;
static uint8_t *plain, *stream;
static size_t stream_nbytes;
static unsigned n_blocks;
static uint16_t middle_region;

static void put(uint64_t offset, const void *from, size_t nbytes)
{
    memcpy(client.arena + offset, from, nbytes);
}

/* The table of the batch before: a stream of run lengths, in blocks of zlib, and results that are
 * not good yet. */
static void put_blocks(void)
{
    uint64_t at = SOURCES;

    n_blocks = 0;
    for (size_t from = 0; from < stream_nbytes; from += BLOCK, n_blocks++) {
        size_t nbytes = stream_nbytes - from < BLOCK ? stream_nbytes - from : BLOCK;
        struct wharf_chunk chunk = {.src_offset = at,
                                    .dst_offset = MIDDLE + from,
                                    .dst_nbytes = (uint32_t)nbytes,
                                    .dst_region = middle_region};
        chunk.src_nbytes = (uint32_t)test_core_put_chunk(&client, at, stream + from, nbytes);
        put(PARTS + n_blocks * sizeof(chunk), &chunk, sizeof(chunk));
        at += chunk.src_nbytes;
    }
    memset(client.arena + RESULTS, 0xff, n_blocks * sizeof(struct wharf_chunk_result));
    cr_assert(n_blocks > 20 && n_blocks < N_BLOCKS, "%u blocks", n_blocks);
}

static void fill(void)
{
    plain = test_data_new(test_data_find("text"), 1, N_PLAIN);
    stream = test_pack(WHARF_CODEC_BYTERLE, NULL, plain, N_PLAIN, &stream_nbytes);
    put_blocks();
}

static void set_up(void)
{
    wharf_config_init(&test_core_config);
    test_core_config.quota.max_start_ns = 3600 * (uint64_t)WHARF_NS_PER_S;
    test_core_start(2);
    test_core_client_init(&client, 1, "uid:1", N_ENTRIES, 4 * MiB);
    starts = test_core_add_starts(&client, 4096);
    fill();
}

static void tear_down(void)
{
    test_core_client_deinit(&client);
    test_core_stop();
    free(stream);
    free(plain);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static struct wharf_submission blocks_of(unsigned first, unsigned n)
{
    return (struct wharf_submission){
        .opcode = WHARF_OP_BATCH,
        .codec = WHARF_CODEC_ZLIB,
        .user_data = 1000 + first,
        .src_offset = PARTS + first * sizeof(struct wharf_chunk),
        .src_nbytes = n * sizeof(struct wharf_chunk),
        .dst_offset = RESULTS + first * sizeof(struct wharf_chunk_result),
        .dst_nbytes = n * sizeof(struct wharf_chunk_result),
    };
}

/* Submits it, held by start word 0 or not.  Returns its index. */
static uint32_t submit(struct wharf_submission submission, bool is_held)
{
    const struct wharf_submission_words words = {.start_region = 2, .start_serial = 1};
    uint32_t index = client.ring.sq_tail;

    if (is_held) {
        submission.flags |= WHARF_SUBMISSION_START_WORD;
        wharf_ring_submit_words(&client.ring, &words);
    }
    wharf_ring_submit(&client.ring, &submission);
    test_core_publish(&client);
    return index;
}

static void let_begin(void)
{
    wharf_ring_store_start(starts, WHARF_START_VALUE(1));
}

static struct wharf_chain whole_chain(void)
{
    return (struct wharf_chain){
        .parts_offset = PARTS, .results_offset = RESULTS, .n_parts = n_blocks};
}

/* A chain number `number` of one chunk, behind the submission of that index. */
static struct wharf_submission chain_of(unsigned number, const struct wharf_chain *chain,
                                        uint32_t first, uint32_t n, uint32_t after)
{
    const struct wharf_chunk chunk = {.src_offset = first,
                                      .src_nbytes = n,
                                      .dst_offset = OUTPUT + (number % 32) * N_PLAIN,
                                      .dst_nbytes = N_PLAIN};
    uint64_t table = CHAIN + number * (sizeof(*chain) + sizeof(chunk));

    put(table, chain, sizeof(*chain));
    put(table + sizeof(*chain), &chunk, sizeof(chunk));
    return (struct wharf_submission){
        .opcode = WHARF_OP_BATCH,
        .codec = WHARF_CODEC_BYTERLE,
        .flags = WHARF_SUBMISSION_CHAIN,
        .user_data = number,
        .src_offset = table,
        .src_nbytes = sizeof(*chain) + sizeof(chunk),
        .dst_offset = CHAIN_RESULTS + number * sizeof(struct wharf_chunk_result),
        .dst_nbytes = sizeof(struct wharf_chunk_result),
        .checksum = after,
    };
}

static struct wharf_submission whole(unsigned number, uint32_t after)
{
    const struct wharf_chain chain = whole_chain();

    return chain_of(number, &chain, 0, n_blocks, after);
}

static void expect_columns(unsigned number)
{
    cr_expect_arr_eq(client.arena + OUTPUT + (number % 32) * N_PLAIN, plain, N_PLAIN);
}

static struct wharf_completion reap_job(uint64_t user_data)
{
    struct wharf_completion completion = test_core_reap(&client);

    cr_assert_eq(completion.user_data, user_data, "job %lu", (unsigned long)completion.user_data);
    return completion;
}

static void expect_end(struct wharf_completion completion, uint32_t result, uint32_t reason,
                       uint64_t part)
{
    cr_expect(completion.result == result && completion.reason == reason &&
                  completion.bit_offset == part && completion.first_bad_chunk == 0 &&
                  completion.engine == WHARF_ENGINE_AUTO && !completion.flags,
              "%s, %s at %lu in %u", wharf_result_name(completion.result),
              wharf_reason_name(completion.reason), (unsigned long)completion.bit_offset,
              completion.first_bad_chunk);
}

/* ---- good ones ------------------------------------------------------------------------------- */

Test(wharfd_chain, waits_for_its_parts_and_decodes_them, .init = set_up, .fini = tear_down)
{
    uint32_t blocks = submit(blocks_of(0, n_blocks), true);

    for (unsigned i = 0; i < 3; i++)
        submit(whole(i, blocks), false);
    cr_assert(TEST_WAIT(TEST_CORE_LOCKED(client.session->n_in_flight) == 4));
    /* All workers are there for others, and none for them. */
    cr_assert(TEST_WAIT(TEST_CORE_LOCKED(test_core.workers.n_sleeping) == 2));
    cr_assert_not(test_core_has_completion(&client));
    let_begin();
    cr_expect_eq(reap_job(1000).result, WHARF_OK);
    for (unsigned i = 0; i < 3; i++) {
        struct wharf_completion completion = test_core_reap(&client);
        cr_expect_eq(completion.result, WHARF_OK);
        cr_expect_eq(completion.in_nbytes, stream_nbytes);
        cr_expect_eq(completion.out_nbytes, N_PLAIN);
        cr_expect_eq(completion.flags, WHARF_COMPLETION_RESULTS);
        expect_columns((unsigned)completion.user_data);
    }
    cr_expect_eq(TEST_CORE_LOCKED(client.session->tenant->used.memory_nbytes), 0);
    cr_expect_eq(TEST_CORE_LOCKED(test_core.n_waiting), 0);
    cr_expect_eq(TEST_CORE_LOCKED(client.session->regions[0].n_users), 0);
}

Test(wharfd_chain, needs_no_job_that_has_ended, .init = set_up, .fini = tear_down)
{
    uint32_t blocks = submit(blocks_of(0, n_blocks), false);

    cr_assert_eq(reap_job(1000).result, WHARF_OK);
    /* The one before, one that never was, and itself. */
    const uint32_t after[] = {blocks, blocks + 77, blocks + 3};
    for (unsigned i = 0; i < 3; i++) {
        submit(whole(i, after[i]), false);
        cr_expect_eq(reap_job(i).result, WHARF_OK);
        expect_columns(i);
    }
}

/* Blocks of two batches take turns, and the second batch waits for the first one. */
Test(wharfd_chain, parts_of_two_batches_in_order, .init = set_up, .fini = tear_down)
{
    struct wharf_chunk chunks[N_BLOCKS], sorted[N_BLOCKS];
    uint32_t order[N_BLOCKS], n_even = (n_blocks + 1) / 2;
    struct wharf_chain chain = whole_chain();

    memcpy(chunks, client.arena + PARTS, sizeof(chunks));
    for (uint32_t i = 0; i < n_blocks; i++) {
        order[i] = i % 2 ? n_even + i / 2 : i / 2;
        sorted[order[i]] = chunks[i];
    }
    put(PARTS, sorted, n_blocks * sizeof(sorted[0]));
    put(ORDER, order, n_blocks * sizeof(order[0]));
    chain.order_offset = ORDER;
    chain.n_order = n_blocks;
    submit(blocks_of(0, n_even), false);
    cr_assert_eq(reap_job(1000).result, WHARF_OK);
    uint32_t second = submit(blocks_of(n_even, n_blocks - n_even), true);
    submit(chain_of(0, &chain, 0, n_blocks, second), false);
    let_begin();
    cr_expect_eq(reap_job(1000 + n_even).result, WHARF_OK);
    cr_expect_eq(reap_job(0).result, WHARF_OK);
    expect_columns(0);
    /* One that is not there. */
    order[7] = n_blocks;
    put(ORDER, order, n_blocks * sizeof(order[0]));
    submit(chain_of(1, &chain, 0, n_blocks, second), false);
    expect_end(reap_job(1), WHARF_BAD_REQUEST, WHARF_REASON_CHAIN_PLACE, 7);
}

/* What one chain gives, another one takes. */
Test(wharfd_chain, chain_behind_a_chain, .init = set_up, .fini = tear_down)
{
    const struct wharf_chunk columns = {.dst_offset = OUTPUT, .dst_nbytes = N_PLAIN};
    struct wharf_chain chain = {
        .parts_offset = PARTS + 40000, .results_offset = CHAIN_RESULTS, .n_parts = 1};
    uint32_t blocks = submit(blocks_of(0, n_blocks), true);
    uint32_t middle = submit(whole(0, blocks), false);

    put(PARTS + 40000, &columns, sizeof(columns));
    memset(client.arena + CHAIN_RESULTS, 0xff, sizeof(struct wharf_chunk_result));
    struct wharf_submission last = chain_of(1, &chain, 0, 1, middle);
    last.codec = WHARF_CODEC_STORED;
    submit(last, false);
    let_begin();
    for (unsigned i = 0; i < 3; i++)
        cr_expect_eq(test_core_reap(&client).result, WHARF_OK);
    expect_columns(1);
}

Test(wharfd_chain, many_wait_for_one, .init = set_up, .fini = tear_down)
{
    uint32_t blocks = submit(blocks_of(0, n_blocks), true);

    for (unsigned i = 0; i < 400; i++)
        submit(whole(i, blocks), false);
    cr_assert(TEST_WAIT(TEST_CORE_LOCKED(client.session->n_in_flight) == 401));
    let_begin();
    for (unsigned i = 0; i < 401; i++)
        cr_expect_eq(test_core_reap(&client).result, WHARF_OK);
    cr_expect_eq(TEST_CORE_LOCKED(test_core.n_waiting), 0);
}

/* ---- parts that are not good ----------------------------------------------------------------- */

static void submit_both(unsigned number)
{
    memset(client.arena + RESULTS, 0xff, n_blocks * sizeof(struct wharf_chunk_result));
    submit(whole(number, submit(blocks_of(0, n_blocks), false)), false);
    test_core_reap(&client);
}

static struct wharf_chunk *part(unsigned i)
{
    return (struct wharf_chunk *)(void *)(client.arena + PARTS) + i;
}

Test(wharfd_chain, ends_with_the_first_part_that_is_not_good, .init = set_up, .fini = tear_down)
{
    client.arena[part(11)->src_offset + part(11)->src_nbytes / 2] ^= 0x40;
    client.arena[part(15)->src_offset + 3] ^= 0xff;
    submit_both(0);
    struct wharf_completion completion = reap_job(0);
    cr_expect_neq(completion.result, WHARF_OK);
    expect_end(completion, completion.result, WHARF_REASON_CHAIN_PART, 11);
    put_blocks();
    /* Short of its place by a byte. */
    part(5)->dst_nbytes++;
    submit_both(1);
    expect_end(reap_job(1), WHARF_OUTPUT_SHORT, WHARF_REASON_CHAIN_GAP, 5);
    put_blocks();
    part(6)->dst_offset += 100000;
    submit_both(2);
    expect_end(reap_job(2), WHARF_BAD_REQUEST, WHARF_REASON_CHAIN_PLACE, 6);
    put_blocks();
    /* The last one may be short. */
    part(n_blocks - 1)->dst_nbytes += 9;
    submit_both(3);
    cr_expect_eq(reap_job(3).result, WHARF_OK);
    expect_columns(3);
}

Test(wharfd_chain, ends_with_a_job_that_is_cancelled, .init = set_up, .fini = tear_down)
{
    uint32_t blocks = submit(blocks_of(0, n_blocks), true);
    const struct wharf_submission cancel = {
        .opcode = WHARF_OP_CANCEL, .user_data = 7, .src_offset = 1000};

    submit(whole(0, blocks), false);
    submit(cancel, false);
    for (unsigned i = 0; i < 3; i++) {
        struct wharf_completion completion = test_core_reap(&client);
        if (completion.user_data == 0)
            expect_end(completion, WHARF_CANCELLED, WHARF_REASON_CHAIN_PART, 0);
        else
            cr_expect_eq(completion.result, completion.user_data == 7 ? WHARF_OK : WHARF_CANCELLED);
    }
}

/* ---- chains that end while they wait --------------------------------------------------------- */

Test(wharfd_chain, can_be_cancelled_and_run_out_of_time, .init = set_up, .fini = tear_down)
{
    uint32_t blocks = submit(blocks_of(0, n_blocks), true);
    const struct wharf_submission cancel = {
        .opcode = WHARF_OP_CANCEL, .user_data = 7, .src_offset = 0};
    struct wharf_submission late = whole(1, blocks);

    submit(whole(0, blocks), false);
    submit(cancel, false);
    for (unsigned i = 0; i < 2; i++) {
        struct wharf_completion completion = test_core_reap(&client);
        cr_expect_eq(completion.result, completion.user_data == 7 ? WHARF_OK : WHARF_CANCELLED);
    }
    late.timeout_us = 20000;
    submit(late, false);
    cr_expect_eq(reap_job(1).result, WHARF_DEADLINE);
    submit(whole(2, blocks), false);
    let_begin();
    cr_expect_eq(reap_job(1000).result, WHARF_OK);
    cr_expect_eq(reap_job(2).result, WHARF_OK);
    expect_columns(2);
    cr_expect_eq(TEST_CORE_LOCKED(test_core.n_waiting), 0);
}

/* Its client goes: while it waits, and while it does not any more. */
Test(wharfd_chain, ends_with_its_session, .init = set_up, .fini = tear_down)
{
    for (unsigned round = 0; round < 12; round++) {
        uint32_t blocks = submit(blocks_of(0, n_blocks), round % 2 == 0);
        for (unsigned i = 0; i < 30; i++)
            blocks = submit(whole(i, i % 3 ? blocks : blocks - i), false);
        test_core_client_deinit(&client);
        cr_assert_eq(TEST_CORE_LOCKED(test_core.n_waiting), 0);
        munmap(starts, 4096);
        test_core_client_init(&client, 2 + round, "uid:1", N_ENTRIES, 4 * MiB);
        starts = test_core_add_starts(&client, 4096);
        put_blocks();
    }
    submit_both(0);
    cr_expect_eq(reap_job(0).result, WHARF_OK);
}

/* ---- hostile ones ---------------------------------------------------------------------------- */

Test(wharfd_chain, refuses_what_is_no_chain, .init = set_up, .fini = tear_down)
{
    struct wharf_submission good = whole(0, 0), bad = good;

    bad.opcode = WHARF_OP_DECODE;
    test_core_refused(&client, &bad, WHARF_REASON_REQUEST_FLAGS);
    bad = good;
    bad.flags |= WHARF_JOB_COMPRESS;
    test_core_refused(&client, &bad, WHARF_REASON_REQUEST_FLAGS);
    bad = good;
    bad.flags |= WHARF_SUBMISSION_START_WORD;
    test_core_refused(&client, &bad, WHARF_REASON_REQUEST_FLAGS);
    for (uint32_t nbytes = 0; nbytes <= sizeof(struct wharf_chain); nbytes += 32) {
        bad = good;
        bad.src_nbytes = nbytes;
        test_core_refused(&client, &bad, WHARF_REASON_REQUEST_BATCH);
    }
    bad = good;
    bad.dst_nbytes += sizeof(struct wharf_chunk_result);
    test_core_refused(&client, &bad, WHARF_REASON_REQUEST_BATCH);
#define MEMBER(name) offsetof(struct wharf_chain, name), sizeof(((struct wharf_chain *)0)->name)
    const struct {
        size_t at, nbytes;
        uint64_t value;
        uint32_t first, n, reason;
    } rows[] = {
        {MEMBER(n_parts), 0, 0, 1, WHARF_REASON_REQUEST_BATCH},
        {MEMBER(n_parts), UINT32_MAX, 0, 1, WHARF_REASON_REQUEST_BATCH},
        {MEMBER(n_order), UINT32_MAX, 0, 1, WHARF_REASON_REQUEST_BATCH},
        /* While the order is somewhere. */
        {MEMBER(n_order), 0, 0, 1, WHARF_REASON_REQUEST_RESERVED},
        {MEMBER(reserved_0), 1, 0, 1, WHARF_REASON_REQUEST_RESERVED},
        {MEMBER(reserved_1), 1, 0, 1, WHARF_REASON_REQUEST_RESERVED},
        {MEMBER(reserved_3), 1, 0, 1, WHARF_REASON_REQUEST_RESERVED},
        {MEMBER(parts_region), 9, 0, 1, WHARF_REASON_REQUEST_REGION},
        {MEMBER(results_region), 9, 0, 1, WHARF_REASON_REQUEST_REGION},
        {MEMBER(order_region), 9, 0, 1, WHARF_REASON_REQUEST_REGION},
        {MEMBER(parts_offset), 4 * MiB - 1, 0, 1, WHARF_REASON_REQUEST_RANGE},
        {MEMBER(results_offset), UINT64_MAX - 3, 0, 1, WHARF_REASON_REQUEST_RANGE},
        {MEMBER(order_offset), 4 * MiB - 3, 0, 1, WHARF_REASON_REQUEST_RANGE},
        {MEMBER(n_parts), 5, 0, 0, WHARF_REASON_REQUEST_BATCH},
        {MEMBER(n_parts), 5, 0, 6, WHARF_REASON_REQUEST_BATCH},
        {MEMBER(n_parts), 5, 6, 1, WHARF_REASON_REQUEST_BATCH},
        {MEMBER(n_parts), 5, 4, UINT32_MAX, WHARF_REASON_REQUEST_BATCH},
    };
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct wharf_chain chain = whole_chain();
        chain.order_offset = ORDER;
        chain.n_order = 5;
        memcpy((uint8_t *)&chain + rows[i].at, &rows[i].value, rows[i].nbytes);
        submit(chain_of(0, &chain, rows[i].first, rows[i].n, 0), false);
        struct wharf_completion completion = reap_job(0);
        cr_expect(completion.result == WHARF_BAD_REQUEST && completion.reason == rows[i].reason,
                  "row %u: %s", i, wharf_reason_name(completion.reason));
    }
    cr_expect_eq(TEST_CORE_LOCKED(client.session->regions[0].n_users), 0);
}

/* More parts than a batch may have chunks, by naming the same ones again. */
Test(wharfd_chain, names_no_more_parts_than_a_batch_has_chunks, .init = set_up, .fini = tear_down)
{
    const struct wharf_chain chain = whole_chain();
    uint64_t most = client.session->max_batch_chunks, n_chunks = most / n_blocks + 1;
    struct wharf_chunk chunk = {
        .src_nbytes = n_blocks, .dst_offset = OUTPUT, .dst_nbytes = N_PLAIN};

    submit(blocks_of(0, n_blocks), false);
    reap_job(1000);
    put(CHAIN, &chain, sizeof(chain));
    for (uint64_t i = 0; i < n_chunks; i++)
        put(CHAIN + sizeof(chain) + i * sizeof(chunk), &chunk, sizeof(chunk));
    for (unsigned more = 0; more < 2; more++) {
        uint64_t n = n_chunks - 1 + more;
        struct wharf_submission many = whole(0, 0);
        put(CHAIN + sizeof(chain), &chunk, sizeof(chunk));
        many.src_nbytes = sizeof(chain) + n * sizeof(chunk);
        many.dst_offset = many.dst_nbytes = 0;
        submit(many, false);
        struct wharf_completion completion = reap_job(0);
        cr_expect_eq(completion.result, more ? WHARF_BAD_REQUEST : WHARF_OK);
        cr_expect_eq(completion.first_bad_chunk, more ? n - 1 : 0);
    }
}

#ifndef __SANITIZE_THREAD__
/* Tables of which some bits are not good, and chains that do not wait for their parts: races that
 * such a client makes itself. */
Test(wharfd_chain, any_tables_give_an_end, .init = set_up, .fini = tear_down)
{
    struct test_random random = {5};
    unsigned n_good = 0;

    for (unsigned round = 0; round < 3000; round++) {
        struct wharf_chain chain = whole_chain();
        uint32_t after = client.ring.sq_tail - (uint32_t)test_random_below(&random, 3);
        put_blocks();
        if (round % 4 == 0)
            submit(blocks_of(0, n_blocks), false);
        struct wharf_submission submission = chain_of(0, &chain, 0, n_blocks, after);
        for (unsigned n = (unsigned)test_random_below(&random, 4); n > 0; n--) {
            uint64_t places[] = {CHAIN, PARTS, RESULTS};
            uint64_t at = places[test_random_below(&random, 3)] + test_random_below(&random, 96);
            client.arena[at] ^= (uint8_t)(1 << test_random_below(&random, 8));
        }
        submit(submission, false);
        for (unsigned n = round % 4 == 0 ? 2 : 1; n > 0; n--) {
            struct wharf_completion completion = test_core_reap(&client);
            n_good += completion.user_data == 0 && completion.result == WHARF_OK;
        }
    }
    cr_expect_gt(n_good, 20);
    cr_expect_eq(TEST_CORE_LOCKED(client.session->regions[0].n_users), 0);
}
#endif
