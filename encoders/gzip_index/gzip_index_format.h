/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip_index_format.h: constants of the three formats of index files, described in GZIP_INDEX.md.
 * Internal to this folder.
 */
#ifndef WHARF_ENCODERS_GZIP_INDEX_GZIP_INDEX_FORMAT_H
#define WHARF_ENCODERS_GZIP_INDEX_GZIP_INDEX_FORMAT_H

#include "encoders/gzip_index/gzip_index.h"

enum {
    WHARF_WHI_MAGIC_NBYTES = 8,
    WHARF_WHI_VERSION = 1,
    WHARF_WHI_HEADER_NBYTES = 72,
    WHARF_WHI_POINT_NBYTES = 32,
    WHARF_WHI_TRAILER_NBYTES = 4,
    WHARF_WHI_IS_MEMBER = 1, /* a point's flag */

    WHARF_GZIDX_MAGIC_NBYTES = 5,
    WHARF_GZIDX_HEADER_NBYTES = 35,
    WHARF_GZIDX_MAX_VERSION = 1,

    WHARF_GZI_HEADER_NBYTES = 8,
    WHARF_GZI_POINT_NBYTES = 16,
};

#define WHARF_WHI_MAGIC "WHI\r\n\x1a\n"
#define WHARF_GZIDX_MAGIC "GZIDX"

/* Each reads an index, whose magic number has been checked, with the results of
 * wharf_gzip_index_read. */
int wharf_whi_read(const uint8_t *bytes, size_t nbytes, struct wharf_gzip_index *index);
int wharf_gzidx_read(const uint8_t *bytes, size_t nbytes, struct wharf_gzip_index *index);
int wharf_gzi_read(const uint8_t *bytes, size_t nbytes, struct wharf_gzip_index *index);

static inline void wharf_store_le64(uint8_t *p, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        p[i] = (uint8_t)(value >> 8 * i);
}

#endif
