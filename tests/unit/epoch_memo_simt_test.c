/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_memo_simt_test: an epoch that keeps decoded chunks, on the SIMT layer: what comes again has
 * the outcome and the bytes of decoding, and nothing else counts as the same.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test_guard.h"
#include "tests/lib/test_pack.h"
#include "tests/lib/test_rounds.h"
#include "tests/unit/epoch_items.h"

enum { N_PARTS = 2, PART_NBYTES = 128 << 10, PLAIN_NBYTES = 6000 };

static const uint32_t codecs[] = {WHARF_CODEC_DEFLATE, WHARF_CODEC_ZLIB, WHARF_CODEC_GZIP};
enum { N_CODECS = sizeof(codecs) / sizeof(codecs[0]) };

static const uint64_t owner = WHARF_MEMO_OWNER(0, 1);

/* What completions say. */
enum {
    IS_NEW = WHARF_MEMO_LOOKED | WHARF_MEMO_KEPT,
    IS_HIT = WHARF_MEMO_LOOKED | WHARF_MEMO_HIT,
    IS_NOTHING = WHARF_MEMO_LOOKED, /* neither found nor kept */
};

static void open_epoch(struct test_epoch *t, const struct wharf_epoch_config *base)
{
    struct wharf_epoch_config config = *base;

    config.memo_nbytes = N_PARTS * (uint64_t)PART_NBYTES;
    config.memo_parts = N_PARTS;
    config.memo_key[0] = 0x01234567;
    config.memo_key[1] = 0x89abcdef;
    test_epoch_open(t, &wharf_simt_epoch, &config);
}

/* A chunk, at its end of a mapping. */
struct chunk {
    struct test_guard src, dst;
    struct wharf_work_item item;
    uint8_t plain[PLAIN_NBYTES];
};

static struct chunk *chunk_new(unsigned seed, uint32_t codec)
{
    struct test_random random = {seed + 1};
    struct chunk *chunk = malloc(sizeof(*chunk));
    size_t nbytes;

    fill(&random, chunk->plain, PLAIN_NBYTES);
    uint8_t *stream = test_pack(codec, NULL, chunk->plain, PLAIN_NBYTES, &nbytes);
    chunk->src = test_guard_copy(stream, nbytes, TEST_GUARD_END);
    chunk->dst = test_guard_new(PLAIN_NBYTES, TEST_GUARD_END);
    chunk->item = (struct wharf_work_item){
        .src = address_of(chunk->src.data),
        .dst = address_of(chunk->dst.data),
        .src_nbytes = (uint32_t)nbytes,
        .dst_nbytes = PLAIN_NBYTES,
        .codec = (uint16_t)codec,
        .staging = owner,
        .opcode = WHARF_WORK_DECODE,
    };
    free(stream);
    return chunk;
}

static void chunk_free(struct chunk *chunk)
{
    test_guard_free(&chunk->src);
    test_guard_free(&chunk->dst);
    free(chunk);
}

/* Runs it; all must be as the processor says, and the completion say what is expected. */
static void run(struct test_epoch *t, struct chunk *chunk, uint32_t part)
{
    static uint8_t expected[CHUNK_NBYTES];
    const struct wharf_work_item *item = &chunk->item;

    memset(chunk->dst.data, 0x5a, chunk->dst.nbytes);
    struct wharf_work_completion completion = test_epoch_run(t, item);
    struct wharf_outcome outcome = cpu_outcome(item, expected);
    expect(&completion, outcome.result, outcome.reason, (uint32_t)outcome.in_nbytes,
           (uint32_t)outcome.out_nbytes);
    cr_expect_eq(completion.bit_offset, outcome.bit_offset);
    cr_expect_eq(completion.part, part, "codec %u: %x, not %x", item->codec, completion.part, part);
    if (outcome.result == WHARF_OK)
        cr_expect_eq(memcmp((void *)(uintptr_t)item->dst, expected, outcome.out_nbytes), 0);
}

/* ---- what comes again ---------------------------------------------------------------------- */

static void check_repeats(const struct wharf_epoch_config *config)
{
    static uint8_t memory[2][CHUNK_NBYTES];
    struct test_epoch t;

    open_epoch(&t, config);
    for (unsigned i = 0; i < TEST_ROUNDS(4 * N_CODECS); i++) {
        struct chunk *chunk = chunk_new(i, codecs[i % N_CODECS]);
        run(&t, chunk, IS_NEW);
        run(&t, chunk, IS_HIT);
        /* At other alignments, and in the device's memory. */
        chunk->item.src =
            address_of(memcpy(memory[0] + i % 17, chunk->src.data, chunk->src.nbytes));
        run(&t, chunk, IS_HIT);
        chunk->item.output = WHARF_WORK_TO_DEVICE;
        chunk->item.dst = address_of(memory[1] + 5 * i % 19);
        run(&t, chunk, IS_HIT);
        chunk_free(chunk);
    }
    test_epoch_close(&t);
}

Test(epoch_memo, repeated_chunks_are_copied_by_warps)
{
    struct wharf_epoch_config config = one_kernel();

    check_repeats(&config);
}

Test(epoch_memo, repeated_chunks_are_copied_by_blocks)
{
    check_repeats(&base_config);
}

/* A kept output is held against each job's own flags and checksum. */
Test(epoch_memo, flags_and_checksums_count_for_each_job)
{
    struct wharf_epoch_config config = one_kernel();
    struct chunk *chunk = chunk_new(1, WHARF_CODEC_DEFLATE);
    struct test_epoch t;

    open_epoch(&t, &config);
    for (unsigned flags = 0; flags < 8; flags++) {
        chunk->item.flags = (uint16_t)flags;
        chunk->item.checksum = flags;
        run(&t, chunk, flags == 0 ? IS_NEW : IS_HIT);
    }
    /* With a byte behind the stream. */
    static uint8_t longer[CHUNK_NBYTES];
    chunk->item.src = address_of(memcpy(longer, chunk->src.data, chunk->src.nbytes));
    chunk->item.src_nbytes++;
    for (unsigned flags = 0; flags < 8; flags++) {
        chunk->item.flags = (uint16_t)flags;
        run(&t, chunk, flags == 0 ? IS_NEW : IS_HIT);
    }
    chunk_free(chunk);
    test_epoch_close(&t);
}

/* ---- what is not the same ------------------------------------------------------------------ */

Test(epoch_memo, any_difference_counts)
{
    struct wharf_epoch_config config = one_kernel();
    struct chunk *chunk = chunk_new(1, WHARF_CODEC_DEFLATE);
    struct wharf_work_item item = chunk->item;
    struct test_epoch t;

    open_epoch(&t, &config);
    run(&t, chunk, IS_NEW);
    /* A larger capacity is another one. */
    static uint8_t larger[PLAIN_NBYTES + 1];
    chunk->item.dst_nbytes++;
    chunk->item.dst = address_of(larger);
    run(&t, chunk, IS_NEW);
    chunk->item = item;
    chunk->item.codec = WHARF_CODEC_ZLIB;
    run(&t, chunk, IS_NOTHING);
    chunk->item = item;
    chunk->item.parameter = 1;
    struct wharf_work_completion completion = test_epoch_run(&t, &chunk->item);
    cr_expect_eq(completion.part & WHARF_MEMO_HIT, 0);
    chunk->item = item;
    chunk->item.src_nbytes--;
    run(&t, chunk, IS_NOTHING);
    chunk->item = item;
    run(&t, chunk, IS_HIT);
    chunk_free(chunk);
    test_epoch_close(&t);
}

/* Bad ones are decoded each time, with one verdict; good ones as what they are. */
Test(epoch_memo, errors_are_never_kept)
{
    struct wharf_epoch_config config = one_kernel();
    struct test_random random = {3};
    struct test_epoch t;

    open_epoch(&t, &config);
    for (unsigned i = 0; i < TEST_ROUNDS(60); i++) {
        static uint8_t damaged[CHUNK_NBYTES];
        struct chunk *chunk = chunk_new(i % N_CODECS, codecs[i % N_CODECS]);
        chunk->item.src = address_of(memcpy(damaged, chunk->src.data, chunk->src.nbytes));
        damaged[test_random_below(&random, chunk->src.nbytes)] ^= 1
                                                                  << test_random_below(&random, 8);
        struct wharf_work_completion first = test_epoch_run(&t, &chunk->item);
        if (first.result == WHARF_OK)
            run(&t, chunk, IS_HIT);
        else
            run(&t, chunk, IS_NOTHING);
        cr_expect_eq(first.part, first.result == WHARF_OK ? IS_NEW : IS_NOTHING);
        chunk_free(chunk);
    }
    test_epoch_close(&t);
}

Test(epoch_memo, other_codecs_and_items_without_an_owner_are_not_looked_for)
{
    struct wharf_epoch_config config = one_kernel();
    struct test_epoch t;

    open_epoch(&t, &config);
    struct chunk *chunk = chunk_new(1, WHARF_CODEC_LZ4);
    run(&t, chunk, 0);
    run(&t, chunk, 0);
    chunk_free(chunk);
    chunk = chunk_new(1, WHARF_CODEC_GZIP);
    chunk->item.staging = 0;
    run(&t, chunk, 0);
    run(&t, chunk, 0);
    /* A part that there is not. */
    chunk->item.staging = WHARF_MEMO_OWNER(N_PARTS, 1);
    run(&t, chunk, 0);
    chunk_free(chunk);
    test_epoch_close(&t);
}

Test(epoch_memo, without_memory_nothing_is_kept)
{
    struct wharf_epoch_config config = one_kernel();
    struct chunk *chunk = chunk_new(1, WHARF_CODEC_GZIP);
    struct wharf_epoch_info info;
    struct test_epoch t;

    test_epoch_open(&t, &wharf_simt_epoch, &config);
    run(&t, chunk, 0);
    run(&t, chunk, 0);
    wharf_simt_epoch.info(t.epoch, &info);
    cr_expect_eq(info.memo_nbytes, 0);
    test_epoch_close(&t);
    chunk_free(chunk);
}

/* ---- owners ---------------------------------------------------------------------------------- */

/* In different parts at the same time, or in one part one after the other. */
Test(epoch_memo, owners_share_nothing)
{
    struct wharf_epoch_config config = one_kernel();
    struct chunk *chunk = chunk_new(1, WHARF_CODEC_GZIP);
    struct test_epoch t;

    open_epoch(&t, &config);
    run(&t, chunk, IS_NEW);
    chunk->item.staging = WHARF_MEMO_OWNER(1, 2);
    run(&t, chunk, IS_NEW);
    chunk->item.staging = owner;
    run(&t, chunk, IS_HIT);
    chunk->item.staging = WHARF_MEMO_OWNER(0, 3);
    run(&t, chunk, IS_NEW);
    run(&t, chunk, IS_HIT);
    chunk_free(chunk);
    test_epoch_close(&t);
}

/* A chunk's share of a part's memory. */
enum { MOST_THERE = PART_NBYTES / PLAIN_NBYTES, N_MANY = 3 * MOST_THERE };

/* The first evicts nothing of whom the part was before, the other part keeps what it had. */
Test(epoch_memo, what_one_owner_evicts_is_its_own)
{
    struct wharf_epoch_config config = one_kernel();
    struct chunk *other = chunk_new(1000, WHARF_CODEC_GZIP);
    struct chunk *chunks[N_MANY];
    uint32_t n_evicted = 0;
    struct test_epoch t;

    open_epoch(&t, &config);
    other->item.staging = WHARF_MEMO_OWNER(1, 2);
    run(&t, other, IS_NEW);
    for (unsigned i = 0; i < N_MANY; i++) {
        chunks[i] = chunk_new(i, WHARF_CODEC_ZLIB);
        uint32_t part = test_epoch_run(&t, &chunks[i]->item).part;
        cr_expect_eq(part % WHARF_MEMO_EVICTED, IS_NEW);
        n_evicted += part / WHARF_MEMO_EVICTED;
    }
    /* All that went in and found no more room. */
    cr_expect_gt(n_evicted, N_MANY - MOST_THERE - 1);
    run(&t, other, IS_HIT);
    /* The youngest are there, the oldest gone. */
    run(&t, chunks[N_MANY - 1], IS_HIT);
    run(&t, chunks[N_MANY - 2], IS_HIT);
    cr_expect_eq(test_epoch_run(&t, &chunks[0]->item).part & WHARF_MEMO_HIT, 0);
    for (unsigned i = 0; i < 4; i++) {
        chunks[i]->item.staging = WHARF_MEMO_OWNER(0, 5);
        run(&t, chunks[i], IS_NEW);
    }
    for (unsigned i = 0; i < N_MANY; i++)
        chunk_free(chunks[i]);
    chunk_free(other);
    test_epoch_close(&t);
}

/* ---- many at once ---------------------------------------------------------------------------- */

/* Warps find, keep and evict the same chunks at the same time.  Each output is that of its chunk.
 */
Test(epoch_memo, warps_share_what_is_kept)
{
    enum { N_CHUNKS = 40, N_WARPS = 9 };
    struct wharf_epoch_config config = one_kernel();
    struct test_random random = {4};
    struct chunk *chunks[N_CHUNKS];
    struct test_epoch t;
    unsigned n_left = 0, n_hits = 0, n_evicted = 0;

    config.n_warps = N_WARPS;
    open_epoch(&t, &config);
    for (unsigned i = 0; i < N_CHUNKS; i++)
        chunks[i] = chunk_new(i % (N_CHUNKS - 5), codecs[i % (N_CHUNKS - 5) % N_CODECS]);
    for (unsigned round = 0; round < TEST_ROUNDS(12); round++) {
        /* Mostly the same few; all their outputs apart. */
        unsigned most = test_random_one_in(&random, 3) ? N_CHUNKS : 12;
        unsigned first = (unsigned)test_random_below(&random, N_CHUNKS - most + 1);
        for (unsigned i = first; i < first + most; i++, n_left++) {
            memset(chunks[i]->dst.data, 0x5a, chunks[i]->dst.nbytes);
            (void)test_epoch_submit(&t, &chunks[i]->item);
        }
        test_epoch_publish(&t);
        for (; n_left > 0; n_left--) {
            struct wharf_work_completion completion = test_epoch_await(&t);
            cr_expect_eq(completion.result, WHARF_OK);
            n_hits += (completion.part & WHARF_MEMO_HIT) != 0;
            n_evicted += completion.part / WHARF_MEMO_EVICTED;
        }
        for (unsigned i = first; i < first + most; i++)
            cr_expect_eq(memcmp(chunks[i]->dst.data, chunks[i]->plain, PLAIN_NBYTES), 0);
    }
    cr_expect_gt(n_hits, 0);
    cr_expect_gt(n_evicted, 0);
    for (unsigned i = 0; i < N_CHUNKS; i++)
        chunk_free(chunks[i]);
    test_epoch_close(&t);
}
