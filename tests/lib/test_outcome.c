/* SPDX-License-Identifier: Apache-2.0 */
/* test_outcome.c: compares outcomes, and prints them. */
#include "tests/lib/test_outcome.h"

#include <inttypes.h>
#include <stdio.h>

int test_outcome_same(const struct wharf_outcome *a, const struct wharf_outcome *b)
{
    return a->result == b->result && a->reason == b->reason && a->bit_offset == b->bit_offset &&
           a->in_nbytes == b->in_nbytes && a->out_nbytes == b->out_nbytes;
}

struct test_outcome_line test_outcome_text(const struct wharf_outcome *outcome)
{
    struct test_outcome_line line;

    snprintf(line.text, sizeof(line.text),
             "%s, %s at bit %" PRIu64 ", %" PRIu64 " bytes in, %" PRIu64 " out",
             wharf_result_name(outcome->result), wharf_reason_name(outcome->reason),
             outcome->bit_offset, outcome->in_nbytes, outcome->out_nbytes);
    return line;
}
