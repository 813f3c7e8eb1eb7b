/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of two places does a chunk sooner, with times that are made up.
 */
#include <criterion/criterion.h>

#include "clientlib/places.h"

#define US UINT64_C(1000)

/* `n` calls; returns how many went to the daemon. */
static unsigned run(struct wharf_client_places *places, uint32_t codec, size_t nbytes, unsigned n,
                    uint64_t here_ns, uint64_t there_ns)
{
    unsigned n_there = 0;

    for (unsigned i = 0; i < n; i++) {
        enum wharf_client_place_name place = wharf_client_choose_place(places, codec, nbytes);
        n_there += place == WHARF_CLIENT_THERE;
        wharf_client_note_place(places, codec, nbytes, place,
                                place == WHARF_CLIENT_THERE ? there_ns : here_ns);
    }
    return n_there;
}

Test(places, both_are_tried_first)
{
    struct wharf_client_places places = {0};

    cr_expect_eq(run(&places, 1, 100000, 2, 10 * US, 1000 * US), 1);
    cr_expect_eq(run(&places, 2, 100000, 2, 1000 * US, 10 * US), 1, "another codec");
    cr_expect_eq(run(&places, 1, 1000, 2, 1000 * US, 10 * US), 1, "another size");
}

Test(places, the_sooner_one_is_taken_and_the_other_tried_now_and_then)
{
    struct wharf_client_places places = {0};

    cr_expect_eq(run(&places, 1, 100000, 100, 10 * US, 20 * US), 5, "mostly to learn");
    unsigned n = run(&places, 1, 100000, 12900, 10 * US, 20 * US);
    cr_expect(n >= 90 && n <= 110, "every 129th: %u", n);
    cr_expect(run(&places, 2, 100000, 10000, 20 * US, 10 * US) > 9880);
    /* What is a thousand times as slow is tried once in four thousand calls. */
    run(&places, 3, 100000, 100, US, 1000 * US);
    cr_expect_eq(run(&places, 3, 100000, 8192, US, 1000 * US), 2);
}

Test(places, what_has_become_slower_is_left)
{
    struct wharf_client_places places = {0};

    run(&places, 1, 100000, 1000, 10 * US, 20 * US);
    cr_expect(run(&places, 1, 100000, 1000, 80 * US, 20 * US) > 900);
    cr_expect(run(&places, 1, 100000, 1000, 10 * US, 20 * US) < 500, "and taken again");
}

Test(places, one_call_that_was_held_up_changes_nothing)
{
    struct wharf_client_places places = {0};

    run(&places, 1, 100000, 1000, 10 * US, 20 * US);
    wharf_client_note_place(&places, 1, 100000, WHARF_CLIENT_HERE, 1000000 * US);
    cr_expect(run(&places, 1, 100000, 1000, 10 * US, 20 * US) < 20);
}

Test(places, any_size_and_codec_has_a_place)
{
    struct wharf_client_places places = {0};

    cr_expect_eq(run(&places, UINT32_MAX, SIZE_MAX, 2, 0, 0), 1);
    cr_expect_eq(run(&places, UINT32_MAX, 0, 2, UINT64_MAX / 2, 0), 1);
    cr_expect(run(&places, 0, SIZE_MAX, 100, UINT64_MAX / 2, UINT64_MAX / 2) < 100);
}
