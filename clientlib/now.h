/* SPDX-License-Identifier: Apache-2.0 */
/* now.h: time in nanoseconds that never goes back. */
#ifndef WHARF_CLIENT_NOW_H
#define WHARF_CLIENT_NOW_H

#include <stdint.h>
#include <time.h>

#define WHARF_CLIENT_NEVER UINT64_MAX

static inline uint64_t wharf_client_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The time `timeout_ns` from now: NEVER if that is negative or too far. */
static inline uint64_t wharf_client_deadline(int64_t timeout_ns)
{
    uint64_t now = timeout_ns < 0 ? 0 : wharf_client_now_ns();

    if (timeout_ns < 0 || (uint64_t)timeout_ns > WHARF_CLIENT_NEVER - now)
        return WHARF_CLIENT_NEVER;
    return now + (uint64_t)timeout_ns;
}

#endif
