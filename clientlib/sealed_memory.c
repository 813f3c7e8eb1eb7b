/* SPDX-License-Identifier: Apache-2.0 */
/* sealed_memory.c: checks and maps shared memory (sealed_memory.h). */
#include "clientlib/sealed_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "clientlib/error_text.h"

static int check_seals(int seals, int needed, const char *name)
{
    if (!(seals & F_SEAL_SHRINK))
        return wharf_client_fail(-EPERM, "%s is not sealed with F_SEAL_SHRINK (fcntl F_ADD_SEALS)",
                                 name);
    if (needed & ~seals & F_SEAL_GROW)
        return wharf_client_fail(-EPERM, "%s is not sealed with F_SEAL_GROW (fcntl F_ADD_SEALS)",
                                 name);
    return 0;
}

int wharf_client_memfd_check(int fd, uint64_t nbytes, int more_seals, const char *name,
                             int *ret_seals)
{
    struct statfs system;
    struct stat file;
    /* First, since it asks nothing of whoever serves the file. */
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals < 0)
        return wharf_client_fail(-EBADF, "%s is %s", name,
                                 errno == EBADF ? "no open descriptor"
                                                : "not a memfd: make it with memfd_create");
    int r = check_seals(seals, more_seals, name);
    if (r < 0)
        return r;
    if (fstatfs(fd, &system) < 0 || system.f_type != TMPFS_MAGIC)
        return wharf_client_fail(
            -EBADF, "%s is not a memfd of plain pages: make it without MFD_HUGETLB", name);
    if (fstat(fd, &file) < 0 || file.st_size < 0 || (uint64_t)file.st_size < nbytes)
        return wharf_client_fail(-EINVAL, "%s is shorter than its %llu bytes", name,
                                 (unsigned long long)nbytes);
    *ret_seals = seals;
    return 0;
}

int wharf_client_map(int fd, uint64_t nbytes, int protection, void **ret_address)
{
    if (nbytes == 0 || nbytes > PTRDIFF_MAX)
        return -EINVAL;
    void *address = mmap(NULL, nbytes, protection, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED)
        return -errno;
    /* A child that used the rings would break its parent's indices. */
    madvise(address, nbytes, MADV_DONTFORK);
    *ret_address = address;
    return 0;
}
