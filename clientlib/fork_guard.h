/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork_guard.h: tells a forked child from its parent, by one load from memory.
 */
#ifndef WHARF_CLIENT_FORK_GUARD_H
#define WHARF_CLIENT_FORK_GUARD_H

#include <stdint.h>
#include <sys/types.h>

struct wharf_client_fork_guard {
    /* A page that the kernel clears in children; NULL if it cannot. */
    uint32_t *mark;
    pid_t pid;
};

/* Returns 0 or -ENOMEM. */
int wharf_client_fork_guard_init(struct wharf_client_fork_guard *guard);

/* In a child too. */
void wharf_client_fork_guard_deinit(struct wharf_client_fork_guard *guard);

/* Whether this process is a child of the one that called init. */
int wharf_client_is_forked(const struct wharf_client_fork_guard *guard);

#endif
