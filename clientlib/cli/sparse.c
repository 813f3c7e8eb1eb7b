/* SPDX-License-Identifier: Apache-2.0 */
/* sparse.c: writes holes in place of blocks of zeros. */
#include "clientlib/cli/sparse.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

/* What most file systems allocate at a time. */
enum { BLOCK_NBYTES = 4096 };

static bool is_zero(const uint8_t *bytes, size_t nbytes)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, nbytes - 1) == 0;
}

/* The bytes from `offset` to the end of the file's block there, or to the end of the part. */
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

    /* Add the blocks behind it that are of the same kind. */
    while (nbytes < part->iov_len) {
        size_t next = block_nbytes(offset + nbytes, part->iov_len - nbytes);

        if (is_zero(bytes + nbytes, next) != is_hole)
            break;
        nbytes += next;
    }
    return is_hole ? (ssize_t)nbytes : pwrite(fd, bytes, nbytes, (off_t)offset);
}
