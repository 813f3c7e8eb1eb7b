/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/hostile/crowd.h"

#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/bench_row.h"

/* ---- processors ---------------------------------------------------------------------------- */

static cpu_set_t all_processors;

void crowd_init(void)
{
    if (geteuid() != 0)
        bench_die("it takes root to be other users");
    sched_getaffinity(0, sizeof(all_processors), &all_processors);
}

static enum crowd_role role_of(int number, int n)
{
    if (n < 4)
        return CROWD_DAEMON;
    return number < n / 2 ? CROWD_DAEMON : number < n - 1 ? CROWD_NEIGHBOUR : CROWD_ITSELF;
}

void crowd_take_processors(enum crowd_role role)
{
    int n = CPU_COUNT(&all_processors), number = 0;
    cpu_set_t set;

    CPU_ZERO(&set);
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all_processors) && role_of(number++, n) == role)
            CPU_SET(i, &set);
    if (CPU_COUNT(&set))
        sched_setaffinity(0, sizeof(set), &set);
}

/* ---- processes ----------------------------------------------------------------------------- */

static pid_t crowd[CROWD_MOST_PROCESSES];
static unsigned n_crowd;

void crowd_say_ready(int ready)
{
    if (write(ready, "", 1) != 1)
        bench_die("who started the crowd is gone");
}

void crowd_begin(unsigned n, uid_t uid, bool has_many_uids, void (*run)(int ready))
{
    int ready[2];
    char byte;

    if (pipe(ready) < 0)
        bench_die("a pipe");
    for (n_crowd = 0; n_crowd < n; n_crowd++) {
        crowd[n_crowd] = fork();
        if (crowd[n_crowd] < 0)
            bench_die("fork");
        if (crowd[n_crowd])
            continue;
        close(ready[0]);
        crowd_take_processors(CROWD_ITSELF);
        if (setuid(has_many_uids ? uid + n_crowd : uid) < 0)
            bench_die("not root");
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        run(ready[1]);
    }
    close(ready[1]);
    for (unsigned i = 0; i < n; i++)
        if (read(ready[0], &byte, 1) != 1)
            bench_die("the crowd has ended by itself");
    close(ready[0]);
}

void crowd_end(void)
{
    for (unsigned i = 0; i < n_crowd; i++) {
        if (waitpid(crowd[i], NULL, WNOHANG) != 0)
            bench_die("one of the crowd has ended by itself");
        kill(crowd[i], SIGKILL);
    }
    for (unsigned i = 0; i < n_crowd; i++)
        waitpid(crowd[i], NULL, 0);
}
