/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_wait.h: waiting for what happens in another thread or process.
 */
#ifndef WHARF_TESTS_TEST_WAIT_H
#define WHARF_TESTS_TEST_WAIT_H

#include <unistd.h>

#include "daemon/base/clock.h"

/* By the clock, and far above what takes long on a machine that does much else: it is there so that
 * a test that waits in vain ends. */
#define TEST_WAIT_LIMIT_NS (100 * (uint64_t)WHARF_NS_PER_S)

/* What handles of tests have: a daemon of a test may be as late. */
#define TEST_PATIENCE_MS 100000

/* Looks at the condition every millisecond until it is true, or the limit has passed; whether it is
 * true. */
#define TEST_WAIT(condition)                                                                       \
    ({                                                                                             \
        uint64_t wait_begun_ns_ = wharf_now_ns();                                                  \
        int wait_is_true_;                                                                         \
        while (!(wait_is_true_ = !!(condition)) &&                                                 \
               wharf_now_ns() - wait_begun_ns_ < TEST_WAIT_LIMIT_NS)                               \
            usleep(1000);                                                                          \
        wait_is_true_;                                                                             \
    })

#endif
