/* SPDX-License-Identifier: Apache-2.0 */
/* thread_waits.h: telling who waits from who has lost its processor to other programs. */
#ifndef WHARF_DAEMON_BASE_THREAD_WAITS_H
#define WHARF_DAEMON_BASE_THREAD_WAITS_H

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* How often this thread has waited for something; having its processor taken is another thing. */
static inline long wharf_thread_waits(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

/* For how long this thread, ready to run, has had no processor; UINT64_MAX: the kernel does not say
 * so.  The second number of schedstat; some 10 us. */
static inline uint64_t wharf_thread_delay_ns(void)
{
    char text[64] = "", *end;
    int fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return UINT64_MAX;
    ssize_t nbytes = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (nbytes <= 0)
        return UINT64_MAX;
    strtoull(text, &end, 10);
    return strtoull(end, NULL, 10);
}

#endif
