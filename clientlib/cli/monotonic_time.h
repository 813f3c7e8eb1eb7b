/* SPDX-License-Identifier: Apache-2.0 */
/* monotonic_time.h: time that only goes forward. */
#ifndef WHARF_CLI_MONOTONIC_TIME_H
#define WHARF_CLI_MONOTONIC_TIME_H

#include <stdint.h>
#include <time.h>

static inline uint64_t wharf_cli_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
