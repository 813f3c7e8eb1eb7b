/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes are added in 64 bits, in which numbers of 32 bits cannot overflow. */
#include "encoders/zstd/zstd_seek.h"

#include "encoders/little_endian.h"

enum { HAS_CHECKSUMS = 0x80, RESERVED = 0x7c, CHECKSUM_NBYTES = 4 };

/* Of the frame, without its header. */
static uint64_t content_nbytes(uint32_t n_frames, uint32_t entry_nbytes)
{
    return (uint64_t)n_frames * entry_nbytes + WHARF_ZSTD_SEEK_FOOTER_NBYTES;
}

bool wharf_zstd_seek_read_footer(const uint8_t *footer, uint64_t file_nbytes,
                                 struct wharf_zstd_seek_table *ret_table)
{
    uint32_t n_frames = wharf_load_le32(footer);
    uint8_t descriptor = footer[4];
    uint32_t entry_nbytes =
        WHARF_ZSTD_SEEK_ENTRY_NBYTES + (descriptor & HAS_CHECKSUMS ? CHECKSUM_NBYTES : 0);
    uint64_t nbytes = WHARF_ZSTD_SEEK_HEADER_NBYTES + content_nbytes(n_frames, entry_nbytes);

    if (wharf_load_le32(footer + 5) != WHARF_ZSTD_SEEK_MAGIC || (descriptor & RESERVED) ||
        n_frames > WHARF_ZSTD_SEEK_MAX_FRAMES || nbytes > file_nbytes)
        return false;
    *ret_table = (struct wharf_zstd_seek_table){file_nbytes - nbytes, n_frames, entry_nbytes};
    return true;
}

bool wharf_zstd_seek_is_header(const uint8_t *header, const struct wharf_zstd_seek_table *table)
{
    return wharf_load_le32(header) == WHARF_ZSTD_SEEK_FRAME_MAGIC &&
           wharf_load_le32(header + 4) == content_nbytes(table->n_frames, table->entry_nbytes);
}

struct wharf_zstd_seek_entry wharf_zstd_seek_read_entry(const uint8_t *entry)
{
    return (struct wharf_zstd_seek_entry){wharf_load_le32(entry), wharf_load_le32(entry + 4)};
}

void wharf_zstd_seek_write_header(uint32_t n_frames, uint8_t *header)
{
    wharf_store_le32(header, WHARF_ZSTD_SEEK_FRAME_MAGIC);
    wharf_store_le32(header + 4, (uint32_t)content_nbytes(n_frames, WHARF_ZSTD_SEEK_ENTRY_NBYTES));
}

void wharf_zstd_seek_write_entry(const struct wharf_zstd_seek_entry *entry, uint8_t *out)
{
    wharf_store_le32(out, entry->in_nbytes);
    wharf_store_le32(out + 4, entry->out_nbytes);
}

void wharf_zstd_seek_write_footer(uint32_t n_frames, uint8_t *footer)
{
    wharf_store_le32(footer, n_frames);
    footer[4] = 0;
    wharf_store_le32(footer + 5, WHARF_ZSTD_SEEK_MAGIC);
}
