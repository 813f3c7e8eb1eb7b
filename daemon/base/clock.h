/* SPDX-License-Identifier: Apache-2.0 */
/* clock.h: the daemon's only clock, in nanoseconds.  It never goes back. */
#ifndef WHARF_DAEMON_BASE_CLOCK_H
#define WHARF_DAEMON_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define WHARF_NS_PER_US 1000u
#define WHARF_NS_PER_MS 1000000u
#define WHARF_NS_PER_S 1000000000u

/* The time that never comes: later than all others. */
#define WHARF_NEVER UINT64_MAX

static inline uint64_t wharf_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * WHARF_NS_PER_S + (uint64_t)now.tv_nsec;
}

#endif
