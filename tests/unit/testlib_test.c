/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tests' own library: a guard that guards nothing would let every other test pass.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test_data.h"
#include "tests/lib/test_file.h"
#include "tests/lib/test_guard.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_sha256.h"

static void expect_hash(const void *data, size_t nbytes, const char *expected)
{
    char hex[65];
    test_sha256_hex(data, nbytes, hex);
    cr_assert_str_eq(hex, expected, "%zu bytes", nbytes);
}

/* FIPS 180-2, appendix B, and the sizes around a block's end. */
Test(testlib, sha256_gives_the_published_hashes)
{
    static const char two_blocks[] = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    expect_hash("", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    expect_hash("abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    expect_hash(two_blocks, sizeof(two_blocks) - 1,
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *many = malloc(1000000);
    memset(many, 'a', 1000000);
    expect_hash(many, 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(many);
}

/* The guarded byte itself is touched by the next test. */
Test(testlib, guarded_buffers_can_be_used_whole)
{
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (int side = TEST_GUARD_END; side <= TEST_GUARD_START; side++) {
            struct test_guard guard = test_guard_new(sizes[i], (enum test_guard_side)side);
            if (sizes[i] > 0)
                memset(guard.data, 1, sizes[i]);
            struct test_guard copy =
                test_guard_copy(guard.data, sizes[i], (enum test_guard_side)side);
            cr_assert(sizes[i] == 0 || memcmp(copy.data, guard.data, sizes[i]) == 0);
            test_guard_free(&guard);
            test_guard_free(&copy);
        }
    }
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define DIES_BY_SIGNAL .signal = SIGSEGV
#else
/* The sanitizers report the fault and leave with a status of their own. */
#define DIES_BY_SIGNAL .exit_code = SANITIZER_EXIT_CODE
#endif
#ifdef __SANITIZE_THREAD__
#define SANITIZER_EXIT_CODE 66
#else
#define SANITIZER_EXIT_CODE 1
#endif

Test(testlib, guard_stops_a_write_past_the_end, DIES_BY_SIGNAL)
{
    struct test_guard guard = test_guard_new(100, TEST_GUARD_END);
    ((volatile uint8_t *)guard.data)[100] = 1;
}

Test(testlib, guard_stops_a_write_before_the_start, DIES_BY_SIGNAL)
{
    struct test_guard guard = test_guard_new(100, TEST_GUARD_START);
    ((volatile uint8_t *)guard.data)[-1] = 1;
}

Test(testlib, copied_guard_is_read_only, DIES_BY_SIGNAL)
{
    struct test_guard guard = test_guard_copy("abc", 3, TEST_GUARD_END);
    ((volatile uint8_t *)guard.data)[0] = 1;
}

Test(testlib, data_is_the_same_in_every_run)
{
    for (size_t i = 0; i < test_data_n_kinds; i++) {
        uint8_t *a = test_data_new(&test_data_kinds[i], 7, 100000);
        uint8_t *b = test_data_new(&test_data_kinds[i], 7, 100000);
        cr_assert_eq(memcmp(a, b, 100000), 0, "%s", test_data_kinds[i].name);
        free(a);
        free(b);
    }
}

Test(testlib, data_stays_inside_its_buffer)
{
    for (size_t i = 0; i < test_data_n_kinds; i++) {
        for (size_t nbytes = 0; nbytes < 300; nbytes++) {
            struct test_guard guard = test_guard_new(nbytes, TEST_GUARD_END);
            test_data_kinds[i].fill(nbytes, guard.data, nbytes);
            test_guard_free(&guard);
        }
    }
}

Test(testlib, random_numbers_spread_over_their_range)
{
    unsigned counts[16] = {0};
    struct test_random random = {0};
    for (int i = 0; i < 16000; i++)
        counts[test_random_below(&random, 16)]++;
    /* 1000 expected, with a standard deviation of 31: six of them either way. */
    for (int i = 0; i < 16; i++)
        cr_assert(counts[i] > 814 && counts[i] < 1186, "%u times %d", counts[i], i);
}

Test(testlib, missing_files_and_folders_are_errors)
{
    size_t nbytes;
    struct test_file_list list;
    cr_assert_null(test_file_read("tests/no-such-file", &nbytes));
    cr_assert_eq(errno, ENOENT);
    cr_assert_eq(test_file_list_init(&list, "tests/no-such-folder"), -1);
}

Test(testlib, lists_every_file_of_a_folder_in_order)
{
    struct test_file_list list;
    cr_assert_eq(test_file_list_init(&list, "tests/lib"), 0);
    cr_assert_geq(list.n_paths, 9);
    for (size_t i = 1; i < list.n_paths; i++)
        cr_assert_lt(strcmp(list.paths[i - 1], list.paths[i]), 0);
    test_file_list_deinit(&list);
}
