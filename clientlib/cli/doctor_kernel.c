/* SPDX-License-Identifier: Apache-2.0 */
/* doctor_kernel.c: calls of the kernel that wharf makes, by making them. */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clientlib/cli/doctor.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

static void note_refused(struct wharf_cli_doctor *doctor, const char *check,
                         enum wharf_cli_health health, int error, const char *cost,
                         const char *mend)
{
    struct wharf_cli_finding *finding =
        wharf_cli_doctor_note(doctor, check, health, "the kernel refuses it: %s", strerror(error));

    wharf_cli_finding_cost(finding, "%s", cost);
    wharf_cli_finding_mend(finding, "%s", mend);
}

/* Refused by a sysctl, by a container's filter of system calls, or by a kernel without it. */
static void look_at_io_uring(struct wharf_cli_doctor *doctor)
{
    static const char cost[] = "the daemon waits by epoll, at some more system calls";
    struct io_uring_params params = {0};
    char line[32] = "0";
    int fd = (int)syscall(SYS_io_uring_setup, 2, &params);

    if (fd >= 0) {
        close(fd);
        wharf_cli_doctor_note(doctor, "io_uring", WHARF_CLI_HEALTH_OK, "works");
        return;
    }
    int error = errno;
    wharf_cli_doctor_read(doctor, "/proc/sys/kernel/io_uring_disabled", line, sizeof(line));
    note_refused(doctor, "io_uring", WHARF_CLI_HEALTH_WARNING, error, cost,
                 *line != '0'      ? "sudo sysctl kernel.io_uring_disabled=0"
                 : error == ENOSYS ? "sudo apt install linux-image-amd64"
                                   : "podman run --security-opt seccomp=unconfined IMAGE");
}

static void look_at_pidfd(struct wharf_cli_doctor *doctor)
{
    int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

    if (fd < 0) {
        note_refused(doctor, "pidfd", WHARF_CLI_HEALTH_MISSING, errno,
                     "the daemon does not start: it could not see its processes end",
                     "sudo apt install linux-image-amd64");
        return;
    }
    close(fd);
    wharf_cli_doctor_note(doctor, "pidfd", WHARF_CLI_HEALTH_OK, "works");
}

static int try_seals(void)
{
    int fd = memfd_create("wharf-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int error = 0;

    if (fd < 0)
        return errno;
    if (ftruncate(fd, 4096) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE) < 0)
        error = errno;
    close(fd);
    return error;
}

static void look_at_seals(struct wharf_cli_doctor *doctor)
{
    int error = try_seals();

    if (error)
        note_refused(doctor, "memfd", WHARF_CLI_HEALTH_MISSING, error,
                     "no memory can be shared with a daemon", "sudo apt install linux-image-amd64");
    else
        wharf_cli_doctor_note(doctor, "memfd", WHARF_CLI_HEALTH_OK, "works, with its seals");
}

void wharf_cli_doctor_look_at_kernel(struct wharf_cli_doctor *doctor)
{
    look_at_io_uring(doctor);
    look_at_pidfd(doctor);
    look_at_seals(doctor);
}
