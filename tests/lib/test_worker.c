/* SPDX-License-Identifier: Apache-2.0 */
/* test_worker.c: finds a daemon's GPU workers, and kills them. */
#include "tests/lib/test_worker.h"

#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "tests/lib/test_storm.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"

const char *test_worker_program(void)
{
    static char path[PATH_MAX + 32];
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);

    if (n < 0)
        abort();
    path[n] = 0;
    for (unsigned i = 0; i < 2; i++)
        *strrchr(path, '/') = 0;
    strcat(path, "/wharfd-simt");
    return path;
}

/* Whether this is the last argument of the process. */
static int ends_with(pid_t pid, const char *last)
{
    char path[64], line[512];

    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    size_t n = fread(line, 1, sizeof(line), file), n_last = strlen(last) + 1;
    fclose(file);
    return n > n_last && line[n - n_last - 1] == 0 && memcmp(line + n - n_last, last, n_last) == 0;
}

/* Whether process `pid` is a worker for this GPU (NULL: any), and a child of that daemon. */
static int is_worker(pid_t pid, pid_t daemon, const char *gpu)
{
    char path[64], name[32] = "", state;
    int parent = 0;

    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    int n = fscanf(file, "%*d (%31[^)]) %c %d", name, &state, &parent);
    fclose(file);
    return n == 3 && parent == daemon && state != 'Z' && strcmp(name, "wharfd-gpu") == 0 &&
           (!gpu || ends_with(pid, gpu));
}

pid_t test_worker_of_gpu(pid_t daemon, const char *gpu)
{
    DIR *dir = opendir("/proc");
    pid_t found = 0;

    if (!dir)
        abort();
    for (struct dirent *entry = readdir(dir); entry && !found; entry = readdir(dir)) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        if (pid > 0 && is_worker(pid, daemon, gpu))
            found = pid;
    }
    closedir(dir);
    return found;
}

pid_t test_worker_pid(pid_t daemon)
{
    return test_worker_of_gpu(daemon, NULL);
}

pid_t test_worker_wait(pid_t daemon, pid_t before)
{
    pid_t pid = 0;

    return TEST_WAIT((pid = test_worker_pid(daemon)) && pid != before) ? pid : 0;
}

static int has_killed_all(const struct test_worker_killer *killer)
{
    return killer->most_kills && killer->n_kills == killer->most_kills;
}

/* Whether the victim may be killed now.  After three workers in a row that ended before they were
 * ready, the daemon gives the GPU up; on a loaded machine each kill might hit one.  So at most one
 * is killed before it is ready. */
static int may_kill(struct test_worker_killer *killer)
{
    int is_up = test_wharfd_metric(killer->wharfd, "wharf_gpu_up", killer->gpu) > 0;
    int may = is_up || !killer->was_early;

    if (may)
        killer->was_early = !is_up;
    return may;
}

void test_worker_kill(const struct test_storm *storm)
{
    struct test_worker_killer *killer = storm->tick_data;
    uint64_t now_ns = wharf_now_ns();

    if ((killer->victim && now_ns < killer->kill_at_ns) || has_killed_all(killer))
        return;
    if (killer->victim && may_kill(killer)) {
        kill(killer->victim, SIGKILL);
        killer->n_kills++;
    }
    pid_t pid = test_worker_of_gpu(killer->wharfd->pid, killer->gpu);
    killer->victim = pid == killer->victim ? 0 : pid;
    killer->kill_at_ns = now_ns + test_random_below(&killer->random, killer->within_ns);
}

/* Whether the daemon has seen that worker ready. */
static int is_ready(const struct test_worker_killer *killer, pid_t pid)
{
    return pid && test_wharfd_metric(killer->wharfd, "wharf_gpu_up", killer->gpu) == 1 &&
           test_worker_of_gpu(killer->wharfd->pid, killer->gpu) == pid;
}

void test_worker_kill_ready(const struct test_storm *storm)
{
    struct test_worker_killer *killer = storm->tick_data;
    uint64_t now_ns = wharf_now_ns();

    if (now_ns < killer->kill_at_ns || has_killed_all(killer))
        return;
    killer->kill_at_ns = now_ns + test_random_below(&killer->random, killer->within_ns);
    pid_t pid = test_worker_of_gpu(killer->wharfd->pid, killer->gpu);
    if (killer->victim && killer->victim == pid) {
        kill(pid, SIGKILL);
        killer->n_kills++;
        killer->victim = 0;
    } else if (is_ready(killer, pid)) {
        killer->victim = pid;
    }
}
