/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_handle.h: handles with and without a daemon, for tests that apply to both.
 */
#ifndef WHARF_TESTS_TEST_HANDLE_H
#define WHARF_TESTS_TEST_HANDLE_H

#include "clientlib/wharf.h"
#include "tests/lib/test_daemon.h"

enum test_handle_kind { TEST_HANDLE_EMBEDDED, TEST_HANDLE_DAEMON, TEST_N_HANDLE_KINDS };

struct test_handle {
    enum test_handle_kind kind;
    const char *name;           /* the kind's */
    struct test_daemon *daemon; /* running; NULL without one */
    struct wharf *wharf;
};

/*
 * test_handle_open: opens a handle with these options or (NULL) defaults; sets their flags and
 * path.  Failures end the program.
 */
struct test_handle test_handle_open(enum test_handle_kind kind,
                                    const struct wharf_options *options);
void test_handle_close(struct test_handle *handle);

#endif
