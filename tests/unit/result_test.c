/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The results' and reasons' strings and names, and the codec list.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "encoders/codec.h"
#include "proto/wharf_result.h"

/* Reasons have groups with room between them: look well past the last one. */
#define REASONS_TO_TRY 256

Test(result, every_result_has_its_own_string_and_name)
{
    for (uint32_t a = WHARF_OK; a <= WHARF_BAD_REQUEST; a++) {
        cr_assert_str_neq(wharf_result_string(a), "unknown result", "result %u", a);
        for (uint32_t b = 0; b < a; b++) {
            cr_assert_str_neq(wharf_result_string(a), wharf_result_string(b));
            cr_assert_str_neq(wharf_result_name(a), wharf_result_name(b));
        }
    }
}

Test(result, known_reasons_have_strings_and_names_that_differ)
{
    unsigned n_known = 0;
    for (uint32_t a = 0; a < REASONS_TO_TRY; a++) {
        int known = strcmp(wharf_reason_name(a), "unknown") != 0;
        cr_assert_eq(known, strcmp(wharf_reason_string(a), "unknown reason") != 0, "reason %u", a);
        for (uint32_t b = 0; known && b < a; b++) {
            cr_assert_str_neq(wharf_reason_name(a), wharf_reason_name(b), "%u and %u", a, b);
            cr_assert_str_neq(wharf_reason_string(a), wharf_reason_string(b), "%u and %u", a, b);
        }
        n_known += (unsigned)known;
    }
    cr_assert_geq(n_known, 36);
}

Test(result, unknown_values_have_a_string)
{
    cr_assert_str_eq(wharf_result_string(UINT32_MAX), "unknown result");
    cr_assert_str_eq(wharf_result_name(WHARF_FILE_ERROR + 1), "unknown");
    cr_assert_str_eq(wharf_reason_string(UINT32_MAX), "unknown reason");
    cr_assert_str_eq(wharf_reason_name(UINT32_MAX), "unknown");
}

Test(result, numbers_are_the_pinned_ones)
{
    cr_assert_eq(WHARF_OK, 0);
    cr_assert_eq(WHARF_BAD_REQUEST, 12);
    cr_assert_str_eq(wharf_reason_name(26), "deflate_distance_too_far");
    cr_assert_str_eq(wharf_result_name(4), "bad_checksum");
}
