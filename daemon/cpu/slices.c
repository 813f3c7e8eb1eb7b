/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slices.c: asks Linux for shorter time slices, or for what others leave, by sched_setattr.
 */
#include "daemon/cpu/slices.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Linux's struct sched_attr: its header cannot be included together with <sched.h>. */
struct scheduling {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns; /* of ordinary threads: the slice */
    uint64_t deadline_ns;
    uint64_t period_ns;
};

static int get(struct scheduling *attr)
{
    return syscall(SYS_sched_getattr, 0, attr, sizeof(*attr), 0) < 0 ? -errno : 0;
}

int wharf_slices_shorten(uint64_t slice_ns)
{
    struct scheduling attr = {.size = sizeof(attr)};
    int r = get(&attr);

    if (r < 0)
        return r;
    if (attr.policy != SCHED_OTHER && attr.policy != SCHED_BATCH)
        return -EINVAL;
    attr.runtime_ns = slice_ns;
    if (syscall(SYS_sched_setattr, 0, &attr, 0) < 0)
        return -errno;
    /* Older kernels take it and do nothing with it. */
    r = get(&attr);
    return r < 0 || attr.runtime_ns == slice_ns ? r : -EOPNOTSUPP;
}

/* ---- what others leave --------------------------------------------------------------------- */

static bool can_return;

/* Whoever started the daemon may have chosen another policy, which stays. */
static int change_policy(uint32_t from, uint32_t to, uint64_t slice_ns)
{
    struct scheduling attr = {.size = sizeof(attr)};
    int r = get(&attr);

    if (r < 0)
        return r;
    if (attr.policy != from)
        return -EINVAL;
    attr.policy = to;
    attr.runtime_ns = slice_ns;
    return syscall(SYS_sched_setattr, 0, &attr, 0) < 0 ? -errno : 0;
}

static void *try_to_return(void *unused)
{
    (void)unused;
    can_return = change_policy(SCHED_OTHER, SCHED_IDLE, 0) == 0 && wharf_slices_raise(0) == 0;
    return NULL;
}

/* By a thread that nobody needs, if it stays there. */
static void find_out(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, try_to_return, NULL) == 0)
        pthread_join(thread, NULL);
}

int wharf_slices_lower(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, find_out);
    return can_return ? change_policy(SCHED_OTHER, SCHED_IDLE, 0) : -EPERM;
}

int wharf_slices_raise(uint64_t slice_ns)
{
    return change_policy(SCHED_IDLE, SCHED_OTHER, slice_ns);
}
