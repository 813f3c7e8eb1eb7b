/* SPDX-License-Identifier: Apache-2.0 */
/*
 * file_check.c: which files are served.
 *
 * What the kernel makes up when it is read may look at who reads: the daemon's process, with the
 * daemon's rights, in the place of the client who has opened it.  Such file systems have no blocks.
 * A few that hold data have none either, and are named here; efivarfs counts some.
 *
 * What is written to a file system in memory stays there for as long as its owner likes, and the
 * kernel charges it to who wrote it: to the daemon's control group, where no quota sees it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "daemon/disposable/file_check.h"

/* Newer than the headers of Debian 12, or in none. */
#ifndef CIFS_SUPER_MAGIC
#define CIFS_SUPER_MAGIC 0xFF534D42
#endif
#ifndef SMB2_SUPER_MAGIC
#define SMB2_SUPER_MAGIC 0xFE534D42
#endif
#ifndef CEPH_SUPER_MAGIC
#define CEPH_SUPER_MAGIC 0x00c36400
#endif
#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

static bool has_data_without_blocks(unsigned long type)
{
    static const unsigned long types[] = {
        TMPFS_MAGIC,           RAMFS_MAGIC,      FUSE_SUPER_MAGIC, NFS_SUPER_MAGIC,
        SMB_SUPER_MAGIC,       CIFS_SUPER_MAGIC, SMB2_SUPER_MAGIC, V9FS_MAGIC,
        OVERLAYFS_SUPER_MAGIC, CEPH_SUPER_MAGIC, AFS_SUPER_MAGIC,
    };

    for (unsigned i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (types[i] == type)
            return true;
    return false;
}

/* Overlayfs tells the extents of the file below it that is written, which may be in the memory of a
 * user namespace.  No file system in memory tells extents, and nearly every one on a disk does. */
static bool has_extents(int fd)
{
    struct fiemap extents = {.fm_length = 1};

    return ioctl(fd, FS_IOC_FIEMAP, &extents) == 0;
}

static bool is_in_memory(int fd, unsigned long type)
{
    return type == TMPFS_MAGIC || type == RAMFS_MAGIC || type == HUGETLBFS_MAGIC ||
           (type == OVERLAYFS_SUPER_MAGIC && !has_extents(fd));
}

/* For a block device it is the file system of its node. */
static int check_file_system(int fd, bool is_written)
{
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0)
        return -errno;
    unsigned long type = (unsigned long)fs.f_type & UINT32_MAX;
    if (is_written && is_in_memory(fd, type))
        return -EROFS;
    if (type == EFIVARFS_MAGIC || (fs.f_blocks == 0 && !has_data_without_blocks(type)))
        return -EOPNOTSUPP;
    return 0;
}

int wharf_file_check(int fd, bool wants_write, bool *ret_write_only)
{
    int flags = fcntl(fd, F_GETFL);
    struct stat st;

    if (flags < 0 || flags & O_PATH)
        return -EBADF;
    int access = flags & O_ACCMODE;
    if (access != O_RDWR && access != (wants_write ? O_WRONLY : O_RDONLY))
        return -EACCES;
    if (wants_write && flags & O_APPEND)
        return -EINVAL;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
        return -EBADF;
    *ret_write_only = access == O_WRONLY;
    return check_file_system(fd, wants_write && S_ISREG(st.st_mode));
}
