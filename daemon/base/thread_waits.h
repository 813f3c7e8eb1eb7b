/* SPDX-License-Identifier: Apache-2.0 */
/* thread_waits.h: telling who waits from who has lost its processor to other programs. */
#ifndef WHARF_DAEMON_BASE_THREAD_WAITS_H
#define WHARF_DAEMON_BASE_THREAD_WAITS_H

#include <sys/resource.h>

/* How often this thread has waited for something; having its processor taken is another thing. */
static inline long wharf_thread_waits(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

#endif
