/* SPDX-License-Identifier: Apache-2.0 */
/* process_stats.c: reads what the daemon's process uses, from getrusage and /proc. */
#include "daemon/base/process_stats.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static double seconds_of(const struct timeval *time)
{
    return (double)time->tv_sec + 1e-6 * (double)time->tv_usec;
}

static double read_cpu_s(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_SELF, &usage) == 0
               ? seconds_of(&usage.ru_utime) + seconds_of(&usage.ru_stime)
               : 0;
}

/* Without ".", ".." and the descriptor of the folder itself. */
static uint64_t count_fds(void)
{
    DIR *folder = opendir("/proc/self/fd");
    uint64_t n = 0;

    if (!folder)
        return 0;
    while (readdir(folder))
        n++;
    closedir(folder);
    return n > 3 ? n - 3 : 0;
}

static uint64_t read_most_fds(void)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

static void read_memory(struct wharf_process_stats *stats)
{
    uint64_t n_virtual, n_resident, page_nbytes = (uint64_t)sysconf(_SC_PAGESIZE);
    FILE *file = fopen("/proc/self/statm", "re");

    if (!file)
        return;
    if (fscanf(file, "%" SCNu64 " %" SCNu64, &n_virtual, &n_resident) == 2) {
        stats->virtual_nbytes = n_virtual * page_nbytes;
        stats->resident_nbytes = n_resident * page_nbytes;
    }
    fclose(file);
}

void wharf_process_stats_read(struct wharf_process_stats *ret_stats)
{
    *ret_stats = (struct wharf_process_stats){
        .cpu_s = read_cpu_s(),
        .n_fds = count_fds(),
        .most_fds = read_most_fds(),
    };
    read_memory(ret_stats);
}
