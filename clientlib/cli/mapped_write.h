/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapped_write.h: writes to a new file on tmpfs by several threads.
 *
 * Writers of one file wait for each other in the system, whatever part they write; who copies into
 * a mapping of it does not.  So each write is cut up, and a few threads copy the pieces.  A disk
 * that is full shows as SIGBUS there, which is caught: the caller then writes these bytes by
 * pwrite, and is told the true error.
 */
#ifndef WHARF_CLI_MAPPED_WRITE_H
#define WHARF_CLI_MAPPED_WRITE_H

#include <stddef.h>
#include <stdint.h>

struct wharf_cli_mapped;

enum {
    /* One thread copies into a mapping at half the speed of write(2): the pages' zeros and faults
     * are its own.  From four on it pays. */
    WHARF_CLI_MAPPED_LEAST_THREADS = 4,
    /* Less is written before others have woken up. */
    WHARF_CLI_MAPPED_LEAST_NBYTES = 256 << 10,
};

/*
 * Begins to write to `fd`, a file of this process alone, open for reading and writing.  0 with
 * *ret_mapped; -EOPNOTSUPP: its file system gains nothing by it; or -errno.
 */
int wharf_cli_mapped_new(int fd, unsigned n_threads, struct wharf_cli_mapped **ret_mapped);

/*
 * Writes at `offset`, which is where the last write ended.  0, or -errno: these bytes are not there
 * or not all, and the file is not to be written to by this any more.  In both cases the file can be
 * longer than what was written: the caller cuts it off.
 */
int wharf_cli_mapped_write(struct wharf_cli_mapped *mapped, uint64_t offset, const void *buf,
                           size_t nbytes);

/* Takes NULL.  The file stays open. */
void wharf_cli_mapped_free(struct wharf_cli_mapped *mapped);

#endif
