/* SPDX-License-Identifier: Apache-2.0 */
/* fork_guard.c: a page that a forked child finds empty (fork_guard.h). */
#include "clientlib/fork_guard.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* The kernel rounds it up to a page. */
enum { MARK_NBYTES = 4096 };

int wharf_client_fork_guard_init(struct wharf_client_fork_guard *guard)
{
    uint32_t *mark =
        mmap(NULL, MARK_NBYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (mark == MAP_FAILED)
        return -ENOMEM;
    guard->pid = getpid();
    guard->mark = mark;
    *mark = 1;
    /* Sandboxes that imitate Linux may not know it: then every call asks for its process. */
    if (madvise(mark, MARK_NBYTES, MADV_WIPEONFORK) < 0)
        wharf_client_fork_guard_deinit(guard);
    return 0;
}

void wharf_client_fork_guard_deinit(struct wharf_client_fork_guard *guard)
{
    if (guard->mark)
        munmap(guard->mark, MARK_NBYTES);
    guard->mark = NULL;
}

int wharf_client_is_forked(const struct wharf_client_fork_guard *guard)
{
    return guard->mark ? *guard->mark == 0 : guard->pid != getpid();
}
