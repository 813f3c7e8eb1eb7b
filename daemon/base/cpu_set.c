/* SPDX-License-Identifier: Apache-2.0 */
/* cpu_set.c: parses lists of processors, and chooses those that decoding uses. */
#include "daemon/base/cpu_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/config.h"

/* Reads a number at *at and moves *at past it. */
static int parse_cpu(const char **at, unsigned long *ret_cpu)
{
    char *end;

    if (**at < '0' || **at > '9')
        return -EINVAL;
    errno = 0;
    unsigned long cpu = strtoul(*at, &end, 10);
    if (errno || cpu >= CPU_SETSIZE)
        return -EINVAL;
    *at = end;
    *ret_cpu = cpu;
    return 0;
}

int wharf_cpu_set_parse(const char *text, cpu_set_t *ret_set)
{
    cpu_set_t set;
    unsigned long first, last;

    CPU_ZERO(&set);
    for (;;) {
        text += strspn(text, " \t");
        if (parse_cpu(&text, &first) < 0)
            return -EINVAL;
        last = first;
        if (*text == '-') {
            text++;
            if (parse_cpu(&text, &last) < 0 || last < first)
                return -EINVAL;
        }
        for (unsigned long cpu = first; cpu <= last; cpu++)
            CPU_SET(cpu, &set);
        text += strspn(text, " \t");
        if (*text == 0)
            break;
        if (*text++ != ',')
            return -EINVAL;
    }
    *ret_set = set;
    return 0;
}

int wharf_cpu_set_choose(const struct wharf_config *config, cpu_set_t *ret_set,
                         uint32_t *ret_n_workers)
{
    cpu_set_t allowed, wanted;

    if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
        return -errno;
    if (config->cpus[0]) {
        if (wharf_cpu_set_parse(config->cpus, &wanted) < 0)
            return -EINVAL;
        CPU_AND(&allowed, &allowed, &wanted);
    }
    uint64_t n_cpus = (uint64_t)CPU_COUNT(&allowed);
    if (n_cpus == 0)
        return -EINVAL;
    uint64_t n_workers =
        config->n_workers ? config->n_workers : (n_cpus * config->share_percent + 50) / 100;
    *ret_set = allowed;
    *ret_n_workers = n_workers ? (uint32_t)n_workers : 1;
    return 0;
}
