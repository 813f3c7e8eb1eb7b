/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_pipe.h: decodes zstd frames, several at a time, in bounded memory and in this process.
 *
 * Frames of up to 16 MiB of data and as much output are decoded each by one thread, and written in
 * order once they are verified.  Longer frames are for stream_pipe.h, one after the other, and so
 * is whatever is not good: its decoder says what is wrong.  Memory: a slot grows with the frames to
 * 17 MiB of input and 16 MiB of output; pipeline.h says how many slots there are.
 */
#ifndef WHARF_CLI_ZSTD_PIPE_H
#define WHARF_CLI_ZSTD_PIPE_H

#include "clientlib/cli/task.h"
#include "clientlib/cli/zstd_table_read.h"

enum wharf_cli_zstd_then {
    WHARF_CLI_ZSTD_END,   /* nothing: it is the input's end */
    WHARF_CLI_ZSTD_OTHER, /* a long frame, or something that is not good */
    WHARF_CLI_ZSTD_BAD,   /* frames that could not be decoded: their decoder will say why */
};

/*
 * Decodes the frames that begin at `offset`, until something comes that is not for it.
 *   seek   NULL, or the frames are held against what the file's seek table says of them
 * Returns the exit status; on WHARF_CLI_GOOD *ret_end is the offset up to which all is written,
 * which can be read again, and *ret_then what stands there.
 */
int wharf_cli_zstd_pipe(struct wharf_cli_task *task, struct wharf_cli_zstd_seek *seek,
                        uint64_t offset, uint64_t *ret_end, enum wharf_cli_zstd_then *ret_then);

#endif
