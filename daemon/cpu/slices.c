/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slices.c: asks Linux for shorter time slices, by sched_setattr.
 */
#include "daemon/cpu/slices.h"

#include <errno.h>
#include <sched.h>
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
