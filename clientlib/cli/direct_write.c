/* SPDX-License-Identifier: Apache-2.0 */
/* direct_write.c: writes a large file past the page cache; see direct_write.h. */
#include "clientlib/cli/direct_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clientlib/now.h"

enum {
    /* No file system shares a page between both ways then. */
    PAGE_NBYTES = 4096,
    /* Written at a time, of what is not aligned in memory. */
    BUFFER_NBYTES = 1 << 20,
};

enum way { BUFFERED, DIRECT, N_WAYS };

struct wharf_cli_direct {
    int fd;
    int direct_fd; /* of the same file: O_DIRECT belongs to a descriptor's own opening */
    size_t align;  /* of offsets and sizes, */
    size_t memory_align;
    uint8_t *buffer;
    struct {
        uint64_t nbytes, ns;
    } done[N_WAYS];
    bool is_refused; /* the system did not take a direct write */
};

static bool is_power_of_2(size_t n)
{
    return n && (n & (n - 1)) == 0;
}

static int find_alignment(struct wharf_cli_direct *direct)
{
    struct statx status;

    if (statx(direct->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &status) < 0)
        return -errno;
    if (!(status.stx_mask & STATX_DIOALIGN) || !is_power_of_2(status.stx_dio_offset_align) ||
        !is_power_of_2(status.stx_dio_mem_align))
        return -EOPNOTSUPP;
    direct->align = status.stx_dio_offset_align;
    if (direct->align < PAGE_NBYTES)
        direct->align = PAGE_NBYTES;
    direct->memory_align = status.stx_dio_mem_align;
    return direct->align > BUFFER_NBYTES || direct->memory_align > BUFFER_NBYTES ? -EOPNOTSUPP : 0;
}

/* Also of a file without a name. */
static int open_again(int fd)
{
    char path[32];
    struct stat status, again_status;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int again = open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);
    if (again < 0)
        return -errno;
    if (fstat(fd, &status) == 0 && fstat(again, &again_status) == 0 &&
        status.st_dev == again_status.st_dev && status.st_ino == again_status.st_ino)
        return again;
    close(again);
    return -EOPNOTSUPP;
}

int wharf_cli_direct_new(int fd, struct wharf_cli_direct **ret_direct)
{
    struct wharf_cli_direct *direct = calloc(1, sizeof(*direct));

    if (!direct)
        return -ENOMEM;
    direct->fd = fd;
    direct->direct_fd = -1;
    int r = find_alignment(direct);
    if (r == 0) {
        direct->buffer = aligned_alloc(BUFFER_NBYTES, BUFFER_NBYTES);
        r = direct->buffer ? open_again(fd) : -ENOMEM;
    }
    if (r < 0) {
        wharf_cli_direct_free(direct);
        return r;
    }
    direct->direct_fd = r;
    *ret_direct = direct;
    return 0;
}

void wharf_cli_direct_free(struct wharf_cli_direct *direct)
{
    if (!direct)
        return;
    if (direct->direct_fd >= 0)
        close(direct->direct_fd);
    free(direct->buffer);
    free(direct);
}

/* ---- writing ------------------------------------------------------------------------------- */

static enum way choose(const struct wharf_cli_direct *direct)
{
    if (direct->is_refused || direct->done[BUFFERED].nbytes < WHARF_CLI_DIRECT_TRIAL_NBYTES)
        return BUFFERED;
    /* Nanoseconds a byte, of doubles since products of such numbers go over 64 bits. */
    double buffered = (double)direct->done[BUFFERED].ns / (double)direct->done[BUFFERED].nbytes;
    double nbytes = (double)direct->done[DIRECT].nbytes;
    /* A trial that took as long as the page cache takes for all of its bytes has lost: where a
     * write is small, and the disk answers late, the rest would take minutes. */
    if (nbytes < WHARF_CLI_DIRECT_TRIAL_NBYTES)
        nbytes = WHARF_CLI_DIRECT_TRIAL_NBYTES;
    return (double)direct->done[DIRECT].ns < buffered * nbytes ? DIRECT : BUFFERED;
}

/* Whole units at an aligned offset. */
static ssize_t write_aligned(struct wharf_cli_direct *direct, uint64_t offset, const uint8_t *from,
                             size_t nbytes)
{
    size_t whole = nbytes - nbytes % direct->align;

    if ((uintptr_t)from % direct->memory_align == 0)
        return pwrite(direct->direct_fd, from, whole, (off_t)offset);
    whole = whole < BUFFER_NBYTES ? whole : BUFFER_NBYTES;
    memcpy(direct->buffer, from, whole);
    return pwrite(direct->direct_fd, direct->buffer, whole, (off_t)offset);
}

/* What of it goes through the page cache, at its beginning; 0: nothing does. */
static size_t head_nbytes(const struct wharf_cli_direct *direct, uint64_t offset, size_t nbytes)
{
    size_t past = (size_t)(offset % direct->align);
    size_t head = past ? direct->align - past : 0;

    return nbytes < head + direct->align ? nbytes : head;
}

static ssize_t write_direct(struct wharf_cli_direct *direct, uint64_t offset, const void *buf,
                            size_t nbytes)
{
    size_t head = head_nbytes(direct, offset, nbytes);

    if (head)
        return pwrite(direct->fd, buf, head < nbytes ? head : nbytes, (off_t)offset);
    ssize_t n = write_aligned(direct, offset, buf, nbytes);
    /* So is what a size limit cuts off within a unit: the other way tells the true error. */
    if (n < 0 && (errno == EINVAL || errno == EOPNOTSUPP)) {
        direct->is_refused = true;
        n = pwrite(direct->fd, buf, nbytes, (off_t)offset);
    }
    return n;
}

ssize_t wharf_cli_direct_write(struct wharf_cli_direct *direct, uint64_t offset, const void *buf,
                               size_t nbytes)
{
    enum way way = choose(direct);
    uint64_t begin_ns = wharf_client_now_ns();
    ssize_t n = way == DIRECT ? write_direct(direct, offset, buf, nbytes)
                              : pwrite(direct->fd, buf, nbytes, (off_t)offset);

    if (n > 0) {
        direct->done[way].nbytes += (uint64_t)n;
        direct->done[way].ns += wharf_client_now_ns() - begin_ns;
    }
    return n;
}
