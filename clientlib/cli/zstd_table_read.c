/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries are read in order through a small buffer, however many there are.  Positions are sums of
 * what was read, so they are right for frames that keep the table's promise;
 * wharf_cli_zstd_seek_fits finds out.
 */
#include "clientlib/cli/zstd_table_read.h"

#include <errno.h>

#include "encoders/little_endian.h"

/* Reads all of it.  1, 0: the input is shorter, -errno. */
static int read_all(struct wharf_cli_zstd_seek *seek, uint64_t offset, uint8_t *buf, size_t nbytes)
{
    int64_t n = wharf_cli_input_read_at(seek->input, offset, buf, nbytes);

    return n < 0 ? (int)n : (size_t)n == nbytes;
}

static int read_frame(struct wharf_cli_zstd_seek *seek)
{
    uint64_t nbytes = seek->input->nbytes;
    int r;

    if (!seek->input->is_seekable || nbytes < WHARF_ZSTD_SEEK_FOOTER_NBYTES)
        return 0;
    r = read_all(seek, nbytes - WHARF_ZSTD_SEEK_FOOTER_NBYTES, seek->buf,
                 WHARF_ZSTD_SEEK_FOOTER_NBYTES);
    if (r <= 0 || !wharf_zstd_seek_read_footer(seek->buf, nbytes, &seek->table))
        return r < 0 ? r : 0;
    r = read_all(seek, seek->table.offset, seek->buf, WHARF_ZSTD_SEEK_HEADER_NBYTES);
    return r <= 0 ? r : wharf_zstd_seek_is_header(seek->buf, &seek->table);
}

static int fill(struct wharf_cli_zstd_seek *seek)
{
    uint32_t n = (uint32_t)sizeof(seek->buf) / seek->table.entry_nbytes;
    uint32_t left = seek->table.n_frames - seek->next;
    int r;

    if (n > left)
        n = left;
    seek->buf_n = 0;
    r = read_all(seek, wharf_zstd_seek_entry_offset(&seek->table, seek->next), seek->buf,
                 (size_t)n * seek->table.entry_nbytes);
    if (r <= 0)
        return r < 0 ? r : -EIO; /* it became shorter since it was opened */
    seek->buf_first = seek->next;
    seek->buf_n = n;
    return 1;
}

int wharf_cli_zstd_seek_next(struct wharf_cli_zstd_seek *seek,
                             struct wharf_zstd_seek_entry *ret_entry)
{
    struct wharf_zstd_seek_entry entry;
    int r = 1;

    if (seek->next == seek->table.n_frames)
        return 0;
    if (seek->next - seek->buf_first >= seek->buf_n)
        r = fill(seek);
    if (r <= 0)
        return r;
    entry = wharf_zstd_seek_read_entry(seek->buf + (size_t)(seek->next - seek->buf_first) *
                                                       seek->table.entry_nbytes);
    seek->next++;
    seek->in_offset += entry.in_nbytes;
    seek->out_offset += entry.out_nbytes;
    *ret_entry = entry;
    return 1;
}

static void rewind_entries(struct wharf_cli_zstd_seek *seek)
{
    seek->next = 0;
    seek->in_offset = seek->out_offset = 0;
}

int wharf_cli_zstd_seek_open(struct wharf_cli_zstd_seek *seek, struct wharf_cli_input *input)
{
    struct wharf_zstd_seek_entry entry;
    int r;

    seek->input = input;
    seek->buf_first = seek->buf_n = 0;
    seek->out_largest = 0;
    rewind_entries(seek);
    r = read_frame(seek);
    if (r <= 0)
        return r;
    while ((r = wharf_cli_zstd_seek_next(seek, &entry)) > 0)
        if (entry.out_nbytes > seek->out_largest)
            seek->out_largest = entry.out_nbytes;
    if (r < 0 || seek->in_offset != seek->table.offset)
        return r;
    seek->out_nbytes = seek->out_offset;
    rewind_entries(seek);
    return 1;
}

int wharf_cli_zstd_seek_find(struct wharf_cli_zstd_seek *seek, uint64_t offset)
{
    struct wharf_zstd_seek_entry entry;
    int r = 1;

    rewind_entries(seek);
    while (r > 0 && seek->out_offset <= offset)
        r = wharf_cli_zstd_seek_next(seek, &entry);
    if (r <= 0)
        return r;
    seek->next--;
    seek->in_offset -= entry.in_nbytes;
    seek->out_offset -= entry.out_nbytes;
    return 0;
}

int wharf_cli_zstd_seek_at_frame(struct wharf_cli_zstd_seek *seek)
{
    uint8_t first[WHARF_ZSTD_MAGIC_NBYTES];
    uint32_t magic;
    int r = read_all(seek, seek->in_offset, first, sizeof(first));

    if (r <= 0)
        return r;
    magic = wharf_load_le32(first);
    return magic == WHARF_ZSTD_MAGIC ||
           (magic & WHARF_ZSTD_SKIPPABLE_MASK) == WHARF_ZSTD_SKIPPABLE_MAGIC;
}

int wharf_cli_zstd_seek_fits(struct wharf_cli_zstd_seek *seek, uint64_t in_offset,
                             uint64_t out_offset)
{
    struct wharf_zstd_seek_entry entry;
    int r = 1;

    while (r > 0 && seek->in_offset < in_offset && seek->in_offset < seek->table.offset)
        r = wharf_cli_zstd_seek_next(seek, &entry);
    if (r < 0)
        return r;
    return seek->out_offset == out_offset &&
           (seek->in_offset == in_offset || seek->in_offset == seek->table.offset);
}

int wharf_cli_zstd_seek_tell(struct wharf_cli_task *task, uint64_t offset)
{
    const struct wharf_cli_fault fault = {
        .result = WHARF_BAD_DATA,
        .reason = WHARF_REASON_ZSTD_SEEK_TABLE,
        .bit_offset = 8 * offset,
        .chunk = WHARF_CLI_NO_CHUNK,
        .advice = "without --range it is not needed",
    };

    return wharf_cli_task_fault(task, &fault, 0);
}
