/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_help.h: --help of test and benchmark programs, in C and in CUDA.
 *
 * A text begins with a paragraph "usage: NAME ..." and an empty line.
 */
#ifndef WHARF_TESTS_TEST_HELP_H
#define WHARF_TESTS_TEST_HELP_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Call this first in main().  If any argument is --help, prints the text and ends the program. */
static inline void test_help(int argc, char **argv, const char *text)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            fputs(text, stdout);
            exit(fflush(stdout) == 0 ? 0 : 1);
        }
    }
}

/* After wrong arguments: prints the usage to standard error.  Returns the exit status. */
static inline int test_usage(const char *text)
{
    const char *end = strstr(text, "\n\n");
    int length = end ? (int)(end + 1 - text) : (int)strlen(text);

    fprintf(stderr, "%.*s", length, text);
    return 2;
}

#endif
