/* SPDX-License-Identifier: Apache-2.0 */
/*
 * files_limit.c: for LD_PRELOAD: a process that asks how many files it may have open is told
 * WHARF_BENCH_FILES.
 *
 * wharfd counts several descriptors for each connection, most of which are open only while a client
 * has them on their way.  Where root may not raise the limit of open files, it would not take as
 * many idle connections as it has descriptors for.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int getrlimit(__rlimit_resource_t resource, struct rlimit *limit)
{
    const char *files = getenv("WHARF_BENCH_FILES");

    if (syscall(SYS_prlimit64, 0, resource, NULL, limit) < 0)
        return -1;
    if (resource == RLIMIT_NOFILE && files)
        limit->rlim_cur = limit->rlim_max = strtoul(files, NULL, 10);
    return 0;
}
