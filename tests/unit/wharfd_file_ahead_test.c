/* SPDX-License-Identifier: Apache-2.0 */
/* What is read ahead of which ranges, and how that is counted. */
#include <criterion/criterion.h>

#include "daemon/disposable/file_ahead.h"
#include "tests/lib/test_random.h"

enum { FILE_NUMBER = 1025, RANGE = 64 << 10 };
#define STEP ((uint64_t)WHARF_FILE_STEP_NBYTES)
#define WINDOW WHARF_FILE_MOST_AHEAD_NBYTES
#define SIZE ((uint64_t)1 << 40)

static struct wharf_file_ahead ahead;
static struct wharf_file_counts counts;
static bool is_slow = true;

static void note_of(uint32_t file, uint64_t offset, uint32_t nbytes, bool is_more)
{
    const struct wharf_file_request request = {
        .file = file, .offset = offset, .nbytes = nbytes, .is_more = is_more};

    wharf_file_ahead_note(&ahead, &request, &counts);
    wharf_file_ahead_took(&ahead, &request, is_slow ? 100000000 : 100000, true);
    /* Tests of few ranges do without those that show what waits. */
    ahead.has_waited |= is_slow;
}

static void note(uint64_t offset, uint32_t nbytes)
{
    note_of(FILE_NUMBER, offset, nbytes, false);
}

/* Reads all ahead that there is to be; returns how many steps that were. */
static unsigned read_ahead(uint64_t size)
{
    struct wharf_file_ahead begun;
    uint64_t step;
    unsigned n = 0;

    for (; wharf_file_ahead_next(&ahead, WINDOW, &step); n++) {
        cr_assert_lt(n, 64);
        ahead.size = size;
        if (!wharf_file_ahead_next(&ahead, WINDOW, &step))
            break;
        begun = wharf_file_ahead_begin(&ahead, step);
        wharf_file_ahead_end(&ahead, &begun, step, true, &counts);
    }
    return n;
}

static uint64_t used_nbytes(void)
{
    return counts.hit_nbytes + counts.waste_nbytes;
}

Test(wharfd_file_ahead, sequence_is_read_ahead_up_to_the_window)
{
    uint64_t offset = 12345;

    for (unsigned i = 0; i < 1000; i++, offset += RANGE) {
        note(offset, RANGE);
        unsigned n = read_ahead(SIZE);
        cr_assert(i >= 2 ? i > 2 || n > 0 : n == 0, "range %u: %u steps", i, n);
        if (i >= 20)
            cr_assert_geq(ahead.at * STEP, offset + RANGE + WINDOW);
        cr_assert_leq(ahead.at * STEP, i >= 2 ? offset + RANGE + WINDOW + STEP : 0);
    }
    cr_assert_gt(counts.hit_nbytes, 200 * STEP);
    cr_assert_eq(counts.waste_nbytes, 0);
    cr_assert_eq(counts.ahead_nbytes - counts.hit_nbytes,
                 (uint64_t)__builtin_popcountll(ahead.steps) * STEP);
    wharf_file_ahead_drop(&ahead, &counts);
    cr_assert_eq(counts.ahead_nbytes, used_nbytes());
}

Test(wharfd_file_ahead, nothing_is_read_ahead_of_random_ranges)
{
    struct test_random random = {7};

    for (unsigned i = 0; i < 100000; i++) {
        note((uint64_t)test_random_below(&random, UINT32_MAX) * 64, RANGE);
        cr_assert_eq(read_ahead(SIZE), 0, "range %u", i);
    }
    for (uint64_t offset = 1000 * RANGE; offset > 0; offset -= RANGE) {
        note(offset, RANGE);
        cr_assert_eq(read_ahead(SIZE), 0, "backwards");
    }
    cr_assert_eq(counts.ahead_nbytes, 0);
}

/* Of a read that takes long since its thread waits for a processor, only the time is long. */
Test(wharfd_file_ahead, nothing_is_read_ahead_where_processors_are_short)
{
    is_slow = false;
    for (uint64_t i = 0; i < 1000; i++) {
        const struct wharf_file_request request = {
            .file = FILE_NUMBER, .offset = i * RANGE, .nbytes = RANGE};
        note(i * RANGE, RANGE);
        enum wharf_file_watch watch = wharf_file_ahead_watch(&ahead, &request);
        cr_assert_eq(watch, i < 15    ? WHARF_FILE_WATCH_NONE
                            : i == 15 ? WHARF_FILE_WATCH_TIME
                                      : WHARF_FILE_WATCH_WAITS);
        wharf_file_ahead_took(&ahead, &request, 1000000, false);
        cr_assert_eq(read_ahead(SIZE), 0);
    }
}

/* One large chunk, or one batch, is in sequence by itself, wherever it is. */
Test(wharfd_file_ahead, ranges_of_one_job_are_one)
{
    struct test_random random = {9};

    for (unsigned i = 0; i < 1000; i++) {
        uint64_t offset = (uint64_t)test_random_below(&random, UINT32_MAX) * 512;
        for (unsigned k = 0; k < 40; k++, offset += STEP) {
            note_of(FILE_NUMBER, offset, STEP, k > 0);
            cr_assert_eq(read_ahead(SIZE), 0, "job %u, range %u", i, k);
        }
    }
}

Test(wharfd_file_ahead, seek_and_other_file_end_it_at_once)
{
    for (unsigned way = 0; way < 2; way++) {
        for (unsigned i = 0; i < 10; i++)
            note(i * RANGE, RANGE);
        cr_assert_gt(read_ahead(SIZE), 0);
        if (way)
            note_of(FILE_NUMBER + WHARF_FILE_MOST, 10 * RANGE, RANGE, false);
        else
            note((uint64_t)1 << 30, RANGE);
        cr_assert_eq(read_ahead(SIZE), 0);
        cr_assert_eq(counts.ahead_nbytes, used_nbytes());
        cr_assert_gt(counts.waste_nbytes, 0);
    }
}

Test(wharfd_file_ahead, end_of_the_file_is_its_end)
{
    const uint64_t size = 3 * STEP + 777;

    for (uint64_t offset = 0; offset + RANGE < size; offset += RANGE) {
        note(offset, RANGE);
        read_ahead(size);
    }
    note(3 * STEP, 777);
    cr_assert_leq(ahead.at, 4);
    cr_assert_eq(counts.hit_nbytes, counts.ahead_nbytes);
    cr_assert_leq(counts.ahead_nbytes, size);
    cr_assert_eq(counts.hit_nbytes % STEP, 777, "the last step is a part");
}

/* Several threads read, so later ranges may be taken first. */
Test(wharfd_file_ahead, ranges_that_overtake_each_other_are_one_sequence)
{
    struct test_random random = {5};
    uint64_t waiting[16], next = 0;

    for (unsigned i = 0; i < 16; i++)
        waiting[i] = next++;
    for (unsigned n = 0; n < 4000; n++) {
        unsigned i = test_random_below(&random, 16);
        for (unsigned k = 0; k < 16; k++)
            i = waiting[k] + 64 < next ? k : i;
        note(waiting[i] * RANGE, RANGE);
        waiting[i] = next++;
        read_ahead(SIZE);
    }
    cr_assert_gt(counts.hit_nbytes, 900 * STEP);
    cr_assert_eq(counts.waste_nbytes, 0);
}

/* Each of them would have the kernel read sixteen times as much. */
Test(wharfd_file_ahead, nothing_is_read_ahead_of_what_skips_most)
{
    for (uint64_t i = 0; i < 1000; i++) {
        note(i << 20, RANGE);
        cr_assert_eq(read_ahead(SIZE), 0);
    }
    for (uint64_t i = 0; i < 1000; i++) {
        note((i << 17) + ((uint64_t)1 << 40), RANGE);
        read_ahead(SIZE * 2);
    }
    cr_assert_gt(counts.hit_nbytes, 200 * STEP, "every other range is a sequence");
}

/* The kernel's own readahead does for a disk, and where it is long. */
Test(wharfd_file_ahead, nothing_is_read_ahead_where_little_waits)
{
    const unsigned apart[] = {1000, 16, 4};

    is_slow = false;
    for (unsigned way = 0; way < 3; way++) {
        wharf_file_ahead_drop(&ahead, &counts);
        for (uint64_t i = 0; i < 1000; i++) {
            const struct wharf_file_request request = {
                .file = FILE_NUMBER, .offset = i * RANGE, .nbytes = RANGE};
            note(i * RANGE, RANGE);
            if (i % apart[way] == apart[way] - 1 || i < 10)
                wharf_file_ahead_took(&ahead, &request, 1000000, true);
            if (way < 2)
                cr_assert_eq(read_ahead(SIZE), 0);
            else
                read_ahead(SIZE);
        }
    }
    cr_assert_gt(counts.hit_nbytes, 200 * STEP);
}

/* A thread has a step read while others come for it, or go elsewhere; and in the end it is there
 * already. */
Test(wharfd_file_ahead, steps_under_way_are_counted_once)
{
    for (unsigned way = 0; way < 6; way++) {
        struct wharf_file_ahead begun;
        uint64_t step;
        for (unsigned i = 0; i < 4; i++)
            note(i * RANGE, RANGE);
        ahead.size = SIZE;
        cr_assert(wharf_file_ahead_next(&ahead, WINDOW, &step));
        begun = wharf_file_ahead_begin(&ahead, step);
        if (way / 2 == 1)
            note(step * STEP, RANGE);
        else if (way / 2 == 2)
            note((uint64_t)1 << 30, RANGE);
        wharf_file_ahead_end(&ahead, &begun, step, way % 2, &counts);
        cr_assert_eq(counts.ahead_nbytes, used_nbytes() + (ahead.steps ? STEP : 0), "%u", way);
        cr_assert_eq(ahead.steps != 0, way == 1);
        wharf_file_ahead_drop(&ahead, &counts);
    }
    cr_assert_eq(counts.hit_nbytes, 2 * STEP);
    cr_assert_eq(counts.waste_nbytes, 3 * STEP);
}

/* Whatever comes, each byte that was read ahead is used, wasted or still awaited. */
Test(wharfd_file_ahead, counts_add_up)
{
    struct test_random random = {3};
    uint64_t offset = 0;

    for (unsigned i = 0; i < 200000; i++) {
        uint32_t nbytes = test_random_below(&random, 3 * RANGE);
        note(offset, nbytes);
        read_ahead(SIZE);
        offset += nbytes;
        unsigned what = test_random_below(&random, 40);
        if (what == 0)
            offset = (uint64_t)test_random_below(&random, UINT32_MAX) * 16;
        else if (what < 4)
            offset += test_random_below(&random, 2 * RANGE);
        else if (what < 6)
            offset -= offset < 2 * RANGE ? offset : test_random_below(&random, 2 * RANGE);
        else if (what == 7)
            wharf_file_ahead_drop(&ahead, &counts);
        cr_assert_eq(counts.ahead_nbytes,
                     used_nbytes() + (uint64_t)__builtin_popcountll(ahead.steps) * STEP);
    }
    cr_assert_gt(counts.hit_nbytes, 0);
    cr_assert_gt(counts.waste_nbytes, 0);
}
