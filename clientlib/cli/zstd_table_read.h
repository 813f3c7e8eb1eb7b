/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_table_read.h: reads the seek table at the end of an input, entry by entry, in bounded
 * memory.
 */
#ifndef WHARF_CLI_ZSTD_TABLE_READ_H
#define WHARF_CLI_ZSTD_TABLE_READ_H

#include "clientlib/cli/task.h"
#include "encoders/zstd/zstd_seek.h"

enum { WHARF_CLI_ZSTD_SEEK_BUF_NBYTES = 12 << 10 };

struct wharf_cli_zstd_seek {
    struct wharf_cli_input *input;
    struct wharf_zstd_seek_table table;
    uint64_t out_nbytes;  /* of all frames */
    uint32_t out_largest; /* of one */

    /* The next entry, and where its frame and the frame's output begin. */
    uint32_t next;
    uint64_t in_offset;
    uint64_t out_offset;

    uint32_t buf_first; /* the entry with which the buffer begins */
    uint32_t buf_n;
    uint8_t buf[WHARF_CLI_ZSTD_SEEK_BUF_NBYTES];
};

/* Looks for a table whose entries fill the input up to it.  1: there is one, and the next entry is
 * the first; 0: there is none; -errno. */
int wharf_cli_zstd_seek_open(struct wharf_cli_zstd_seek *seek, struct wharf_cli_input *input);

/* The next entry.  1, 0 behind the last, -errno. */
int wharf_cli_zstd_seek_next(struct wharf_cli_zstd_seek *seek,
                             struct wharf_zstd_seek_entry *ret_entry);

/* Makes the next entry the one whose frame has the output's byte `offset`, or the end.  0 or
 * -errno. */
int wharf_cli_zstd_seek_find(struct wharf_cli_zstd_seek *seek, uint64_t offset);

/* Whether a frame begins where the next entry says so.  1, 0, -errno. */
int wharf_cli_zstd_seek_at_frame(struct wharf_cli_zstd_seek *seek);

/* Whether some frames that end at in_offset have their output end at out_offset, as the table says;
 * the next entry is the one behind them then.  1, 0, -errno. */
int wharf_cli_zstd_seek_fits(struct wharf_cli_zstd_seek *seek, uint64_t in_offset,
                             uint64_t out_offset);

/* Tells that the table is wrong about the frame at `offset`.  Returns the exit status. */
int wharf_cli_zstd_seek_tell(struct wharf_cli_task *task, uint64_t offset);

#endif
