/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_tap.h: test reports of a program, in the Test Anything Protocol, on standard output.  One
 * thread.
 */
#ifndef WHARF_TESTS_TEST_TAP_H
#define WHARF_TESTS_TEST_TAP_H

/* Prints a test's line, with the next number and this name. */
void test_tap_report(int good, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints the plan, if there was any test.  Returns the program's exit status: 1 if any failed, else
 * 0. */
int test_tap_end(void);

#endif
