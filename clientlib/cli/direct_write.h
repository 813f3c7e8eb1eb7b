/* SPDX-License-Identifier: Apache-2.0 */
/*
 * direct_write.h: writes a large new file past the page cache (O_DIRECT), where that is faster.
 *
 * Which way is faster depends on the disk and on how much memory is free, so both are tried on the
 * file itself: some megabytes by the page cache, as many past it or fewer where that takes longer
 * already, then the faster way.  What of a write is not aligned as the file system wants it goes
 * through the page cache, in pages of its own.  Errors are those of pwrite, told before the end of
 * the file.
 */
#ifndef WHARF_CLI_DIRECT_WRITE_H
#define WHARF_CLI_DIRECT_WRITE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct wharf_cli_direct;

enum {
    /* A smaller file is soon read again, from the page cache. */
    WHARF_CLI_DIRECT_LEAST_FILE_NBYTES = 32 << 20,
    /* Written by each way before the choice, at most. */
    WHARF_CLI_DIRECT_TRIAL_NBYTES = 32 << 20,
};

/*
 * For a regular file that is open for writing, which stays open.  0 with *ret_direct; -EOPNOTSUPP:
 * its file system does not say how (STATX_DIOALIGN), or cannot; or -errno.
 */
int wharf_cli_direct_new(int fd, struct wharf_cli_direct **ret_direct);

/* Takes NULL. */
void wharf_cli_direct_free(struct wharf_cli_direct *direct);

/* As pwrite does: how much of it was written, or -1 with errno. */
ssize_t wharf_cli_direct_write(struct wharf_cli_direct *direct, uint64_t offset, const void *buf,
                               size_t nbytes);

#endif
