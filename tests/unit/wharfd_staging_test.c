/* SPDX-License-Identifier: Apache-2.0 */
/* Places in the staging area of files, taken and given back in random order. */
#include <criterion/criterion.h>

#include "daemon/core/file_staging.h"
#include "tests/lib/test_random.h"

#define UNIT WHARF_FILE_UNIT_NBYTES
#define LARGEST ((uint32_t)(WHARF_FILE_STAGING_MOST_NBYTES / UNIT))

static struct wharf_file_slot heads[WHARF_FILE_MOST_UNITS];

static struct wharf_file_staging *new_area(void)
{
    struct wharf_file_staging *staging = wharf_file_staging_new(NULL);

    cr_assert(staging);
    staging->heads = heads;
    return staging;
}

/* Takes a place whose read ends at once. */
static bool take(struct wharf_file_staging *staging, uint64_t nbytes, uint32_t *ret_place)
{
    if (!wharf_file_staging_take(staging, nbytes, ret_place))
        return false;
    cr_assert_eq(heads[*ret_place].is_done, 0, "the head says what the last read did");
    heads[*ret_place].is_done = 1;
    wharf_file_staging_answered(staging);
    return true;
}

static void give_back(struct wharf_file_staging *staging, uint32_t place)
{
    wharf_file_staging_give_back(staging, place);
}

Test(wharfd_staging, places_never_overlap_and_all_come_back)
{
    enum { N_ROUNDS = 20000, MOST = 512 };
    static uint8_t owners[WHARF_FILE_MOST_UNITS];
    static struct {
        uint32_t place, n_units;
    } taken[MOST];
    struct wharf_file_staging *staging = new_area();
    struct test_random random = {1};
    uint32_t n_taken = 0, n_refused = 0;

    for (unsigned round = 0; round < N_ROUNDS; round++) {
        uint32_t n = 1 + test_random_below(&random, round % 100 ? 16 : LARGEST);
        uint32_t place, i;
        if (n_taken < MOST && test_random_below(&random, 2) &&
            take(staging, n * UNIT - test_random_below(&random, UNIT), &place)) {
            cr_assert_leq(place + n, WHARF_FILE_MOST_UNITS);
            for (uint32_t unit = place; unit < place + n; unit++)
                cr_assert_eq(owners[unit]++, 0, "unit %u has two owners", unit);
            taken[n_taken].place = place;
            taken[n_taken++].n_units = n;
            continue;
        }
        n_refused++;
        if (n_taken == 0)
            continue;
        i = test_random_below(&random, n_taken);
        for (uint32_t unit = 0; unit < taken[i].n_units; unit++)
            owners[taken[i].place + unit]--;
        give_back(staging, taken[i].place);
        taken[i] = taken[--n_taken];
    }
    cr_assert_gt(n_refused, 0);
    while (n_taken > 0)
        give_back(staging, taken[--n_taken].place);
    cr_assert_eq(staging->n_free, WHARF_FILE_MOST_UNITS);
    cr_assert(take(staging, LARGEST * UNIT, &(uint32_t){0}));
    wharf_file_staging_free(staging);
}

Test(wharfd_staging, nothing_is_a_place_too)
{
    struct wharf_file_staging *staging = new_area();
    uint32_t a, b;

    cr_assert(take(staging, 0, &a) && take(staging, 0, &b));
    cr_assert_neq(a, b);
    give_back(staging, a);
    give_back(staging, b);
    cr_assert_eq(staging->n_free, WHARF_FILE_MOST_UNITS);
    wharf_file_staging_free(staging);
}

Test(wharfd_staging, unanswered_reads_are_bounded)
{
    struct wharf_file_staging *staging = new_area();
    uint32_t place;

    for (uint32_t i = 0; i < WHARF_FILE_STAGING_MOST_READS; i++)
        cr_assert(wharf_file_staging_take(staging, 1, &place));
    cr_assert_not(wharf_file_staging_take(staging, 1, &place));
    wharf_file_staging_answered(staging);
    cr_assert(wharf_file_staging_take(staging, 1, &place));
    wharf_file_staging_free(staging);
}

/* Jobs that found it full are placed anew when much of it is free, and once. */
Test(wharfd_staging, room_is_told_once_and_when_there_is_enough)
{
    enum { N = WHARF_FILE_MOST_UNITS / 64 };
    struct wharf_file_staging *staging = new_area();
    uint32_t places[N];

    for (uint32_t i = 0; i < N; i++)
        cr_assert(take(staging, 64 * UNIT, &places[i]));
    cr_assert_not(wharf_file_staging_take(staging, 1, &places[0]));
    cr_assert_not(wharf_file_staging_has_room_again(staging), "nobody found it full");
    staging->is_full = true;
    for (uint32_t i = 0; i < N; i++) {
        cr_assert_not(wharf_file_staging_has_room_again(staging) && i < N / 4, "place %u", i);
        give_back(staging, places[i]);
        if (i + 1 == N / 4)
            cr_assert(wharf_file_staging_has_room_again(staging));
    }
    cr_assert_not(wharf_file_staging_has_room_again(staging));
    wharf_file_staging_free(staging);
}
