/* SPDX-License-Identifier: Apache-2.0 */
/* test_run.h: checks and decodes one job of the test daemon, as PROTOCOL.md says. */
#ifndef WHARF_TESTS_TEST_RUN_H
#define WHARF_TESTS_TEST_RUN_H

#include "tests/lib/test_session_state.h"

/* Sets result, reason, engine, flags and sizes of *completion. */
void test_run(struct test_session *session, const struct wharf_submission *submission,
              struct wharf_completion *completion);

#endif
