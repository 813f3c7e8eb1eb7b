/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment.c: shared memory by memfds.
 *
 * The daemon's own segments are sealed against shrinking and growing before anybody else has them;
 * D also against writable mappings, after the daemon has made its own.  Clients' descriptors are
 * checked by calls that no file server can delay.
 */
#include "daemon/core/segment.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/touch.h"

/* Newer than the headers of Debian 12. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

#define PAGE_NBYTES 4096u

/* How much is unmapped at once, since page faults of other threads wait meanwhile. */
#define UNMAP_NBYTES ((size_t)32 << 20)

/* Not executable; kernels before 6.3 do not support that flag. */
static int memfd_new(const char *name)
{
    const unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
    int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);

    if (fd < 0 && errno == EINVAL)
        fd = memfd_create(name, flags);
    return fd < 0 ? -errno : fd;
}

static int map(int fd, size_t nbytes, int protection, int sharing, void **ret_address)
{
    void *address = mmap(NULL, nbytes, protection, sharing | MAP_NORESERVE, fd, 0);

    if (address == MAP_FAILED)
        return -errno;
    /* Keeps clients' data out of core files. */
    madvise(address, nbytes, MADV_DONTDUMP);
    madvise(address, nbytes, MADV_DONTFORK);
    *ret_address = address;
    return 0;
}

/* Allocates its pages, because accesses to the rings and the GPU's queue must not fail. */
static int populate(int fd, size_t nbytes)
{
    int r;

    do {
        r = fallocate(fd, 0, 0, (off_t)nbytes);
    } while (r < 0 && errno == EINTR);
    if (r == 0)
        return 0;
    return errno == EFBIG ? -EFBIG : -ENOMEM;
}

/* The kernel counts opens by path, but not the descriptor of memfd_create. */
static int reopen(int fd, int flags)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int opened = open(path, flags | O_CLOEXEC);
    return opened < 0 ? -errno : opened;
}

/* Without /proc the segment works too, except for wharf_segment_is_held. */
static void count_openings(int *fd)
{
    int opened = reopen(*fd, O_RDWR);

    if (opened < 0)
        return;
    close(*fd);
    *fd = opened;
}

int wharf_segment_make(enum wharf_segment_kind kind, size_t nbytes,
                       struct wharf_segment *ret_segment)
{
    static const char *const names[] = {"wharf-c", "wharf-d", "wharf-arena", "wharf-gpu",
                                        "wharf-files"};
    int protection = kind == WHARF_SEGMENT_C ? PROT_READ : PROT_READ | PROT_WRITE;
    int seals = F_SEAL_SHRINK | F_SEAL_GROW;
    WHARF_CLEANUP_FD int fd = memfd_new(names[kind]);
    void *address;

    if (fd < 0)
        return fd;
    if (kind == WHARF_SEGMENT_C || kind == WHARF_SEGMENT_D)
        count_openings(&fd);
    if (ftruncate(fd, (off_t)nbytes) < 0)
        return -errno;
    int r = kind == WHARF_SEGMENT_ARENA ? 0 : populate(fd, nbytes);
    if (r == 0)
        r = map(fd, nbytes, protection, MAP_SHARED, &address);
    if (r < 0)
        return r;
    /* After the daemon's own mapping, forbids all further writable mappings. */
    if (kind == WHARF_SEGMENT_D)
        seals |= F_SEAL_FUTURE_WRITE;
    /* The client seals C itself, after its own mapping. */
    if (kind != WHARF_SEGMENT_C)
        seals |= F_SEAL_SEAL;
    if (fcntl(fd, F_ADD_SEALS, seals) < 0) {
        r = -errno;
        munmap(address, nbytes);
        return r;
    }
    *ret_segment = (struct wharf_segment){
        .address = address,
        .nbytes = nbytes,
        .fd = wharf_steal_fd(&fd),
    };
    return 0;
}

int wharf_segment_open(const struct wharf_segment *segment, enum wharf_segment_kind kind)
{
    int fd = reopen(segment->fd, kind == WHARF_SEGMENT_D ? O_RDONLY : O_RDWR);

    /* Without /proc both share one open file, and the client's release cannot be noticed. */
    if (fd == -ENOENT || fd == -EACCES) {
        fd = fcntl(segment->fd, F_DUPFD_CLOEXEC, 0);
        fd = fd < 0 ? -errno : fd;
    }
    return fd;
}

/* A write lease is granted only if there is no other open file. */
bool wharf_segment_is_held(int fd)
{
    if (fcntl(fd, F_SETLEASE, F_WRLCK) < 0)
        return errno == EAGAIN;
    fcntl(fd, F_SETLEASE, F_UNLCK);
    return false;
}

bool wharf_segment_is_whole(const struct wharf_segment *segment)
{
    int seals = fcntl(segment->fd, F_GET_SEALS);

    return seals >= 0 && seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE);
}

int wharf_segment_check(int fd, unsigned *ret_seals, uint64_t *ret_nbytes)
{
    int seals = fcntl(fd, F_GET_SEALS);
    struct statfs fs;
    struct stat st;

    if (seals < 0)
        return -EBADF;
    /* Only memory file systems support seals; these calls ask no file server. */
    if (fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC || fstat(fd, &st) < 0 ||
        !S_ISREG(st.st_mode))
        return -EBADF;
    if (~seals & (F_SEAL_SHRINK | F_SEAL_GROW))
        return -EPERM;
    *ret_seals = (unsigned)seals;
    *ret_nbytes = (uint64_t)st.st_size;
    return 0;
}

/* The major number of nvidiactl and nvidia0 to nvidia254, which is permanently assigned to the
 * driver. */
#define NVIDIA_MAJOR 195

int wharf_segment_check_gpu(int fd)
{
    int flags = fcntl(fd, F_GETFL);
    struct stat st;

    /* With O_PATH, a file server can claim anything. */
    if (flags < 0 || flags & O_PATH || fstat(fd, &st) < 0 || !S_ISCHR(st.st_mode) ||
        major(st.st_rdev) != NVIDIA_MAJOR)
        return -EBADF;
    return 0;
}

int wharf_segment_adopt(int fd, uint64_t nbytes, bool read_only, struct wharf_segment *ret_segment)
{
    unsigned seals;
    uint64_t fd_nbytes;
    void *address;
    int r = wharf_segment_check(fd, &seals, &fd_nbytes);

    if (r < 0)
        return r;
    if (nbytes == 0 || nbytes > fd_nbytes)
        return -EINVAL;
    if ((seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) && !read_only)
        return -EPERM;
    /* Kernels before 6.7 refuse to share what is sealed against writing, even for reading.  Its
     * contents cannot change, so a private mapping is as good. */
    r = map(fd, nbytes, read_only ? PROT_READ : PROT_READ | PROT_WRITE,
            seals & F_SEAL_WRITE ? MAP_PRIVATE : MAP_SHARED, &address);
    if (r < 0)
        return r;
    *ret_segment = (struct wharf_segment){.address = address, .nbytes = nbytes, .fd = -1};
    return 0;
}

/* Has every page there: one that was never written is allocated when it is read. */
static void read_pages(void *context)
{
    const struct wharf_segment *segment = context;
    const volatile uint8_t *at = segment->address;

    for (size_t i = 0; i < segment->nbytes; i += PAGE_NBYTES)
        (void)at[i];
}

bool wharf_segment_keep(int fd, struct wharf_segment *segment)
{
    int seals = fcntl(fd, F_GET_SEALS);

    if (seals < 0 || !(seals & F_SEAL_FUTURE_WRITE))
        return false;
    /* As of rings: it does without where little can be locked. */
    mlock(segment->address, segment->nbytes);
    return wharf_touch(read_pages, segment);
}

void wharf_segment_free(struct wharf_segment *segment)
{
    if (!segment || !segment->address)
        return;
    /* In steps, because page faults of other threads wait during each. */
    for (size_t done = 0; done < segment->nbytes; done += UNMAP_NBYTES) {
        size_t left = segment->nbytes - done;
        munmap((char *)segment->address + done, left < UNMAP_NBYTES ? left : UNMAP_NBYTES);
    }
    /* Frees the pages even if the client keeps the descriptor. */
    if (segment->empty && segment->fd >= 0)
        fallocate(segment->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                  (off_t)segment->nbytes);
    segment->fd = wharf_close_fd(segment->fd);
    segment->address = NULL;
}
