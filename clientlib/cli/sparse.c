/* SPDX-License-Identifier: Apache-2.0 */
#include "clientlib/cli/sparse.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* What file systems allocate at a time, most of them. */
enum { BLOCK_NBYTES = 4096 };

static bool is_zero(const uint8_t *bytes, size_t nbytes)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, nbytes - 1) == 0;
}

/* How long the first block of a part is that begins at `offset`: it ends where the file's does. */
static size_t block_nbytes(uint64_t offset, size_t avail)
{
    size_t nbytes = BLOCK_NBYTES - (size_t)(offset % BLOCK_NBYTES);

    return nbytes < avail ? nbytes : avail;
}

ssize_t wharf_cli_sparse_write(int fd, uint64_t offset, const struct iovec *part)
{
    const uint8_t *bytes = part->iov_base;
    size_t nbytes = block_nbytes(offset, part->iov_len);
    bool is_hole = is_zero(bytes, nbytes);

    /* As many blocks as are alike. */
    while (nbytes < part->iov_len) {
        size_t next = block_nbytes(offset + nbytes, part->iov_len - nbytes);

        if (is_zero(bytes + nbytes, next) != is_hole)
            break;
        nbytes += next;
    }
    return is_hole ? (ssize_t)nbytes : pwrite(fd, bytes, nbytes, (off_t)offset);
}
