/* SPDX-License-Identifier: Apache-2.0 */
/* test_process.c: stops processes, and reads /proc. */
#include "tests/lib/test_process.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/lib/test_wait.h"

/* Whether the thread /proc/PID/task/TID is stopped or gone. */
static int is_stopped(const char *folder, const char *tid)
{
    char path[400], state = 'X';

    snprintf(path, sizeof(path), "%s/%s/stat", folder, tid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 1;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 'X';
    fclose(file);
    return state == 'T' || state == 'X' || state == 'Z';
}

static int are_all_stopped(pid_t pid)
{
    char folder[64];
    int all = 1;

    snprintf(folder, sizeof(folder), "/proc/%d/task", (int)pid);
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (entry->d_name[0] != '.')
            all &= is_stopped(folder, entry->d_name);
    if (dir)
        closedir(dir);
    return all;
}

void test_process_stop(pid_t pid)
{
    if (kill(pid, SIGSTOP) < 0 || !TEST_WAIT(are_all_stopped(pid)))
        abort();
}

int test_process_n_fds(pid_t pid)
{
    char path[64];
    int n = 0;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    if (!dir)
        return -1;
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2;
}

long test_process_kib(pid_t pid)
{
    char path[64], line[256];
    long kib = -1;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    while (fgets(line, sizeof(line), file))
        sscanf(line, "VmRSS: %ld kB", &kib);
    fclose(file);
    return kib;
}

/* Of a process, if it is that one or was started by it. */
static double seconds_of(const char *entry, pid_t pid)
{
    unsigned long user = 0, kernel = 0;
    char path[300];
    int own = 0, parent = 0;

    snprintf(path, sizeof(path), "/proc/%s/stat", entry);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    int n = fscanf(file, "%d (%*[^)]) %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &own,
                   &parent, &user, &kernel);
    fclose(file);
    if (n != 4 || (own != pid && parent != pid))
        return 0;
    return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

double test_process_tree_seconds(pid_t pid)
{
    DIR *dir = opendir("/proc");
    double sum = 0;

    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
            sum += seconds_of(entry->d_name, pid);
    if (dir)
        closedir(dir);
    return sum;
}
