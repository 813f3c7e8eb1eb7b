/* SPDX-License-Identifier: Apache-2.0 */
/* test_serve.h: one life of the daemon of test_daemon.h. */
#ifndef WHARF_TESTS_TEST_SERVE_H
#define WHARF_TESTS_TEST_SERVE_H

#include "tests/lib/test_life.h"

/* test_daemon_serve: lives on this listening socket. */
_Noreturn void test_daemon_serve(struct test_daemon *daemon, int listen_fd);

#endif
