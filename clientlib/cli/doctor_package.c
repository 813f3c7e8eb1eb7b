/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_package.c: how a package of wharf's own is installed here.
 *
 * No distribution has these packages: `make deb` makes them.  An administrator may have put them
 * into an archive, so apt is asked first.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clientlib/cli/doctor.h"
#include "clientlib/now.h"

#define PATIENCE_NS INT64_C(10000000000)

/* The first bytes of what it says, until it closes its end.  False: its time is over. */
static bool read_answer(int fd, char *text, size_t text_nbytes)
{
    int64_t end_ns = (int64_t)wharf_client_now_ns() + PATIENCE_NS, left_ns = PATIENCE_NS;
    size_t n_there = 0;

    for (; left_ns > 0; left_ns = end_ns - (int64_t)wharf_client_now_ns()) {
        struct pollfd one = {.fd = fd, .events = POLLIN};
        char rest[512];
        if (poll(&one, 1, (int)(left_ns / 1000000) + 1) <= 0)
            continue;
        ssize_t n = read(fd, rest, sizeof(rest));
        if (n <= 0)
            return n == 0;
        size_t n_kept =
            (size_t)n < text_nbytes - 1 - n_there ? (size_t)n : text_nbytes - 1 - n_there;
        memcpy(text + n_there, rest, n_kept);
        text[n_there += n_kept] = 0;
    }
    return false;
}

bool wharf_cli_doctor_ask(char *const arguments[], char *text, size_t text_nbytes)
{
    posix_spawn_file_actions_t actions;
    int ends[2], status = -1;
    pid_t pid;

    *text = 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return false;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    bool is_started = posix_spawnp(&pid, arguments[0], &actions, NULL, arguments, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (is_started) {
        if (!read_answer(ends[0], text, text_nbytes))
            kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
    }
    close(ends[0]);
    return status == 0;
}

/* Whether an archive that apt knows has it: an installed package is not listed for that alone. */
static bool is_in_archive(const char *name)
{
    char *const arguments[] = {"apt-cache", "madison", (char *)name, NULL};
    char text[256];

    return wharf_cli_doctor_ask(arguments, text, sizeof(text)) && strchr(text, '|');
}

void wharf_cli_finding_mend_by_package(struct wharf_cli_finding *finding, const char *name,
                                       bool is_again)
{
    const char *again = is_again ? "--reinstall " : "";

    if (!wharf_cli_doctor_has_program("apt-cache"))
        wharf_cli_finding_mend(finding, "make && sudo make install");
    else if (is_in_archive(name))
        wharf_cli_finding_mend(finding, "sudo apt install %s%s", again, name);
    else
        wharf_cli_finding_mend(finding, "make deb && sudo apt install %s./build/deb/%s_*.deb",
                               again, name);
}
