/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena's allocator: takes and gives back at random beside a map of what is taken, byte group
 * by byte group.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "clientlib/extents.h"
#include "tests/lib/test_random.h"

enum { UNIT = WHARF_CLIENT_EXTENT_NBYTES };

static uint64_t take(struct wharf_client_extents *extents, uint64_t nbytes)
{
    uint64_t offset = UINT64_MAX;

    cr_assert_eq(wharf_client_extents_take(extents, nbytes, &offset), 0);
    cr_assert_eq(offset % UNIT, 0);
    cr_assert_leq(nbytes, extents->nbytes - offset);
    return offset;
}

Test(extents, whole_range_can_be_taken_again_and_again)
{
    for (uint64_t nbytes = UNIT; nbytes < (1u << 20); nbytes += 37 * UNIT) {
        struct wharf_client_extents extents;
        uint64_t offset;

        cr_assert_eq(wharf_client_extents_init(&extents, nbytes + UNIT - 1), 0);
        for (int i = 0; i < 3; i++) {
            cr_assert_eq(take(&extents, nbytes), 0);
            cr_assert_eq(wharf_client_extents_take(&extents, 0, &offset), -ENOBUFS);
            cr_assert_eq(wharf_client_extents_give_back(&extents, 0), 0);
        }
        cr_assert_eq(wharf_client_extents_take(&extents, nbytes + 1, &offset), -ENOBUFS);
        wharf_client_extents_deinit(&extents);
    }
}

Test(extents, empty_range_gives_nothing)
{
    struct wharf_client_extents extents;
    uint64_t offset = 77;

    cr_assert_eq(wharf_client_extents_init(&extents, UNIT - 1), 0);
    cr_assert_eq(wharf_client_extents_take(&extents, 0, &offset), -ENOBUFS);
    cr_assert_eq(wharf_client_extents_take(&extents, 1, &offset), -ENOBUFS);
    cr_assert_eq(offset, 77);
    wharf_client_extents_deinit(&extents);
}

Test(extents, sizes_near_the_end_of_numbers_do_not_wrap)
{
    struct wharf_client_extents extents;
    uint64_t offset;

    cr_assert_eq(wharf_client_extents_init(&extents, UINT64_MAX), 0);
    cr_assert_eq(wharf_client_extents_take(&extents, UINT64_MAX, &offset), -ENOBUFS);
    cr_assert_eq(take(&extents, UINT64_MAX - UNIT + 1), 0);
    cr_assert_eq(wharf_client_extents_take(&extents, 1, &offset), -ENOBUFS);
    wharf_client_extents_deinit(&extents);
}

Test(extents, wrong_offsets_and_second_returns_are_found_out)
{
    struct wharf_client_extents extents;

    cr_assert_eq(wharf_client_extents_init(&extents, 100 * UNIT), 0);
    uint64_t first = take(&extents, 10 * UNIT);
    uint64_t second = take(&extents, 10 * UNIT);
    cr_assert_eq(wharf_client_extents_give_back(&extents, first + UNIT), -ENOENT);
    cr_assert_eq(wharf_client_extents_give_back(&extents, first + 1), -ENOENT);
    cr_assert_eq(wharf_client_extents_give_back(&extents, 50 * UNIT), -ENOENT);
    cr_assert_eq(wharf_client_extents_give_back(&extents, UINT64_MAX), -ENOENT);
    cr_assert_eq(wharf_client_extents_give_back(&extents, first), 0);
    cr_assert_eq(wharf_client_extents_give_back(&extents, first), -ENOENT);
    cr_assert_eq(wharf_client_extents_give_back(&extents, second), 0);
    cr_assert_eq(extents.taken_nbytes, 0);
    wharf_client_extents_deinit(&extents);
}

/* ---- at random ----------------------------------------------------------------------------- */

enum { N_UNITS = 4096, N_HELD = 700 };

struct model {
    struct wharf_client_extents extents;
    uint8_t taken[N_UNITS];
    struct {
        uint64_t offset;
        uint64_t n_units;
    } held[N_HELD];
    unsigned n_held;
    uint64_t n_taken;
    unsigned n_refused;
};

/* The longest run of free units: what an allocator that joins all neighbours can give. */
static uint64_t longest_free(const struct model *model)
{
    uint64_t longest = 0, run = 0;

    for (unsigned i = 0; i < N_UNITS; i++) {
        run = model->taken[i] ? 0 : run + 1;
        longest = run > longest ? run : longest;
    }
    return longest;
}

static void model_take(struct model *model, uint64_t nbytes)
{
    uint64_t n_units = nbytes ? (nbytes + UNIT - 1) / UNIT : 1;
    uint64_t offset = 0;
    int r = wharf_client_extents_take(&model->extents, nbytes, &offset);

    if (r < 0) {
        cr_assert_eq(r, -ENOBUFS);
        cr_assert_lt(longest_free(model), n_units, "refused though there is room");
        model->n_refused++;
        return;
    }
    cr_assert_eq(offset % UNIT, 0);
    for (uint64_t i = 0; i < n_units; i++)
        cr_assert_eq(model->taken[offset / UNIT + i]++, 0, "taken twice");
    model->held[model->n_held].offset = offset;
    model->held[model->n_held++].n_units = n_units;
    model->n_taken += n_units;
}

static void model_give_back(struct model *model, unsigned at)
{
    uint64_t offset = model->held[at].offset;

    cr_assert_eq(wharf_client_extents_give_back(&model->extents, offset), 0);
    memset(model->taken + offset / UNIT, 0, model->held[at].n_units);
    model->n_taken -= model->held[at].n_units;
    model->held[at] = model->held[--model->n_held];
}

Test(extents, random_use_never_overlaps_never_refuses_without_need)
{
    static struct model model;
    struct test_random random = {1};

    cr_assert_eq(wharf_client_extents_init(&model.extents, N_UNITS * UNIT), 0);
    for (unsigned step = 0; step < 60000; step++) {
        uint64_t most = test_random_one_in(&random, 8) ? N_UNITS * UNIT : 16 * UNIT;
        if (model.n_held < N_HELD && test_random_below(&random, 100) < 52)
            model_take(&model, test_random_below(&random, most));
        else if (model.n_held)
            model_give_back(&model, (unsigned)test_random_below(&random, model.n_held));
        cr_assert_eq(model.extents.taken_nbytes, model.n_taken * UNIT);
    }
    cr_assert_gt(model.n_refused, 100);
    while (model.n_held)
        model_give_back(&model, 0);
    cr_assert_eq(take(&model.extents, N_UNITS * UNIT), 0, "not all was joined again");
    wharf_client_extents_deinit(&model.extents);
}
