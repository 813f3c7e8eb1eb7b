/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_load.c: reads an index file, and checks that it belongs to its file.
 */
#include "clientlib/index_load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "encoders/xxh64.h"

/* ---- identity ----------------------------------------------------------------------------- */

/* Reads all of it.  0, -ENODATA if the file ends before, or -errno. */
static int read_all(int fd, uint8_t *buf, size_t nbytes, uint64_t offset)
{
    while (nbytes) {
        ssize_t n = pread(fd, buf, nbytes, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -ENODATA;
        buf += n;
        nbytes -= (size_t)n;
        offset += (uint64_t)n;
    }
    return 0;
}

static int hash_ends(const struct wharf_indexed_file *file, uint8_t *buf, uint64_t *ret_hash)
{
    size_t n_first = file->nbytes < 2 * (uint64_t)WHARF_GZIP_INDEX_END_NBYTES
                         ? (size_t)file->nbytes
                         : (size_t)WHARF_GZIP_INDEX_END_NBYTES;
    size_t n_last = file->nbytes > n_first ? (size_t)WHARF_GZIP_INDEX_END_NBYTES : 0;
    struct wharf_xxh64 hash;
    int r = read_all(file->fd, buf, n_first, 0);

    if (r == 0)
        r = read_all(file->fd, buf + n_first, n_last, file->nbytes - n_last);
    if (r < 0)
        return r;
    wharf_xxh64_init(&hash, buf);
    wharf_xxh64_update(&hash, buf + n_first + n_last);
    *ret_hash = wharf_xxh64_finish(&hash, buf + n_first + n_last);
    return 0;
}

int wharf_index_identify(const struct wharf_indexed_file *file,
                         struct wharf_gzip_identity *ret_identity)
{
    uint8_t *buf = malloc(2 * WHARF_GZIP_INDEX_END_NBYTES);
    int r = buf ? hash_ends(file, buf, &ret_identity->ends_hash) : -ENOMEM;

    free(buf);
    ret_identity->mtime_s = file->mtime.tv_sec;
    ret_identity->mtime_ns = (uint32_t)file->mtime.tv_nsec;
    return r;
}

/* 0, -ESTALE or -errno. */
static int compare(const struct wharf_indexed_file *file, const struct wharf_gzip_index *index)
{
    struct wharf_gzip_identity identity;
    int r;

    if (index->in_nbytes != WHARF_GZIP_INDEX_UNKNOWN && index->in_nbytes != file->nbytes)
        return -ESTALE;
    if (!index->is_own)
        return 0;
    r = wharf_index_identify(file, &identity);
    if (r < 0)
        return r == -ENODATA ? -ESTALE : r;
    return identity.mtime_s == index->identity.mtime_s &&
                   identity.mtime_ns == index->identity.mtime_ns &&
                   identity.ends_hash == index->identity.ends_hash
               ? 0
               : -ESTALE;
}

/* ---- reading ------------------------------------------------------------------------------ */

static int read_file(int fd, struct stat *status, uint8_t **ret_bytes, size_t *ret_nbytes)
{
    uint8_t *bytes;
    int r;

    if (fstat(fd, status) < 0)
        return -errno;
    if (!S_ISREG(status->st_mode))
        return -EINVAL;
    bytes = malloc((size_t)status->st_size + 1);
    if (!bytes)
        return -ENOMEM;
    r = read_all(fd, bytes, (size_t)status->st_size, 0);
    if (r < 0) {
        free(bytes);
        return r;
    }
    *ret_bytes = bytes;
    *ret_nbytes = (size_t)status->st_size;
    return 0;
}

int wharf_index_load(const struct wharf_indexed_file *file, const char *path,
                     struct stat *ret_status, struct wharf_gzip_index *ret_index)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    uint8_t *bytes = NULL;
    size_t nbytes = 0;
    int r;

    if (fd < 0)
        return -errno;
    r = read_file(fd, ret_status, &bytes, &nbytes);
    close(fd);
    if (r < 0)
        return r;
    r = wharf_gzip_index_read(bytes, nbytes, ret_index);
    free(bytes);
    if (r < 0)
        return r;
    r = compare(file, ret_index);
    if (r < 0)
        wharf_gzip_index_deinit(ret_index);
    return r;
}
