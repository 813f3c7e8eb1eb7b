/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of the rule by which programs pick compressed or raw arrays (kernels/line/wharf_pick.cuh)
 * needs no GPU.
 */
#include <criterion/criterion.h>

#include "kernels/line/wharf_pick.cuh"

using namespace wharf;

/* The shortest times decide, by more than 3 %. */
Test(line_pick_simt, compression_is_picked_where_it_gains_by_more_than_noise)
{
    line_profile profile = {};
    line_array array = {};

    add_line_turn(&profile, 1.00f, 0.98f);
    cr_assert(!line_pays(profile));
    add_line_turn(&profile, 1.50f, 0.96f);
    cr_assert_eq(profile.raw_ms, 1.00f);
    cr_assert(line_pays(profile));
    add_line_turn(&profile, 0.90f, 2.00f);
    cr_assert_eq(profile.compressed_ms, 0.96f);
    cr_assert(!line_pays(profile));

    array.raw_nbytes = 4097;
    cr_assert_eq(count_line_sample(array, 50 << 20), 2);
    array.raw_nbytes = UINT64_C(1) << 30;
    cr_assert_eq(count_line_sample(array, 50 << 20), 4 * (50 << 20) / 4096 + 1);
    cr_assert_eq(count_line_sample(array, 0), 1);
}
