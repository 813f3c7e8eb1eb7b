/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.c: the machine's limits on memory, files, mappings and tasks, from /proc, cgroups and
 * rlimits.
 */
#include "daemon/base/machine.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* The number at the beginning of a file; UINT64_MAX if there is none, as for `max`. */
static uint64_t read_number(const char *path)
{
    uint64_t value;
    FILE *file = fopen(path, "re");

    if (!file)
        return UINT64_MAX;
    if (fscanf(file, "%" SCNu64, &value) != 1)
        value = UINT64_MAX;
    fclose(file);
    return value;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t physical_nbytes(const char *root)
{
    char path[PATH_MAX], line[256];
    uint64_t kib = UINT64_MAX;

    snprintf(path, sizeof(path), "%s/proc/meminfo", root);
    FILE *file = fopen(path, "re");
    if (!file)
        return UINT64_MAX;
    while (fgets(line, sizeof(line), file) && sscanf(line, "MemTotal: %" SCNu64, &kib) != 1) {
    }
    fclose(file);
    return kib > UINT64_MAX / 1024 ? UINT64_MAX : kib * 1024;
}

/* The least limit of a control group and its ancestors.  A container may see only its own part of
 * the tree, in which the group's path does not exist. */
static uint64_t least_of_group(const char *root, const char *mount, char *group, const char *name)
{
    char path[PATH_MAX];
    uint64_t result = UINT64_MAX;

    for (;;) {
        snprintf(path, sizeof(path), "%s%s%s/%s", root, mount, group, name);
        result = least(result, read_number(path));
        char *last = strrchr(group, '/');
        if (!last)
            return result;
        *last = 0;
    }
}

/* The limits of one resource, in version 1 of control groups and in version 2. */
struct resource {
    const char *controller, *mount, *file, *file_2;
};

static const struct resource memory = {"memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                       "memory.max"};
static const struct resource tasks = {"pids", "/sys/fs/cgroup/pids", "pids.max", "pids.max"};

/* Reads a line of /proc/self/cgroup: NUMBER:CONTROLLERS:GROUP.  In version 2 CONTROLLERS is
 * empty. */
static uint64_t limit_of_line(const char *root, char *line, const struct resource *resource)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;

    if (!group)
        return UINT64_MAX;
    *controllers++ = 0;
    *group++ = 0;
    group[strcspn(group, "\n")] = 0;
    if (!*controllers)
        return least_of_group(root, "/sys/fs/cgroup", group, resource->file_2);
    if (strcmp(controllers, resource->controller) == 0)
        return least_of_group(root, resource->mount, group, resource->file);
    return UINT64_MAX;
}

static uint64_t limit_of_group(const char *root, const struct resource *resource)
{
    char path[PATH_MAX], line[PATH_MAX];
    uint64_t result = UINT64_MAX;

    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "re");
    if (!file)
        return UINT64_MAX;
    while (fgets(line, sizeof(line), file))
        result = least(result, limit_of_line(root, line, resource));
    fclose(file);
    return result;
}

void wharf_machine_read_files(const char *root, struct wharf_machine *ret_machine)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/proc/sys/vm/max_map_count", root);
    ret_machine->n_mappings = read_number(path);
    ret_machine->memory_nbytes = least(physical_nbytes(root), limit_of_group(root, &memory));
    snprintf(path, sizeof(path), "%s/proc/sys/kernel/pid_max", root);
    ret_machine->n_tasks = least(read_number(path) / 2, limit_of_group(root, &tasks));
}

void wharf_machine_read(struct wharf_machine *ret_machine)
{
    struct rlimit limit;

    wharf_machine_read_files("", ret_machine);
    ret_machine->n_files = UINT64_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        ret_machine->n_files = limit.rlim_cur;
    if (getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        ret_machine->n_tasks = least(ret_machine->n_tasks, limit.rlim_cur);
}

void wharf_machine_raise_open_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}
