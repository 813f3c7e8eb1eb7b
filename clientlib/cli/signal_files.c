/* SPDX-License-Identifier: Apache-2.0 */
#include "clientlib/cli/signal_files.h"

#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

/*
 * The files that a signal has to remove.  A name is complete before `is_set` is, and stays until
 * that is unset again, so that a handler sees a whole name or none.
 */
static struct {
    char path[PATH_MAX];
    volatile sig_atomic_t is_set;
} files[WHARF_CLI_MAX_SIGNAL_FILES];

static void end_by_signal(int number)
{
    for (int i = 0; i < WHARF_CLI_MAX_SIGNAL_FILES; i++)
        if (files[i].is_set)
            unlink(files[i].path);
    signal(number, SIG_DFL);
    raise(number);
}

static const int ending_signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU};
enum { N_ENDING_SIGNALS = sizeof(ending_signals) / sizeof(ending_signals[0]) };

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = end_by_signal, .sa_flags = SA_RESTART};
    struct sigaction old;

    for (int i = 0; i < N_ENDING_SIGNALS; i++) {
        sigaction(ending_signals[i], NULL, &old);
        if (old.sa_handler == SIG_DFL) /* nohup's SIG_IGN stays */
            sigaction(ending_signals[i], &action, NULL);
    }
}

void wharf_cli_remove_on_signal(const char *path)
{
    int i = 0;

    catch_signals();
    while (i < WHARF_CLI_MAX_SIGNAL_FILES - 1 && files[i].is_set)
        i++;
    strcpy(files[i].path, path);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    files[i].is_set = 1;
}

void wharf_cli_keep_on_signal(const char *path)
{
    for (int i = 0; i < WHARF_CLI_MAX_SIGNAL_FILES; i++)
        if (files[i].is_set && strcmp(files[i].path, path) == 0)
            files[i].is_set = 0;
}
