/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of two sides does a chunk sooner, with times that are made up.
 */
#include <criterion/criterion.h>

#include "clientlib/sides.h"

#define US UINT64_C(1000)

/* `n` calls; returns how many went to the daemon. */
static unsigned run(struct wharf_client_costs *costs, uint32_t codec, size_t nbytes, unsigned n,
                    uint64_t here_ns, uint64_t there_ns)
{
    unsigned n_there = 0;

    for (unsigned i = 0; i < n; i++) {
        enum wharf_client_side side = wharf_client_choose_side(costs, codec, nbytes);
        n_there += side == WHARF_CLIENT_THERE;
        wharf_client_note_side(costs, codec, nbytes, side,
                               side == WHARF_CLIENT_THERE ? there_ns : here_ns);
    }
    return n_there;
}

Test(sides, both_are_tried_first)
{
    struct wharf_client_costs costs = {0};

    cr_expect_eq(run(&costs, 1, 100000, 2, 10 * US, 1000 * US), 1);
    cr_expect_eq(run(&costs, 2, 100000, 2, 1000 * US, 10 * US), 1, "another codec");
    cr_expect_eq(run(&costs, 1, 1000, 2, 1000 * US, 10 * US), 1, "another size");
}

Test(sides, the_sooner_one_is_taken_and_the_other_tried_now_and_then)
{
    struct wharf_client_costs costs = {0};

    cr_expect_eq(run(&costs, 1, 100000, 100, 10 * US, 20 * US), 5, "mostly to learn");
    unsigned n = run(&costs, 1, 100000, 12900, 10 * US, 20 * US);
    cr_expect(n >= 90 && n <= 110, "every 129th: %u", n);
    cr_expect(run(&costs, 2, 100000, 10000, 20 * US, 10 * US) > 9880);
    /* What is a thousand times as slow is tried once in four thousand calls. */
    run(&costs, 3, 100000, 100, US, 1000 * US);
    cr_expect_eq(run(&costs, 3, 100000, 8192, US, 1000 * US), 2);
}

Test(sides, what_has_become_slower_is_left)
{
    struct wharf_client_costs costs = {0};

    run(&costs, 1, 100000, 1000, 10 * US, 20 * US);
    cr_expect(run(&costs, 1, 100000, 1000, 80 * US, 20 * US) > 900);
    cr_expect(run(&costs, 1, 100000, 1000, 10 * US, 20 * US) < 500, "and taken again");
}

Test(sides, one_call_that_was_held_up_changes_nothing)
{
    struct wharf_client_costs costs = {0};

    run(&costs, 1, 100000, 1000, 10 * US, 20 * US);
    wharf_client_note_side(&costs, 1, 100000, WHARF_CLIENT_HERE, 1000000 * US);
    cr_expect(run(&costs, 1, 100000, 1000, 10 * US, 20 * US) < 20);
}

Test(sides, any_size_and_codec_has_an_entry)
{
    struct wharf_client_costs costs = {0};

    cr_expect_eq(run(&costs, UINT32_MAX, SIZE_MAX, 2, 0, 0), 1);
    cr_expect_eq(run(&costs, UINT32_MAX, 0, 2, UINT64_MAX / 2, 0), 1);
    cr_expect(run(&costs, 0, SIZE_MAX, 100, UINT64_MAX / 2, UINT64_MAX / 2) < 100);
}
