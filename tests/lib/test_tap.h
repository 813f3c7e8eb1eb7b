/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tap.h: reports of a test program of its own, in the Test Anything Protocol, on standard
 * output.  For one thread.
 */
#ifndef WHARF_TESTS_TEST_TAP_H
#define WHARF_TESTS_TEST_TAP_H

/* A test's line, with the next number and this name. */
void test_tap_report(int good, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The plan, if there was any test.  Returns the program's exit status: 1 if any failed, else 0. */
int test_tap_end(void);

#endif
