/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_rounds.h: how often a test repeats cases of the same kinds.
 *
 * The release build runs all n rounds.  With sanitizers a round takes three to ten times as long,
 * and what they find depends on the kind of a case, not on its number.  So builds with them run a
 * third, and n / 3 rounds must include every kind.
 */
#ifndef WHARF_TESTS_LIB_TEST_ROUNDS_H
#define WHARF_TESTS_LIB_TEST_ROUNDS_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_ROUNDS(n) ((n) / 3)
#else
#define TEST_ROUNDS(n) (n)
#endif

#endif
