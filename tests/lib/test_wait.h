/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_wait.h: waits for events in another thread or process.
 */
#ifndef WHARF_TESTS_TEST_WAIT_H
#define WHARF_TESTS_TEST_WAIT_H

#include <unistd.h>

#include "daemon/base/clock.h"

/* Only ends tests that wait in vain, so it is far above what takes long on a loaded machine. */
#define TEST_WAIT_LIMIT_NS (100 * (uint64_t)WHARF_NS_PER_S)

/* The patience of tests' handles: a test's daemon may be as late. */
#define TEST_PATIENCE_MS 100000

/* Checks the condition every millisecond until it is true or limit_ns have passed.  Whether it is
 * true. */
#define TEST_WAIT_AT_MOST(limit_ns, condition)                                                     \
    ({                                                                                             \
        uint64_t wait_begun_ns_ = wharf_now_ns();                                                  \
        int wait_is_true_;                                                                         \
        while (!(wait_is_true_ = !!(condition)) && wharf_now_ns() - wait_begun_ns_ < (limit_ns))   \
            usleep(1000);                                                                          \
        wait_is_true_;                                                                             \
    })

#define TEST_WAIT(condition) TEST_WAIT_AT_MOST(TEST_WAIT_LIMIT_NS, condition)

#endif
