/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_simt_test: epoch kernels on the SIMT layer, with the calling thread as the core: every
 * item is completed once, with the CPU engine's outcome, whenever it comes: while a kernel runs,
 * leaves, is parked or is not there.
 *
 * The thread sanitizer cannot follow warps, which are coroutines; what it would look at, the
 * handshake of leaving, is in models/epoch.pml.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/test_guard.h"
#include "tests/lib/test_pack.h"
#include "tests/lib/test_rounds.h"
#include "tests/unit/epoch_items.h"

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

/* Every codec with a decoder, good and damaged, to all three kinds of destinations. */
static void compare_with_cpu_engine(uint32_t few)
{
    struct wharf_epoch_config config = base_config;
    static const uint32_t codecs[] = {WHARF_CODEC_STORED, WHARF_CODEC_DEFLATE, WHARF_CODEC_ZLIB,
                                      WHARF_CODEC_GZIP};
    struct test_random random = {2};
    struct test_epoch t;
    uint8_t data[6000], device[CHUNK_NBYTES];
    static uint8_t expected[CHUNK_NBYTES];

    config.few = few;
    fill(&random, data, sizeof(data));
    test_epoch_open(&t, &wharf_simt_epoch, &config);
    /* 80 rounds meet each codec with all flags and both destinations. */
    for (unsigned i = 0; i < TEST_ROUNDS(240); i++) {
        size_t nbytes;
        uint8_t *stream = test_pack(codecs[i % 4], NULL, data, sizeof(data) - i, &nbytes);
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
        item.output = (uint8_t)(i / 8 % 2);
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
    expect(&completion, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_SIZE, 0, 0);
    item.dst_nbytes = CHUNK_NBYTES;
    item.src_nbytes = CHUNK_NBYTES + 1;
    completion = test_epoch_run(&t, &item);
    expect(&completion, WHARF_BAD_REQUEST, WHARF_REASON_REQUEST_SIZE, 0, 0);
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
    uint8_t *stream = test_pack(WHARF_CODEC_DEFLATE, NULL, data, sizeof(data), &nbytes);
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

/* ---- opening ------------------------------------------------------------------------------- */

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
