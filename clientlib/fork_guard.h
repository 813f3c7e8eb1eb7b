/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork_guard.h: tells a forked child from its parent, by one load from memory.
 */
#ifndef WHARF_CLIENT_FORK_GUARD_H
#define WHARF_CLIENT_FORK_GUARD_H

#include <stdint.h>
#include <sys/types.h>

struct wharf_client_fork_guard {
    /* A page of its own that the kernel gives to children as zeros; NULL where it cannot. */
    uint32_t *mark;
    pid_t pid;
};

/* Returns 0 or -ENOMEM. */
int wharf_client_fork_guard_init(struct wharf_client_fork_guard *guard);

/* In a child too. */
void wharf_client_fork_guard_deinit(struct wharf_client_fork_guard *guard);

/* Whether this process is not the one that called init. */
int wharf_client_is_forked(const struct wharf_client_fork_guard *guard);

#endif
