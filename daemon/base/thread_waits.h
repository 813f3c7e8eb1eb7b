/* SPDX-License-Identifier: Apache-2.0 */
/* thread_waits.h: tells a thread that waits from one whose processor went to other programs. */
#ifndef WHARF_DAEMON_BASE_THREAD_WAITS_H
#define WHARF_DAEMON_BASE_THREAD_WAITS_H

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* How often this thread has blocked.  Losing the processor to another program does not count. */
static inline long wharf_thread_waits(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

/* How long this thread was ready to run and had no processor: the second number of schedstat.
 * UINT64_MAX if the kernel does not say.  Takes some 10 us. */
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
