/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h: the machine's limits for this process.
 */
#ifndef WHARF_DAEMON_BASE_MACHINE_H
#define WHARF_DAEMON_BASE_MACHINE_H

#include <stdint.h>

struct wharf_machine {
    uint64_t n_files;       /* open files: RLIMIT_NOFILE */
    uint64_t n_mappings;    /* mappings of this process: vm.max_map_count */
    uint64_t memory_nbytes; /* physical memory, or the control group's limit if lower */
    uint64_t n_tasks;       /* threads: the control group's limit, RLIMIT_NPROC, half of pid_max */
};

/* Unknown limits are UINT64_MAX. */
void wharf_machine_read(struct wharf_machine *ret_machine);

/* The limits that are read from files, below a folder that stands for /. */
void wharf_machine_read_files(const char *root, struct wharf_machine *ret_machine);

/* Raises the limit on open files as far as this process may. */
void wharf_machine_raise_open_files(void);

#endif
