/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/test_worker.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
