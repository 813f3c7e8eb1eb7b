/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_outcome.h: compares the outcomes of two decoders, which must agree in every member.
 */
#ifndef WHARF_TESTS_TEST_OUTCOME_H
#define WHARF_TESTS_TEST_OUTCOME_H

#include "proto/wharf_result.h"

/* Returns 1 if they agree, else 0. */
int test_outcome_same(const struct wharf_outcome *a, const struct wharf_outcome *b);

/* For messages: "bad_data, input_truncated at bit 12, 0 bytes in, 0 out". */
struct test_outcome_line {
    char text[160];
};
struct test_outcome_line test_outcome_text(const struct wharf_outcome *outcome);

#endif
