/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_simt_test: epoch kernels on the SIMT layer, with the calling thread as the front: every
 * item is completed once, with the CPU engine's outcome, whenever it comes: while a kernel runs,
 * leaves, is parked or is not there.
 *
 * The thread sanitizer cannot follow warps, which are coroutines; what it would look at, the
 * handshake of leaving, is in models/epoch.pml.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "encoders/codec.h"
#include "encoders/decode_job.h"
#include "tests/lib/test_epoch.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_random.h"

enum { N_ENTRIES = 64, CHUNK_NBYTES = 8192 };

/* Few items go to the kernel of blocks: one by one, or up to eight, items are its. */
static const struct wharf_epoch_config base_config = {
    .n_entries = N_ENTRIES,
    .few = 4,
    .most_out = 1,
    .n_warps = 3,
    .chunk_nbytes = CHUNK_NBYTES,
    .idle_us = 1000,
};

/* With one kernel for any number of items.  Where there are two, one that is started late leaves
 * for the other, and an item takes two epochs. */
static struct wharf_epoch_config one_kernel(void)
{
    struct wharf_epoch_config config = base_config;
    config.few = 0;
    return config;
}

static uint64_t address_of(const void *p)
{
    return (uintptr_t)p;
}

/* ---- items --------------------------------------------------------------------------------- */

static struct wharf_work_item stored_item(const uint8_t *src, uint32_t nbytes, uint8_t *dst)
{
    return (struct wharf_work_item){
        .src = address_of(src),
        .dst = address_of(dst),
        .src_nbytes = nbytes,
        .dst_nbytes = nbytes,
        .codec = WHARF_CODEC_STORED,
        .opcode = WHARF_WORK_DECODE,
    };
}

static uint8_t *encode(enum wharf_codec codec, const uint8_t *in, size_t in_nbytes,
                       size_t *ret_nbytes)
{
    const struct wharf_encoder_ops *ops = wharf_codec_find(codec)->ops->encoder;
    struct wharf_encoder *encoder;
    cr_assert_eq(ops->new (NULL, &encoder), 0);
    size_t bound = ops->bound(encoder, in_nbytes);
    uint8_t *out = malloc(bound);
    cr_assert_eq(ops->encode(encoder, in, in_nbytes, out, bound, ret_nbytes), 0);
    ops->free(encoder);
    return out;
}

static void fill(struct test_random *random, uint8_t *out, size_t nbytes)
{
    for (size_t i = 0; i < nbytes; i++)
        out[i] = (uint8_t)(test_random_one_in(random, 8) ? test_random_next(random) : i / 50);
}

static void expect(const struct wharf_work_completion *completion, uint32_t result, uint32_t reason,
                   uint32_t in_nbytes, uint32_t out_nbytes)
{
    cr_expect(completion->result == result && completion->reason == reason &&
                  completion->in_nbytes == in_nbytes && completion->out_nbytes == out_nbytes,
              "result %u, reason %u, %u bytes in, %u out; expected %u, %u, %u, %u",
              completion->result, completion->reason, completion->in_nbytes, completion->out_nbytes,
              result, reason, in_nbytes, out_nbytes);
}

/* ---- one item at a time -------------------------------------------------------------------- */

Test(epoch, completes_a_noop)
{
    struct wharf_epoch_config config = one_kernel();
    struct test_epoch t;
    test_epoch_open(&t, &wharf_simt_epoch, &config);
    struct wharf_work_completion completion =
        test_epoch_run(&t, &(struct wharf_work_item){.opcode = WHARF_WORK_NOOP});
    expect(&completion, WHARF_OK, 0, 0, 0);
    cr_expect_eq(completion.epoch, 1);
    test_epoch_close(&t);
}

/* Sizes around a quad, a line, a slice and all slices; every alignment of both ends; nothing
 * outside is read or written. */
Test(epoch, copies_stored_items_of_any_size_and_alignment)
{
    static const uint32_t sizes[] = {0,    1,    15,   16,   17,    31,    127,    128,   129,
                                     4095, 4096, 4097, 8191, 12000, 70000, 131072, 140001};
    struct test_random random = {1};
    struct test_epoch t;
    test_epoch_open(&t, &wharf_simt_epoch, &base_config);
    for (unsigned i = 0; i < 3 * sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint32_t nbytes = sizes[i / 3];
        uint32_t shift = (uint32_t)test_random_below(&random, 130);
        uint8_t *data = malloc(nbytes + 1);
        fill(&random, data, nbytes);
        struct test_guard src = test_guard_copy(data, nbytes, i % 2);
        struct test_guard dst = test_guard_new(nbytes + shift, TEST_GUARD_END);
        struct wharf_work_item item = stored_item(src.data, nbytes, dst.data + (i % 3 ? 0 : shift));
        struct wharf_work_completion completion = test_epoch_run(&t, &item);
        expect(&completion, WHARF_OK, 0, nbytes, nbytes);
        cr_expect_eq(memcmp((void *)(uintptr_t)item.dst, data, nbytes), 0, "%u bytes", nbytes);
        for (uint32_t k = 0; k < shift; k++)
            cr_expect_eq(dst.data[i % 3 ? nbytes + k : k], 0xa5);
        test_guard_free(&src);
        test_guard_free(&dst);
        free(data);
    }
    test_epoch_close(&t);
}

/* What the CPU engine says of the same job. */
static struct wharf_outcome cpu_outcome(const struct wharf_work_item *item, uint8_t *out)
{
    struct wharf_decode_job job = {
        .codec = item->codec,
        .flags = item->flags,
        .checksum = item->checksum,
        .in = (const uint8_t *)(uintptr_t)item->src,
        .in_nbytes = item->src_nbytes,
        .out = out,
        .out_avail = item->dst_nbytes,
    };
    struct wharf_outcome outcome;
    wharf_decode_job_run(&job, 0, &outcome);
    return outcome;
}

/* Every codec with a decoder, good and damaged, to all three kinds of destinations. */
static void compare_with_cpu_engine(uint32_t few)
{
    struct wharf_epoch_config config = base_config;
    static const uint32_t codecs[] = {WHARF_CODEC_STORED, WHARF_CODEC_DEFLATE, WHARF_CODEC_ZLIB,
                                      WHARF_CODEC_GZIP};
    struct test_random random = {2};
    struct test_epoch t;
    uint64_t staging;
    uint8_t data[6000], device[CHUNK_NBYTES];
    static uint8_t expected[CHUNK_NBYTES];

    config.few = few;
    fill(&random, data, sizeof(data));
    test_epoch_open(&t, &wharf_simt_epoch, &config);
    cr_assert_eq(t.ops->alloc(t.epoch, CHUNK_NBYTES, &staging), 0);
    for (unsigned i = 0; i < 240; i++) {
        size_t nbytes;
        uint8_t *stream = encode(codecs[i % 4], data, sizeof(data) - i, &nbytes);
        if (i % 3 == 1)
            stream[test_random_below(&random, nbytes)] ^= 1 << test_random_below(&random, 8);
        if (i % 5 == 1)
            nbytes = test_random_below(&random, nbytes);
        struct test_guard src = test_guard_copy(stream, nbytes, TEST_GUARD_END);
        struct test_guard dst =
            test_guard_new(sizeof(data) - test_random_below(&random, 100), TEST_GUARD_END);
        struct wharf_work_item item = stored_item(src.data, (uint32_t)nbytes, dst.data);
        item.dst_nbytes = (uint32_t)dst.nbytes;
        item.codec = (uint16_t)codecs[i % 4];
        item.flags = (uint16_t)(i / 4 % 8);
        item.checksum = (uint32_t)i;
        item.output = (uint8_t)(i / 8 % 3);
        item.staging = item.output == WHARF_WORK_TO_STAGING ? staging : 0;
        if (item.output == WHARF_WORK_TO_DEVICE)
            item.dst = address_of(device + i % 16);
        struct wharf_outcome outcome = cpu_outcome(&item, expected);
        struct wharf_work_completion completion = test_epoch_run(&t, &item);
        expect(&completion, outcome.result, outcome.reason, (uint32_t)outcome.in_nbytes,
               (uint32_t)outcome.out_nbytes);
        cr_expect_eq(completion.bit_offset, outcome.bit_offset);
        cr_expect_eq(memcmp((void *)(uintptr_t)item.dst, expected, outcome.out_nbytes), 0);
        test_guard_free(&src);
        test_guard_free(&dst);
        free(stream);
    }
    cr_assert_eq(t.ops->free(t.epoch, staging), 0);
    test_epoch_close(&t);
}

Test(epoch, gives_the_outcomes_of_the_cpu_engine)
{
    compare_with_cpu_engine(0);
}

Test(epoch, gives_them_by_blocks_too)
{
    compare_with_cpu_engine(4);
}

Test(epoch, refuses_what_is_larger_than_its_memory)
{
    static uint8_t data[CHUNK_NBYTES + 1];
    struct test_epoch t;
    test_epoch_open(&t, &wharf_simt_epoch, &base_config);
    struct wharf_work_item item = stored_item(data, 100, data);
    item.codec = WHARF_CODEC_DEFLATE;
    item.dst_nbytes = CHUNK_NBYTES + 1;
    struct wharf_work_completion completion = test_epoch_run(&t, &item);
    expect(&completion, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_RANGE, 0, 0);
    item.dst_nbytes = CHUNK_NBYTES;
    item.src_nbytes = CHUNK_NBYTES + 1;
    completion = test_epoch_run(&t, &item);
    expect(&completion, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_RANGE, 0, 0);
    item.src_nbytes = 100;
    item.codec = 999;
    completion = test_epoch_run(&t, &item);
    expect(&completion, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_CODEC, 0, 0);
    test_epoch_close(&t);
}

/* ---- memory of others ----------------------------------------------------------------------- */

static int make_memfd(size_t nbytes, int seals)
{
    int fd = memfd_create("a client's", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert(fd >= 0 && ftruncate(fd, (off_t)nbytes) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0);
    return fd;
}

/* The client sees what was decoded, and the engine needs neither its descriptor nor its mapping. */
Test(epoch, decodes_into_imported_memory)
{
    enum { NBYTES = 16384 };
    struct test_random random = {7};
    struct test_epoch t;
    uint64_t address;
    size_t nbytes;
    uint8_t data[6000];
    int fd = make_memfd(NBYTES, F_SEAL_SHRINK | F_SEAL_GROW);
    uint8_t *seen = mmap(NULL, NBYTES, PROT_READ, MAP_SHARED, fd, 0);

    cr_assert_neq(seen, MAP_FAILED);
    fill(&random, data, sizeof(data));
    uint8_t *stream = encode(WHARF_CODEC_DEFLATE, data, sizeof(data), &nbytes);
    test_epoch_open(&t, &wharf_simt_epoch, &base_config);
    cr_assert_eq(t.ops->import_memory(t.epoch, fd, NBYTES, &address), 0);
    close(fd);
    struct wharf_work_item item = stored_item(stream, (uint32_t)nbytes, NULL);
    item.codec = WHARF_CODEC_DEFLATE;
    item.dst = address + 4321;
    item.dst_nbytes = sizeof(data);
    item.output = WHARF_WORK_TO_DEVICE;
    struct wharf_work_completion completion = test_epoch_run(&t, &item);
    expect(&completion, WHARF_OK, 0, (uint32_t)nbytes, sizeof(data));
    cr_expect_eq(memcmp(seen + 4321, data, sizeof(data)), 0);
    cr_expect_eq(seen[4320], 0);
    cr_expect_eq(seen[4321 + sizeof(data)], 0);
    test_epoch_park(&t);
    cr_expect_eq(t.ops->unimport_memory(t.epoch, address, NBYTES), 0);
    test_epoch_close(&t);
    munmap(seen, NBYTES);
    free(stream);
}

Test(epoch, refuses_to_import_anything_else)
{
    struct test_epoch t;
    uint64_t address = 0;
    int plain = make_memfd(8192, F_SEAL_GROW), sealed = make_memfd(8192, F_SEAL_SHRINK);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    test_epoch_open(&t, &wharf_simt_epoch, &base_config);
    cr_expect_eq(t.ops->import_memory(t.epoch, plain, 8192, &address), -EINVAL);
    cr_expect_eq(t.ops->import_memory(t.epoch, null, 8192, &address), -EINVAL);
    cr_expect_eq(t.ops->import_memory(t.epoch, -1, 8192, &address), -EINVAL);
    cr_expect_eq(t.ops->import_memory(t.epoch, sealed, 0, &address), -EINVAL);
    cr_expect_eq(t.ops->import_memory(t.epoch, sealed, 100, &address), -EINVAL);
    cr_expect_eq(t.ops->import_memory(t.epoch, sealed, 12288, &address), -EINVAL);
    cr_expect_eq(address, 0);
    test_epoch_close(&t);
    close(plain);
    close(sealed);
    close(null);
}

/* ---- coming and going ---------------------------------------------------------------------- */

Test(epoch, leaves_when_idle_and_comes_back)
{
    struct wharf_epoch_config config = one_kernel();
    struct test_epoch t;
    struct wharf_work_item noop = {.opcode = WHARF_WORK_NOOP};
    test_epoch_open(&t, &wharf_simt_epoch, &config);
    for (uint32_t i = 1; i <= 5; i++) {
        struct wharf_work_completion completion = test_epoch_run(&t, &noop);
        cr_expect_eq(completion.epoch, i);
        cr_expect(test_epoch_await_state(&t, WHARF_WORK_OUT));
    }
    cr_expect_eq(t.n_wakes, 5);
    test_epoch_close(&t);
}

/* Items that come at any moment of the kernel's leaving: one that were overlooked would never be
 * completed, since nothing is published after it. */
Test(epoch, overlooks_nothing_when_it_leaves)
{
    struct wharf_epoch_config config = base_config;
    struct wharf_work_item noop = {.opcode = WHARF_WORK_NOOP};
    struct test_random random = {3};
    struct test_epoch t;
    config.idle_us = 100;
    test_epoch_open(&t, &wharf_simt_epoch, &config);
    for (unsigned i = 0; i < 1500; i++) {
        struct timespec pause = {.tv_nsec = (long)test_random_below(&random, 400000)};
        nanosleep(&pause, NULL);
        test_epoch_run(&t, &noop);
    }
    cr_expect_gt(t.n_started, 10);
    test_epoch_close(&t);
}

Test(epoch, leaves_after_its_longest_stay_and_is_started_again)
{
    struct wharf_epoch_config config = base_config;
    struct wharf_work_item noop = {.opcode = WHARF_WORK_NOOP};
    struct wharf_work_completion completion;
    struct test_epoch t;
    unsigned n_reaped = 0, n_submitted = 0;
    config.idle_us = 100000;
    config.stay_us = 2000;
    test_epoch_open(&t, &wharf_simt_epoch, &config);
    /* There is always something to do, for as many stays as it takes. */
    for (; n_submitted < 3000 ||
           (n_submitted < 3000000 && __atomic_load_n(&t.n_started, __ATOMIC_ACQUIRE) <= 3);
         n_submitted++) {
        while (!test_epoch_has_room(&t))
            n_reaped += test_epoch_reap(&t, &completion);
        test_epoch_submit(&t, &noop);
        test_epoch_publish(&t);
    }
    for (; t.n_under_way; n_reaped++)
        test_epoch_await(&t);
    cr_expect_eq(n_reaped, n_submitted);
    cr_expect_gt(t.n_started, 3);
    test_epoch_close(&t);
}

Test(epoch, takes_a_batch_and_leaves_when_told_to)
{
    struct wharf_epoch_config config = base_config;
    struct wharf_work_item noop = {.opcode = WHARF_WORK_NOOP};
    struct test_epoch t;
    config.per_batch = 1;
    config.idle_us = 1000000;
    test_epoch_open(&t, &wharf_simt_epoch, &config);
    for (unsigned i = 0; i < 50; i++) {
        for (unsigned k = 0; k <= i; k++)
            test_epoch_submit(&t, &noop);
        test_epoch_publish(&t);
        while (t.n_under_way)
            cr_expect_eq(test_epoch_await(&t).epoch, i + 1);
        cr_assert(test_epoch_await_state(&t, WHARF_WORK_OUT));
    }
    cr_expect_eq(t.n_started, 50);
    test_epoch_close(&t);
}

Test(epoch, parks_with_nothing_under_way_and_goes_on_after)
{
    struct wharf_work_item noop = {.opcode = WHARF_WORK_NOOP};
    struct wharf_work_completion completion;
    struct test_epoch t;
    test_epoch_open(&t, &wharf_simt_epoch, &base_config);
    for (unsigned i = 0; i < 30; i++) {
        for (unsigned k = 0; k < 10; k++)
            test_epoch_submit(&t, &noop);
        test_epoch_publish(&t);
        test_epoch_park(&t);
        unsigned n_before = 0, n_after = 0;
        while (test_epoch_reap(&t, &completion))
            n_before++;
        test_epoch_submit(&t, &noop);
        test_epoch_publish(&t);
        cr_expect_not(test_epoch_reap(&t, &completion), "done while parked");
        test_epoch_unpark(&t);
        for (; t.n_under_way; n_after++)
            test_epoch_await(&t);
        cr_expect_eq(n_before + n_after, 11);
    }
    test_epoch_close(&t);
}

/* Ten thousand items, in bursts and with pauses, beside parks, into whatever state that meets. */
static void complete_every_item_once(uint32_t few)
{
    struct wharf_epoch_config config = base_config;
    static uint8_t data[20000], out[N_ENTRIES][20000];
    struct test_random random = {4};
    struct wharf_work_completion completion;
    struct test_epoch t;
    unsigned n_submitted = 0, n_reaped = 0;

    config.few = few;
    config.idle_us = 50;
    config.stay_us = 3000;
    fill(&random, data, sizeof(data));
    test_epoch_open(&t, &wharf_simt_epoch, &config);
    while (n_submitted < 10000) {
        for (unsigned n = 1 + test_random_below(&random, 20); n && test_epoch_has_room(&t); n--) {
            struct wharf_work_item item = {.opcode = WHARF_WORK_NOOP};
            if (test_random_one_in(&random, 50))
                item = stored_item(data, (uint32_t)test_random_below(&random, sizeof(data)),
                                   out[n_submitted % N_ENTRIES]);
            test_epoch_submit(&t, &item);
            n_submitted++;
        }
        test_epoch_publish(&t);
        if (test_random_one_in(&random, 20)) {
            struct timespec pause = {.tv_nsec = (long)test_random_below(&random, 300000)};
            nanosleep(&pause, NULL);
        }
        if (test_random_one_in(&random, 100)) {
            test_epoch_park(&t);
            test_epoch_unpark(&t);
        }
        while (test_epoch_reap(&t, &completion)) {
            cr_expect_eq(completion.result, WHARF_OK);
            n_reaped++;
        }
    }
    for (; t.n_under_way; n_reaped++)
        test_epoch_await(&t);
    cr_expect_eq(n_reaped, n_submitted);
    test_epoch_close(&t);
}

Test(epoch, completes_every_item_once_whatever_happens)
{
    complete_every_item_once(0);
}

/* What makes it leave for the other kernel, or come back from it, happens all the time here. */
Test(epoch, completes_every_item_once_with_two_kernels)
{
    complete_every_item_once(4);
}

/* ---- cancel and quit ----------------------------------------------------------------------- */

/* Nothing of them is done: they are cancelled while no kernel is there. */
Test(epoch, does_not_begin_cancelled_items)
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
Test(epoch, cancels_the_item_that_is_meant)
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

/* Submits one and waits until it has begun. */
static uint32_t begin_long(struct test_epoch *t, enum wharf_codec codec, uint8_t **ret_stream)
{
    struct timespec pause = {.tv_nsec = 50000};
    struct test_random random = {8};
    size_t stream_nbytes;
    uint8_t *data = malloc(LONG_NBYTES);

    fill(&random, data, LONG_NBYTES);
    *ret_stream = encode(codec, data, LONG_NBYTES, &stream_nbytes);
    free(data);
    memset(long_out, UNWRITTEN, sizeof(long_out));
    struct wharf_work_item item = stored_item(*ret_stream, (uint32_t)stream_nbytes, long_out);
    item.codec = (uint16_t)codec;
    item.dst_nbytes = LONG_NBYTES;
    item.output = WHARF_WORK_TO_DEVICE;
    uint32_t index = test_epoch_submit(t, &item);
    test_epoch_publish(t);
    for (unsigned i = 0; i < 1000000 && !is_written(long_out, TAIL_NBYTES); i++)
        nanosleep(&pause, NULL);
    cr_assert(is_written(long_out, TAIL_NBYTES), "codec %d does not begin", codec);
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
Test(epoch, stops_a_decode_that_is_cancelled)
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

/* Its place kept all items waiting whose indices had come round to it, until it had ended. */
Test(epoch, long_item_holds_nobody_up)
{
    enum { N_ROUNDS = 3 };
    struct wharf_epoch_config config = one_kernel();
    struct wharf_work_completion completion;
    struct test_epoch t;
    uint8_t *stream, data[16] = "sixteen letters", out[16];
    config.chunk_nbytes = LONG_NBYTES;
    test_epoch_open(&t, &wharf_simt_epoch, &config);
    uint32_t index = begin_long(&t, WHARF_CODEC_DEFLATE, &stream);
    for (unsigned i = 0; i < N_ROUNDS * N_ENTRIES; i++) {
        struct wharf_work_item item = stored_item(data, sizeof(data), out);
        if (i % 2)
            item = (struct wharf_work_item){.opcode = WHARF_WORK_NOOP};
        memset(out, 0, sizeof(out));
        cr_assert(test_epoch_has_room(&t), "item %u finds no place", i);
        completion = test_epoch_run(&t, &item);
        cr_assert_neq(completion.item, index, "the long one has ended before item %u", i);
        cr_assert_eq(completion.result, WHARF_OK);
        cr_assert(i % 2 || memcmp(out, data, sizeof(data)) == 0);
    }
    cr_assert_eq(t.submitter.tail, 1 + N_ROUNDS * N_ENTRIES + N_ROUNDS);
    cr_expect(test_epoch_cancel(&t, index));
    completion = test_epoch_await(&t);
    cr_expect_eq(completion.item, index);
    expect(&completion, WHARF_CANCELLED, 0, 0, 0);
    test_epoch_close(&t);
    free(stream);
}

/* Likewise when the kernel is to quit. */
Test(epoch, stops_a_decode_when_it_quits)
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
Test(epoch, quits_whatever_it_does)
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

Test(epoch, says_what_is_wrong_with_its_configuration)
{
    struct wharf_epoch_config config = base_config;
    struct wharf_epoch *epoch;
    config.queue = &config;
    config.n_entries = 100;
    cr_expect_eq(wharf_simt_epoch.open(&config, &epoch), -EINVAL);
    cr_expect_neq(strlen(wharf_simt_epoch.error_text()), 0);
    config.n_entries = 64;
    config.n_warps = 1;
    cr_expect_eq(wharf_simt_epoch.open(&config, &epoch), -EINVAL);
    config.n_warps = 2;
    config.chunk_nbytes = (1u << 28) + 1;
    cr_expect_eq(wharf_simt_epoch.open(&config, &epoch), -EINVAL);
    config.chunk_nbytes = 1000;
    config.idle_us = WHARF_EPOCH_MAX_US + 1;
    cr_expect_eq(wharf_simt_epoch.open(&config, &epoch), -EINVAL);
}
