/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_callers.c: what serves programs as they are: the library that `wharf run` preloads, and
 * the package for Python.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clientlib/cli/doctor.h"
#include "clientlib/cli/preload_library.h"

static void look_at_preload(struct wharf_cli_doctor *doctor)
{
    char path[PATH_MAX];
    struct wharf_cli_finding *finding;

    if (wharf_cli_find_preload_library(path) == 0) {
        wharf_cli_doctor_note(doctor, "preload", WHARF_CLI_HEALTH_OK, "%.500s", path);
        return;
    }
    finding = wharf_cli_doctor_note(doctor, "preload", WHARF_CLI_HEALTH_WARNING,
                                    "libwharf-preload.so is neither beside this command nor "
                                    "installed with it");
    wharf_cli_finding_cost(finding, "`wharf run` serves no program");
    wharf_cli_finding_mend(finding, "sudo apt install --reinstall wharf");
}

/*
 * What Python says of the package: its version, or the last line of its error.  Not of a folder
 * `wharf` that happens to be where the command was started: whoever can write there would run
 * programs as this user.  A Python that hangs is ended after ten seconds.
 */
static const char script[] =
    "import signal, sys; signal.alarm(10); sys.path = [p for p in sys.path if p]; "
    "import wharf; print(wharf.__version__)";

static bool ask_python(char *text, size_t text_nbytes)
{
    char *arguments[] = {"python3", "-c", (char *)script, NULL};
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
    bool is_started = posix_spawnp(&pid, "python3", &actions, NULL, arguments, environ) == 0;
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (is_started) {
        ssize_t n = read(ends[0], text, text_nbytes - 1);
        text[n > 0 ? n : 0] = 0;
        text[strcspn(text, "\n")] = 0;
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
    }
    close(ends[0]);
    return status == 0;
}

static void look_at_python(struct wharf_cli_doctor *doctor)
{
    char version[64];
    struct wharf_cli_finding *finding;

    if (!wharf_cli_doctor_has_program("python3")) {
        wharf_cli_doctor_note(doctor, "python", WHARF_CLI_HEALTH_OK, "there is no python3");
        return;
    }
    bool is_there = ask_python(version, sizeof(version));
    if (is_there && strcmp(version, wharf_version()) == 0) {
        wharf_cli_doctor_note(doctor, "python", WHARF_CLI_HEALTH_OK, "the package wharf %s",
                              version);
        return;
    }
    finding = wharf_cli_doctor_note(doctor, "python", WHARF_CLI_HEALTH_WARNING,
                                    is_there ? "the package is wharf %s"
                                             : "python3 does not find the package wharf%s",
                                    is_there ? version : "");
    wharf_cli_finding_cost(finding, is_there ? "it is not of this version"
                                             : "Python programs decode without wharf");
    wharf_cli_finding_mend(finding, "sudo apt install python3-wharf");
}

void wharf_cli_doctor_look_at_callers(struct wharf_cli_doctor *doctor)
{
    look_at_preload(doctor);
    look_at_python(doctor);
}
