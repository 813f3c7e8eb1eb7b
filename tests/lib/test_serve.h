/* SPDX-License-Identifier: Apache-2.0 */
/* test_serve.h: what the daemon of test_daemon.h does in one life. */
#ifndef WHARF_TESTS_TEST_SERVE_H
#define WHARF_TESTS_TEST_SERVE_H

#include "tests/lib/test_life.h"

/* test_daemon_serve: a whole life, on this listening socket. */
_Noreturn void test_daemon_serve(struct test_daemon *daemon, int listen_fd);

#endif
