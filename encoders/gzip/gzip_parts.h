/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gzip_parts.h: makes one gzip member of any length in parts, which threads can make in parallel.
 *
 *     file = header, part, part, ..., last part, trailer
 *
 * A part is a sequence of Deflate blocks that ends at a byte boundary (zlib's Z_SYNC_FLUSH).  It
 * may refer to the 32 KiB before it, so that cutting costs 5 bytes a part and hardly any ratio.
 * The trailer's checksum is combined from those of the parts (crc32_join.h).
 */
#ifndef WHARF_ENCODERS_GZIP_GZIP_PARTS_H
#define WHARF_ENCODERS_GZIP_GZIP_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/deflate/deflate_format.h"
#include "encoders/gzip/gzip_format.h"

/* Makes one part at a time, of any file. */
struct wharf_gzip_parts;

/* The level is zlib's, 0 to 9.  0 or -ENOMEM. */
int wharf_gzip_parts_new(int level, struct wharf_gzip_parts **ret_parts);

/* Takes NULL. */
void wharf_gzip_parts_free(struct wharf_gzip_parts *parts);

/* The most bytes that a part of in_nbytes of input can take. */
size_t wharf_gzip_parts_bound(const struct wharf_gzip_parts *parts, size_t in_nbytes);

/*
 * Makes a part from in_nbytes of input, less than 4 GiB; the last part may be empty.
 *   window_nbytes   how many bytes of the file are in memory right before `in`; the last
 *                   WHARF_DEFLATE_WINDOW_NBYTES of them are used
 *   out_avail       at least the bound
 * Returns 0, or -ENOSPC if out_avail was below the bound.
 */
int wharf_gzip_parts_encode(struct wharf_gzip_parts *parts, const uint8_t *in, size_t in_nbytes,
                            size_t window_nbytes, bool is_last, uint8_t *out, size_t out_avail,
                            size_t *ret_out_nbytes);

/* Without name and time, so that equal inputs give equal files. */
void wharf_gzip_write_header(int level, uint8_t out[WHARF_GZIP_FIXED_HEADER_NBYTES]);

/* From the output's CRC-32 and size; the trailer holds the size modulo 2^32. */
void wharf_gzip_write_trailer(uint32_t crc, uint64_t nbytes,
                              uint8_t out[WHARF_GZIP_TRAILER_NBYTES]);

#endif
