/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/test_worker.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/clock.h"
#include "tests/lib/test_storm.h"
#include "tests/lib/test_wharfd.h"

/* Whether process `pid` is a worker and a child of that daemon. */
static int is_worker(pid_t pid, pid_t daemon)
{
    char path[64], name[32] = "", state;
    int parent = 0;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    int n = fscanf(file, "%*d (%31[^)]) %c %d", name, &state, &parent);
    fclose(file);
    return n == 3 && parent == daemon && state != 'Z' && strcmp(name, "wharfd-gpu") == 0;
}

pid_t test_worker_pid(pid_t daemon)
{
    DIR *dir = opendir("/proc");
    pid_t found = 0;

    if (!dir)
        abort();
    for (struct dirent *entry = readdir(dir); entry && !found; entry = readdir(dir)) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid > 0 && is_worker(pid, daemon))
            found = pid;
    }
    closedir(dir);
    return found;
}

pid_t test_worker_wait(pid_t daemon, pid_t before)
{
    for (unsigned i = 0; i < 10000; i++) {
        pid_t pid = test_worker_pid(daemon);
        if (pid && pid != before)
            return pid;
        usleep(2000);
    }
    return 0;
}

void test_worker_kill(const struct test_storm *storm)
{
    struct test_worker_killer *killer = storm->tick_data;
    uint64_t now_ns = wharf_now_ns();

    if (killer->victim && now_ns < killer->kill_at_ns)
        return;
    if (killer->victim) {
        kill(killer->victim, SIGKILL);
        killer->n_kills++;
    }
    pid_t pid = test_worker_pid(killer->wharfd->pid);
    killer->victim = pid == killer->victim ? 0 : pid;
    killer->kill_at_ns = now_ns + test_random_below(&killer->random, killer->within_ns);
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
