/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_help.h: what programs of tests and benchmarks say of themselves, in C and in CUDA.
 *
 * A text begins with a paragraph "usage: NAME ..." and a line that is empty.
 */
#ifndef WHARF_TESTS_TEST_HELP_H
#define WHARF_TESTS_TEST_HELP_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* First thing in main(): with --help anywhere among its words a program prints its text and does
 * nothing else. */
static inline void test_help(int argc, char **argv, const char *text)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(text, stdout);
            exit(fflush(stdout) == 0 ? 0 : 1);
        }
    }
}

/* For words that make no sense: the usage alone, to standard error; the exit status. */
static inline int test_usage(const char *text)
{
    const char *end = strstr(text, "\n\n");
    int length = end ? (int)(end + 1 - text) : (int)strlen(text);

    fprintf(stderr, "%.*s", length, text);
    return 2;
}

#endif
