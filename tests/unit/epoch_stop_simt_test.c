/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_stop_simt_test: items that are cancelled, before they begin and in the middle, and kernels
 * that quit, whatever they do.
 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "encoders/blosc/blosc_format.h"
#include "tests/lib/test_pack.h"
#include "tests/unit/epoch_items.h"

/* ---- cancelling ---------------------------------------------------------------------------- */

/* Nothing of them is done: they are cancelled while no kernel is there. */
Test(epoch_stop, does_not_begin_cancelled_items)
{
    static uint8_t data[CHUNK_NBYTES * 4], out[CHUNK_NBYTES * 4];
    struct test_epoch t;
    memset(data, 1, sizeof(data));
    test_epoch_open(&t, &wharf_simt_epoch, &base_config);
    wharf_work_park(&t.queue, 1);
    struct wharf_work_item copied = stored_item(data, sizeof(data), out);
    struct wharf_work_item decoded = stored_item(data, 100, out);
    decoded.flags = WHARF_JOB_CHECKSUM;
    for (unsigned i = 0; i < 10; i++) {
        uint32_t index = test_epoch_submit(&t, i % 2 ? &copied : &decoded);
        cr_expect(test_epoch_cancel(&t, index));
    }
    test_epoch_unpark(&t);
    while (t.n_under_way) {
        struct wharf_work_completion completion = test_epoch_await(&t);
        expect(&completion, WHARF_CANCELLED, 0, 0, 0);
    }
    for (size_t i = 0; i < sizeof(out); i++)
        cr_assert_eq(out[i], 0);
    test_epoch_close(&t);
}

/* Cancels of all kinds of items, also of those that are done, and more than there is room for: each
 * item is completed, as cancelled or well, and only those that were meant are cancelled. */
Test(epoch_stop, cancels_the_item_that_is_meant)
{
    static uint8_t data[100], out[100];
    struct test_random random = {5};
    struct wharf_work_completion completion;
    struct test_epoch t;
    bool meant[N_ENTRIES] = {false};
    unsigned n_cancelled = 0, n_done = 0;

    test_epoch_open(&t, &wharf_simt_epoch, &base_config);
    for (unsigned i = 0; i < 3000; i++) {
        struct wharf_work_item item = stored_item(data, sizeof(data), out);
        item.flags = i % 2 ? WHARF_JOB_CHECKSUM : 0;
        item.checksum = 0x6612f0e0; /* not that of the data: BAD_CHECKSUM is well done too */
        uint32_t index = test_epoch_submit(&t, &item);
        meant[index % N_ENTRIES] = false;
        test_epoch_publish(&t);
        if (test_random_one_in(&random, 2))
            meant[index % N_ENTRIES] = test_epoch_cancel(&t, index);
        while (test_epoch_reap(&t, &completion) ||
               (!test_epoch_has_room(&t) && (completion = test_epoch_await(&t), true))) {
            bool cancelled = completion.result == WHARF_CANCELLED;
            cr_expect(!cancelled || meant[completion.item % N_ENTRIES]);
            n_cancelled += cancelled;
            n_done += !cancelled;
        }
    }
    while (t.n_under_way) {
        completion = test_epoch_await(&t);
        n_done++;
    }
    cr_expect_gt(n_cancelled, 10);
    cr_expect_gt(n_done, 1000);
    test_epoch_close(&t);
}

/* ---- long decodes -------------------------------------------------------------------------- */

/* What a decode writes to is its own memory, so that one sees how far it is.  All of it would take
 * seconds. */
enum { LONG_NBYTES = 4 << 20, TAIL_NBYTES = 256, UNWRITTEN = 0xa5 };
static uint8_t long_out[LONG_NBYTES];

static bool is_written(const uint8_t *at, size_t nbytes)
{
    for (size_t i = 0; i < nbytes; i++)
        if (__atomic_load_n(&at[i], __ATOMIC_RELAXED) != UNWRITTEN)
            return true;
    return false;
}

static void await_written(const uint8_t *at, enum wharf_codec codec)
{
    struct timespec pause = {.tv_nsec = 50000};

    for (unsigned i = 0; i < 1000000 && !is_written(at, TAIL_NBYTES); i++)
        nanosleep(&pause, NULL);
    cr_assert(is_written(at, TAIL_NBYTES), "codec %d does not begin", codec);
}

/* Submits one and waits until it has begun. */
static uint32_t begin_long(struct test_epoch *t, enum wharf_codec codec, uint8_t **ret_stream)
{
    struct test_random random = {8};
    size_t stream_nbytes;
    uint8_t *data = malloc(LONG_NBYTES);

    fill(&random, data, LONG_NBYTES);
    *ret_stream = test_pack(codec, NULL, data, LONG_NBYTES, &stream_nbytes);
    free(data);
    memset(long_out, UNWRITTEN, sizeof(long_out));
    struct wharf_work_item item = stored_item(*ret_stream, (uint32_t)stream_nbytes, long_out);
    item.codec = (uint16_t)codec;
    item.dst_nbytes = LONG_NBYTES;
    item.output = WHARF_WORK_TO_DEVICE;
    uint32_t index = test_epoch_submit(t, &item);
    test_epoch_publish(t);
    await_written(long_out, codec);
    return index;
}

/* How often a decode is begun that was done each time before this thread had its turn. */
enum { MOST_TRIES = 20 };

/* Begins one and cancels it; how it was completed. */
static struct wharf_work_completion cancel_long(struct test_epoch *t, enum wharf_codec codec)
{
    uint8_t *stream;
    uint32_t index = begin_long(t, codec, &stream);

    cr_expect(test_epoch_cancel(t, index));
    struct wharf_work_completion completion = test_epoch_await(t);
    free(stream);
    return completion;
}

/* Without a look in between, a decode that was cancelled goes on to its end. */
Test(epoch_stop, stops_a_decode_that_is_cancelled)
{
    static const enum wharf_codec codecs[] = {
        WHARF_CODEC_DEFLATE, WHARF_CODEC_RLE1,   WHARF_CODEC_RLE2, WHARF_CODEC_BYTERLE,
        WHARF_CODEC_LZ4,     WHARF_CODEC_SNAPPY, WHARF_CODEC_RANS};
    struct wharf_epoch_config config = base_config;
    struct test_epoch t;
    config.chunk_nbytes = 2 * LONG_NBYTES;
    test_epoch_open(&t, &wharf_simt_epoch, &config);
    for (unsigned i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++) {
        struct wharf_work_completion completion = cancel_long(&t, codecs[i]);
        for (unsigned n = 1; n < MOST_TRIES && completion.result == WHARF_OK; n++)
            completion = cancel_long(&t, codecs[i]);
        expect(&completion, WHARF_CANCELLED, 0, 0, 0);
        cr_expect_not(is_written(long_out + LONG_NBYTES - TAIL_NBYTES, TAIL_NBYTES), "codec %d",
                      codecs[i]);
    }
    test_epoch_close(&t);
}

/* ---- filters of Blosc ---------------------------------------------------------------------- */

enum { BLOCK_NBYTES = 1 << 20, BLOSC_NBYTES = WHARF_BLOSC_EXTENDED_NBYTES + 8 + BLOCK_NBYTES };

static void put_32(uint8_t *to, uint32_t v)
{
    for (unsigned i = 0; i < 4; i++)
        to[i] = (uint8_t)(v >> 8 * i);
}

/* A chunk of one block, which is there as it was before compression, with as many planes as there
 * can be, in order six times. */
static uint8_t *many_planes(void)
{
    struct test_random random = {9};
    uint8_t *chunk = calloc(1, BLOSC_NBYTES);

    chunk[0] = WHARF_BLOSC_VERSION_MAX;
    chunk[2] = WHARF_BLOSC_SHUFFLED | WHARF_BLOSC_BITS_SHUFFLED | WHARF_BLOSC_NOT_SPLIT;
    chunk[3] = 255;
    put_32(chunk + 4, BLOCK_NBYTES);
    put_32(chunk + 8, BLOCK_NBYTES);
    put_32(chunk + 12, BLOSC_NBYTES);
    memset(chunk + WHARF_BLOSC_HEADER_NBYTES, WHARF_BLOSC_FILTER_BITSHUFFLE, WHARF_BLOSC_N_FILTERS);
    put_32(chunk + WHARF_BLOSC_EXTENDED_NBYTES, WHARF_BLOSC_EXTENDED_NBYTES + 4);
    put_32(chunk + WHARF_BLOSC_EXTENDED_NBYTES + 4, BLOCK_NBYTES);
    fill(&random, chunk + WHARF_BLOSC_EXTENDED_NBYTES + 8, BLOCK_NBYTES - TAIL_NBYTES);
    memset(chunk + BLOSC_NBYTES - TAIL_NBYTES, UNWRITTEN, TAIL_NBYTES);
    return chunk;
}

/* They took minutes for the largest chunk, and nothing could stop them. */
Test(epoch_stop, stops_filters_of_blosc)
{
    struct wharf_epoch_config config = base_config;
    uint8_t *chunk = many_planes(), *whole = malloc(BLOCK_NBYTES);
    struct wharf_work_item item = stored_item(chunk, BLOSC_NBYTES, long_out);
    bool is_whole = true;
    struct test_epoch t;
    config.chunk_nbytes = 2 * BLOCK_NBYTES;
    test_epoch_open(&t, &wharf_simt_epoch, &config);
    item.codec = WHARF_CODEC_BLOSC;
    item.dst_nbytes = BLOCK_NBYTES;
    item.output = WHARF_WORK_TO_DEVICE;
    struct wharf_work_completion completion = test_epoch_run(&t, &item);
    expect(&completion, WHARF_OK, 0, BLOSC_NBYTES, BLOCK_NBYTES);
    memcpy(whole, long_out, BLOCK_NBYTES);
    for (unsigned n = 0; n < MOST_TRIES && is_whole; n++) {
        memset(long_out, UNWRITTEN, BLOCK_NBYTES);
        uint32_t index = test_epoch_submit(&t, &item);
        test_epoch_publish(&t);
        /* The stream leaves them as they are. */
        await_written(long_out + BLOCK_NBYTES - TAIL_NBYTES, WHARF_CODEC_BLOSC);
        cr_expect(test_epoch_cancel(&t, index));
        completion = test_epoch_await(&t);
        is_whole = memcmp(whole, long_out, BLOCK_NBYTES) == 0;
    }
    expect(&completion, WHARF_CANCELLED, 0, 0, 0);
    cr_expect_not(is_whole);
    test_epoch_close(&t);
    free(chunk);
    free(whole);
}

/* ---- what runs beside it ------------------------------------------------------------------- */

/* Items one after the other, more than there are places; false if the long one, which has this
 * index, ended before they did. */
static bool run_beside(struct test_epoch *t, uint32_t long_index, unsigned n)
{
    uint8_t data[16] = "sixteen letters", out[16];

    for (unsigned i = 0; i < n; i++) {
        struct wharf_work_item item = stored_item(data, sizeof(data), out);
        if (i % 2)
            item = (struct wharf_work_item){.opcode = WHARF_WORK_NOOP};
        memset(out, 0, sizeof(out));
        cr_assert(test_epoch_has_room(t), "item %u finds no place", i);
        struct wharf_work_completion completion = test_epoch_run(t, &item);
        if (completion.item == long_index) {
            test_epoch_await(t);
            return false;
        }
        cr_assert_eq(completion.result, WHARF_OK);
        cr_assert(i % 2 || memcmp(out, data, sizeof(data)) == 0);
    }
    return true;
}

/* Its place kept all items waiting whose indices had come round to it, until it had ended. */
Test(epoch_stop, long_item_holds_nobody_up)
{
    enum { N_ROUNDS = 3 };
    struct wharf_epoch_config config = one_kernel();
    bool is_beside = false;
    struct test_epoch t;
    config.chunk_nbytes = LONG_NBYTES;
    test_epoch_open(&t, &wharf_simt_epoch, &config);
    for (unsigned n = 0; n < MOST_TRIES && !is_beside; n++) {
        uint8_t *stream;
        uint32_t index = begin_long(&t, WHARF_CODEC_DEFLATE, &stream);
        if (run_beside(&t, index, N_ROUNDS * N_ENTRIES)) {
            cr_assert_eq(t.submitter.tail, index + 1 + N_ROUNDS * N_ENTRIES + N_ROUNDS);
            cr_expect(test_epoch_cancel(&t, index));
            struct wharf_work_completion completion = test_epoch_await(&t);
            cr_expect_eq(completion.item, index);
            is_beside = completion.result == WHARF_CANCELLED;
        }
        free(stream);
    }
    cr_expect(is_beside);
    test_epoch_close(&t);
}

/* Likewise when the kernel is to quit. */
Test(epoch_stop, stops_a_decode_when_it_quits)
{
    struct wharf_epoch_config config = base_config;
    bool is_whole = true;
    config.chunk_nbytes = LONG_NBYTES;
    for (unsigned n = 0; n < MOST_TRIES && is_whole; n++) {
        struct test_epoch t;
        uint8_t *stream;
        test_epoch_open(&t, &wharf_simt_epoch, &config);
        begin_long(&t, WHARF_CODEC_DEFLATE, &stream);
        test_epoch_close(&t);
        is_whole = is_written(long_out + LONG_NBYTES - TAIL_NBYTES, TAIL_NBYTES);
        free(stream);
    }
    cr_expect_not(is_whole);
}

/* With work under way, waiting, and none. */
Test(epoch_stop, quits_whatever_it_does)
{
    static uint8_t data[70000], out[70000];
    for (unsigned i = 0; i < 20; i++) {
        struct wharf_work_item item = stored_item(data, sizeof(data), out);
        struct test_epoch t;
        test_epoch_open(&t, &wharf_simt_epoch, &base_config);
        for (unsigned k = 0; k < 3 * i; k++)
            test_epoch_submit(&t, &item);
        test_epoch_publish(&t);
        struct timespec pause = {.tv_nsec = (long)i * 30000};
        nanosleep(&pause, NULL);
        test_epoch_close(&t);
    }
}
