/* SPDX-License-Identifier: Apache-2.0 */
/* test_tap.c: prints reports in the Test Anything Protocol. */
#include "tests/lib/test_tap.h"

#include <stdarg.h>
#include <stdio.h>

static unsigned n_tests, n_failed;

void test_tap_report(int good, const char *format, ...)
{
    va_list args;

    printf("%sok %u - ", good ? "" : "not ", ++n_tests);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
    fflush(stdout);
    n_failed += !good;
}

int test_tap_end(void)
{
    if (n_tests)
        printf("1..%u\n", n_tests);
    return n_failed != 0;
}
