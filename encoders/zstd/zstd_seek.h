/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_seek.h: the seek table of zstd's seekable format (github.com/facebook/zstd,
 * contrib/seekable_format), which makes parts of a file readable: a skippable frame behind all
 * others, whose content is
 *   entries, one for each frame from the first on: bytes in the file (32 bits), of output (32), and
 *       with bit 7 of the descriptor the low half of XXH64 of its output (32);
 *   the number of entries (32 bits), the descriptor (8: bits 6 to 2 are 0), b1 ea 92 8f.
 * All numbers are little-endian.
 *
 * Nothing vouches for a table: who reads it checks that its entries fill the file, and then what
 * each frame decodes to.
 */
#ifndef WHARF_ENCODERS_ZSTD_ZSTD_SEEK_H
#define WHARF_ENCODERS_ZSTD_ZSTD_SEEK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/zstd/zstd_format.h"

#define WHARF_ZSTD_SEEK_MAGIC 0x8f92eab1u
#define WHARF_ZSTD_SEEK_FRAME_MAGIC 0x184d2a5eu

enum {
    WHARF_ZSTD_SEEK_HEADER_NBYTES = WHARF_ZSTD_SKIPPABLE_HEADER_NBYTES,
    WHARF_ZSTD_SEEK_FOOTER_NBYTES = 9,
    WHARF_ZSTD_SEEK_ENTRY_NBYTES = 8, /* without a checksum */
    WHARF_ZSTD_SEEK_MAX_FRAMES = 0x8000000,
};

struct wharf_zstd_seek_table {
    uint64_t offset; /* of its frame, in the file: there all other frames end */
    uint32_t n_frames;
    uint32_t entry_nbytes;
};

struct wharf_zstd_seek_entry {
    uint32_t in_nbytes;
    uint32_t out_nbytes;
};

/* Reads the last bytes of a file of that size, FOOTER_NBYTES.  False: they are no table's, or of
 * one that the file does not hold. */
bool wharf_zstd_seek_read_footer(const uint8_t *footer, uint64_t file_nbytes,
                                 struct wharf_zstd_seek_table *ret_table);

/* Whether the HEADER_NBYTES at table->offset are those of its frame. */
bool wharf_zstd_seek_is_header(const uint8_t *header, const struct wharf_zstd_seek_table *table);

/* Where an entry stands in the file. */
static inline uint64_t wharf_zstd_seek_entry_offset(const struct wharf_zstd_seek_table *table,
                                                    uint32_t i)
{
    return table->offset + WHARF_ZSTD_SEEK_HEADER_NBYTES + (uint64_t)i * table->entry_nbytes;
}

struct wharf_zstd_seek_entry wharf_zstd_seek_read_entry(const uint8_t *entry);

/* Writes the parts of a table without checksums; a header of at most MAX_FRAMES. */
void wharf_zstd_seek_write_header(uint32_t n_frames, uint8_t *header);
void wharf_zstd_seek_write_entry(const struct wharf_zstd_seek_entry *entry, uint8_t *out);
void wharf_zstd_seek_write_footer(uint32_t n_frames, uint8_t *footer);

#endif
