/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_load.h: the index of a gzip or zlib file, read from a file of its own and held against the
 * file that it is said to be of.  For the command and the Python package.
 */
#ifndef WHARF_CLIENTLIB_INDEX_LOAD_H
#define WHARF_CLIENTLIB_INDEX_LOAD_H

#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "encoders/gzip_index/gzip_index.h"

/* The suffix of an index in wharf's own format. */
#define WHARF_INDEX_SUFFIX ".whi"

/* A file that can be read at any offset, with its fstat. */
struct wharf_indexed_file {
    int fd;
    uint64_t nbytes;
    struct timespec mtime;
};

/* Identifies the file.  0; -ENODATA if it is too short; or -errno. */
int wharf_index_identify(const struct wharf_indexed_file *file,
                         struct wharf_gzip_identity *ret_identity);

/*
 * Reads the index at `path`.  Returns 0 with *ret_index, which the caller deinits, and *ret_status,
 * the identity of the index file; -ENOENT: no such file; -EBADMSG: the index is damaged;
 * -EPROTONOSUPPORT: it is no index, or of a newer version; -ESTALE: it belongs to another file or
 * another version of it; or -errno.
 */
int wharf_index_load(const struct wharf_indexed_file *file, const char *path,
                     struct stat *ret_status, struct wharf_gzip_index *ret_index);

#endif
