/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_handle.h: handles of both kinds, for tests that hold for either.
 */
#ifndef WHARF_TESTS_TEST_HANDLE_H
#define WHARF_TESTS_TEST_HANDLE_H

#include "clientlib/wharf.h"
#include "tests/lib/test_daemon.h"

enum test_handle_kind { TEST_HANDLE_EMBEDDED, TEST_HANDLE_DAEMON, TEST_N_HANDLE_KINDS };

struct test_handle {
    enum test_handle_kind kind;
    const char *name;           /* of the kind */
    struct test_daemon *daemon; /* running; NULL for an embedded one */
    struct wharf *wharf;
};

/*
 * test_handle_open: with these options, whose flags and path are set here, or NULL.  Ends the
 * program when that fails.
 */
struct test_handle test_handle_open(enum test_handle_kind kind,
                                    const struct wharf_options *options);
void test_handle_close(struct test_handle *handle);

#endif
