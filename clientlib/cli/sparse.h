/* SPDX-License-Identifier: Apache-2.0 */
/* sparse.h: writes files with holes in place of blocks of zeros. */
#ifndef WHARF_CLI_SPARSE_H
#define WHARF_CLI_SPARSE_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/*
 * Writes the beginning of `part`, which is not empty, at `offset` of a file that has no data there
 * yet, or passes over blocks of zeros that are there.  The caller sets the file's size at the end.
 * Returns the number of bytes written or passed over, or -1 with errno set.
 */
ssize_t wharf_cli_sparse_write(int fd, uint64_t offset, const struct iovec *part);

#endif
