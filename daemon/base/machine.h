/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine.h: what the machine, and whoever started this process, let it have.
 */
#ifndef WHARF_DAEMON_BASE_MACHINE_H
#define WHARF_DAEMON_BASE_MACHINE_H

#include <stdint.h>

struct wharf_machine {
    uint64_t n_files;       /* open at a time: RLIMIT_NOFILE */
    uint64_t n_mappings;    /* of this process: vm.max_map_count */
    uint64_t memory_nbytes; /* physical memory, or what the control group may have of it */
};

/* What cannot be found out is UINT64_MAX. */
void wharf_machine_read(struct wharf_machine *ret_machine);

/* The parts of it that are files, below a folder that stands for /. */
void wharf_machine_read_files(const char *root, struct wharf_machine *ret_machine);

/* As many open files as this process may have. */
void wharf_machine_raise_open_files(void);

#endif
