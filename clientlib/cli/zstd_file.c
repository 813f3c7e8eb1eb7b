/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames that fit a slot go through zstd_pipe.h, longer ones through stream_pipe.h, and then back.
 * Both leave off between two frames, so each goes on where the other one ended.
 */
#include "clientlib/cli/zstd_file.h"

#include <errno.h>
#include <stdlib.h>

#include "clientlib/cli/stream_pipe.h"
#include "clientlib/cli/zstd_pipe.h"
#include "encoders/zstd/zstd_stream.h"

/* A frame, of any length, or all that are left; goes on behind it. */
static int decode_stream(struct wharf_cli_task *task, struct wharf_cli_zstd_seek *seek,
                         enum wharf_zstd_extent extent, uint64_t *offset)
{
    uint64_t from = *offset;
    int status = wharf_cli_stream_pipe(task, wharf_zstd_stream_new(extent), from, offset);
    int r;

    if (status != WHARF_CLI_GOOD || !seek)
        return status;
    r = wharf_cli_zstd_seek_fits(seek, *offset, wharf_cli_output_position(task->output));
    if (r < 0)
        return wharf_cli_task_read_error(task, r);
    return r ? WHARF_CLI_GOOD : wharf_cli_zstd_seek_tell(task, from);
}

/* All frames from `offset` on: those of usual size in parallel, others one by one. */
static int decode_from(struct wharf_cli_task *task, struct wharf_cli_zstd_seek *seek,
                       uint64_t offset)
{
    enum wharf_cli_zstd_then then;

    for (;;) {
        int status = wharf_cli_zstd_pipe(task, seek, offset, &offset, &then);

        if (status != WHARF_CLI_GOOD || wharf_cli_output_is_full(task->output) ||
            then == WHARF_CLI_ZSTD_END)
            return status;
        if (then == WHARF_CLI_ZSTD_BAD)
            return decode_stream(task, NULL, WHARF_ZSTD_ALL_FRAMES, &offset);
        status = decode_stream(task, seek, WHARF_ZSTD_ONE_FRAME, &offset);
        if (status != WHARF_CLI_GOOD)
            return status;
    }
}

/* The frames that hold the range, as the table says. */
static int decode_part(struct wharf_cli_task *task, struct wharf_cli_zstd_seek *seek, uint64_t from)
{
    int r = wharf_cli_zstd_seek_find(seek, from);

    if (r == 0)
        r = wharf_cli_zstd_seek_at_frame(seek);
    if (r < 0)
        return wharf_cli_task_read_error(task, r);
    if (r == 0)
        return wharf_cli_zstd_seek_tell(task, seek->in_offset);
    wharf_cli_output_pass(task->output, seek->out_offset);
    return decode_from(task, seek, seek->in_offset);
}

int wharf_cli_zstd_decode(struct wharf_cli_task *task, struct wharf_cli_range range)
{
    struct wharf_cli_zstd_seek *seek;
    int status;
    int r;

    if (range.offset == 0)
        return decode_from(task, NULL, 0);
    seek = malloc(sizeof(*seek));
    if (!seek)
        return wharf_cli_task_error(task, "cannot decode", -ENOMEM);
    r = wharf_cli_zstd_seek_open(seek, task->input);
    if (r < 0)
        status = wharf_cli_task_read_error(task, r);
    else
        status = r ? decode_part(task, seek, range.offset) : decode_from(task, NULL, 0);
    free(seek);
    return status;
}
