/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.c: runs the daemon's own program again for one of its helper processes. */
#include "daemon/base/spawn.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <unistd.h>

/* A descriptor is inherited by duplicating it onto itself, which clears its close-on-exec flag. */
static int add_descriptors(posix_spawn_file_actions_t *actions, int fd, const int *kept,
                           unsigned n_kept)
{
    int r = posix_spawn_file_actions_adddup2(actions, fd, fd);

    for (unsigned i = 0; i < n_kept && r == 0; i++)
        r = posix_spawn_file_actions_adddup2(actions, kept[i], kept[i]);
    return r;
}

int wharf_spawn_self(const char *role, int fd, const int *kept, unsigned n_kept, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    char fd_text[16], parent_text[16];
    char *argv[] = {(char *)"wharfd", (char *)role, fd_text, parent_text, NULL};
    posix_spawnattr_t attributes;
    sigset_t none;

    snprintf(fd_text, sizeof(fd_text), "%d", fd);
    snprintf(parent_text, sizeof(parent_text), "%d", (int)getpid());
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_init(&actions);
    int r = add_descriptors(&actions, fd, kept, n_kept);
    /* Passes the environment on, which the program may need to find its libraries. */
    if (r == 0)
        r = posix_spawn(ret_pid, "/proc/self/exe", &actions, &attributes, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    return -r;
}
