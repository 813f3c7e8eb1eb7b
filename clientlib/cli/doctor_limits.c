/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor_limits.c: limits of the daemon's process, or where none runs of this one, of which a
 * private daemon would have the same; and those of the whole system.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/cli/doctor.h"
#include "clientlib/cli/number.h"

enum {
    /* What a user's 256 connections, the default of max_connections, take of each. */
    FILES_A_CLIENT = 8,
    MAPPINGS_A_CLIENT = 4,
    CLIENTS = 256,
    /* Linux's own default of the sysctl. */
    DEFAULT_MAPPINGS = 65530,
};

struct limits {
    pid_t pid;
    uint64_t memlock_nbytes; /* UINT64_MAX: unlimited */
    uint64_t n_files;
};

/* The hard one, the second number of a line; the daemon raises the soft one to it. */
static void take_line(const char *line, const char *name, uint64_t *ret_limit)
{
    uint64_t value;

    if (strncmp(line, name, strlen(name)) != 0)
        return;
    if (sscanf(line + strlen(name), "%*s %" SCNu64, &value) == 1)
        *ret_limit = value;
}

/* Whose they are: the daemon's, or this process's where there is none or it is not to be seen. */
static void read_limits(pid_t pid, struct limits *ret_limits)
{
    struct limits limits = {pid, UINT64_MAX, UINT64_MAX};
    char path[64], line[256];

    snprintf(path, sizeof(path), "/proc/%d/limits", (int)pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file)) {
        take_line(line, "Max locked memory ", &limits.memlock_nbytes);
        take_line(line, "Max open files ", &limits.n_files);
    }
    if (file)
        fclose(file);
    *ret_limits = limits;
}

static void mend_by_limit(const struct wharf_cli_doctor *doctor, struct wharf_cli_finding *finding,
                          const char *name, const char *value)
{
    if (doctor->daemon_pid)
        wharf_cli_finding_mend(finding, "sudo prlimit --pid %d --%s=%s", (int)doctor->daemon_pid,
                               name, value);
    else
        wharf_cli_finding_mend(finding, "sudo prlimit --pid $$ --%s=%s", name, value);
}

static const char *whose(const struct wharf_cli_doctor *doctor)
{
    return doctor->daemon_pid ? "the daemon" : "a daemon started here";
}

static void look_at_memlock(struct wharf_cli_doctor *doctor, const struct limits *limits)
{
    char size[WHARF_CLI_SIZE_TEXT];
    struct wharf_cli_finding *finding;

    if (limits->memlock_nbytes == UINT64_MAX) {
        wharf_cli_doctor_note(doctor, "memlock", WHARF_CLI_HEALTH_OK, "unlimited");
        return;
    }
    wharf_cli_size_text(limits->memlock_nbytes, size);
    if (doctor->n_gpus == 0) {
        wharf_cli_doctor_note(doctor, "memlock", WHARF_CLI_HEALTH_OK,
                              "%s may lock %s; without a GPU nothing is pinned", whose(doctor),
                              size);
        return;
    }
    finding = wharf_cli_doctor_note(doctor, "memlock", WHARF_CLI_HEALTH_WARNING,
                                    "%s may lock %s of memory", whose(doctor), size);
    wharf_cli_finding_cost(finding, "jobs whose memory cannot be pinned run on CPUs");
    mend_by_limit(doctor, finding, "memlock", "unlimited");
}

static void look_at_files(struct wharf_cli_doctor *doctor, const struct limits *limits)
{
    struct wharf_cli_finding *finding;

    if (limits->n_files >= FILES_A_CLIENT * CLIENTS) {
        wharf_cli_doctor_note(doctor, "nofile", WHARF_CLI_HEALTH_OK,
                              "%s may have %" PRIu64 " descriptors", whose(doctor),
                              limits->n_files);
        return;
    }
    finding = wharf_cli_doctor_note(doctor, "nofile", WHARF_CLI_HEALTH_WARNING,
                                    "%s may have %" PRIu64 " descriptors", whose(doctor),
                                    limits->n_files);
    wharf_cli_finding_cost(finding, "at most %" PRIu64 " clients at a time",
                           limits->n_files / FILES_A_CLIENT);
    mend_by_limit(doctor, finding, "nofile", "524288");
}

static void look_at_mappings(struct wharf_cli_doctor *doctor)
{
    char line[64] = "";
    struct wharf_cli_finding *finding;
    uint64_t n;

    if (!wharf_cli_doctor_read(doctor, "/proc/sys/vm/max_map_count", line, sizeof(line)) ||
        sscanf(line, "%" SCNu64, &n) != 1)
        n = DEFAULT_MAPPINGS;
    if (n >= MAPPINGS_A_CLIENT * CLIENTS) {
        wharf_cli_doctor_note(doctor, "mappings", WHARF_CLI_HEALTH_OK,
                              "vm.max_map_count is %" PRIu64, n);
        return;
    }
    finding = wharf_cli_doctor_note(doctor, "mappings", WHARF_CLI_HEALTH_WARNING,
                                    "vm.max_map_count is %" PRIu64, n);
    wharf_cli_finding_cost(finding, "at most %" PRIu64 " clients at a time", n / MAPPINGS_A_CLIENT);
    wharf_cli_finding_mend(finding, "sudo sysctl vm.max_map_count=%d", DEFAULT_MAPPINGS);
}

/* The daemon asks for huge pages where it puts large outputs together. */
static void look_at_huge_pages(struct wharf_cli_doctor *doctor)
{
    static const char path[] = "/sys/kernel/mm/transparent_hugepage/enabled";
    char line[128];
    struct wharf_cli_finding *finding;

    if (!wharf_cli_doctor_read(doctor, path, line, sizeof(line)))
        strcpy(line, "[never]");
    if (!strstr(line, "[never]")) {
        wharf_cli_doctor_note(doctor, "hugepages", WHARF_CLI_HEALTH_OK, "%s",
                              strstr(line, "[always]") ? "always" : "where they are asked for");
        return;
    }
    finding = wharf_cli_doctor_note(doctor, "hugepages", WHARF_CLI_HEALTH_WARNING,
                                    "the kernel gives none");
    wharf_cli_finding_cost(finding, "large chunks meet a page fault every 4 KiB");
    wharf_cli_finding_mend(finding, "echo madvise | sudo tee %s", path);
}

void wharf_cli_doctor_look_at_limits(struct wharf_cli_doctor *doctor)
{
    struct limits limits;

    read_limits(doctor->daemon_pid ? doctor->daemon_pid : getpid(), &limits);
    look_at_memlock(doctor, &limits);
    look_at_files(doctor, &limits);
    look_at_mappings(doctor);
    look_at_huge_pages(doctor);
}
