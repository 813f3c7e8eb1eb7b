/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of two sides does a chunk sooner, with times that are made up.
 */
#include <criterion/criterion.h>

#include "clientlib/cost_choice.h"

#define US UINT64_C(1000)

/* `n` calls; returns how many went to the daemon. */
static unsigned run(struct wharf_client_costs *costs, uint32_t codec, size_t nbytes, unsigned n,
                    uint64_t here_ns, uint64_t there_ns)
{
    unsigned n_there = 0;

    for (unsigned i = 0; i < n; i++) {
        enum wharf_client_side side = wharf_client_choose_side(costs, codec, nbytes);
        n_there += side == WHARF_CLIENT_DAEMON;
        wharf_client_note_side(costs, codec, nbytes, side,
                               side == WHARF_CLIENT_DAEMON ? there_ns : here_ns);
    }
    return n_there;
}

Test(cost_choice, both_are_tried_first)
{
    struct wharf_client_costs costs = {0};

    cr_expect_eq(run(&costs, 1, 100000, 2, 10 * US, 1000 * US), 1);
    cr_expect_eq(run(&costs, 2, 100000, 2, 1000 * US, 10 * US), 1, "another codec");
    cr_expect_eq(run(&costs, 1, 1000, 2, 1000 * US, 10 * US), 1, "another size");
}

Test(cost_choice, the_sooner_one_is_taken_and_the_other_tried_now_and_then)
{
    struct wharf_client_costs costs = {0};

    unsigned n = run(&costs, 1, 100000, 100, 10 * US, 20 * US);
    cr_expect(n >= 4 && n <= 7, "mostly to learn: %u", n);
    n = run(&costs, 1, 100000, 102700, 10 * US, 20 * US);
    cr_expect(n >= 290 && n <= 310, "three of 1027: %u", n);
    cr_expect(run(&costs, 2, 100000, 10000, 20 * US, 10 * US) > 9840);
    /* What is a thousand times as slow is tried once in four thousand calls. */
    run(&costs, 3, 100000, 100, US, 1000 * US);
    cr_expect_eq(run(&costs, 3, 100000, 8192, US, 1000 * US), 2);
}

Test(cost_choice, what_has_become_slower_is_left)
{
    struct wharf_client_costs costs = {0};

    run(&costs, 1, 100000, 1000, 10 * US, 20 * US);
    cr_expect(run(&costs, 1, 100000, 1000, 80 * US, 20 * US) > 900);
    unsigned n = run(&costs, 1, 100000, 1000, 10 * US, 20 * US);
    cr_expect(n < 700, "and taken again: %u", n);
}

Test(cost_choice, one_call_that_was_held_up_changes_nothing)
{
    struct wharf_client_costs costs = {0};

    run(&costs, 1, 100000, 1000, 10 * US, 20 * US);
    wharf_client_note_side(&costs, 1, 100000, WHARF_CLIENT_INLINE, 1000000 * US);
    cr_expect(run(&costs, 1, 100000, 1000, 10 * US, 20 * US) < 20);
}

/* Of calls here the first one behind one there takes `cold_ns`. */
static unsigned run_cold(struct wharf_client_costs *costs, unsigned n, uint64_t cold_ns,
                         uint64_t here_ns, uint64_t there_ns)
{
    enum wharf_client_side last = WHARF_CLIENT_INLINE;
    unsigned n_there = 0;

    for (unsigned i = 0; i < n; i++) {
        enum wharf_client_side side = wharf_client_choose_side(costs, 1, 100000);
        uint64_t took_ns = side == WHARF_CLIENT_DAEMON ? there_ns
                           : side != last              ? cold_ns
                                                       : here_ns;
        n_there += side == WHARF_CLIENT_DAEMON;
        wharf_client_note_side(costs, 1, 100000, side, took_ns);
        last = side;
    }
    return n_there;
}

/* Once some of eight processes stayed there, where each call took 160 us, for as long as they ran:
 * here it would have been 85, but for the first one. */
Test(cost_choice, first_call_after_others_is_not_what_the_next_would_take)
{
    struct wharf_client_costs costs = {0};

    run_cold(&costs, 1000, 30 * US, 10 * US, 20 * US);
    cr_expect_gt(run_cold(&costs, 1000, 80 * US, 80 * US, 20 * US), 900);
    run_cold(&costs, 1000, 30 * US, 10 * US, 20 * US);
    unsigned n = run_cold(&costs, 1000, 30 * US, 10 * US, 20 * US);
    cr_expect_lt(n, 40, "%u", n);
}

/* It takes 10 and 50 us by turns, 30 in the mean. */
Test(cost_choice, mean_decides)
{
    struct wharf_client_costs costs = {0};
    unsigned n_there = 0;

    run(&costs, 1, 100000, 100, 22 * US, 30 * US);
    for (unsigned i = 0; i < 10000; i++) {
        enum wharf_client_side side = wharf_client_choose_side(&costs, 1, 100000);
        bool is_there = side == WHARF_CLIENT_DAEMON;
        n_there += is_there;
        wharf_client_note_side(&costs, 1, 100000, side,
                               !is_there     ? 22 * US
                               : n_there % 2 ? 50 * US
                                             : 10 * US);
    }
    cr_expect_lt(n_there, 1500, "%u", n_there);
}

Test(cost_choice, any_size_and_codec_has_an_entry)
{
    struct wharf_client_costs costs = {0};

    cr_expect_eq(run(&costs, UINT32_MAX, SIZE_MAX, 2, 0, 0), 1);
    cr_expect_eq(run(&costs, UINT32_MAX, 0, 2, UINT64_MAX / 2, 0), 1);
    cr_expect(run(&costs, 0, SIZE_MAX, 100, UINT64_MAX / 2, UINT64_MAX / 2) < 100);
}
