/* SPDX-License-Identifier: Apache-2.0 */
/* sparse.h: files whose blocks of zeros take no room on the disk. */
#ifndef WHARF_CLI_SPARSE_H
#define WHARF_CLI_SPARSE_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/*
 * Writes the beginning of `part`, which is not empty, at `offset` of a file that has nothing there
 * yet; what are whole blocks of zeros is only passed over.  Who calls it gives the file its size in
 * the end.  Returns how many bytes that were, or -1 with errno set.
 */
ssize_t wharf_cli_sparse_write(int fd, uint64_t offset, const struct iovec *part);

#endif
