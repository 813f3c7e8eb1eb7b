/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_pipe.h: decodes a zlib stream or gzip members of any length, in bounded memory.
 *
 * One thread reads and decodes, another writes.  Output goes through a few slots of
 * WHARF_CLI_STREAM_SLOT_NBYTES.  A stream of fewer bytes is written only after its checksum was
 * found right; of longer ones the slots that are full are not held back for it, and the message
 * about a failure says how much is in doubt.
 */
#ifndef WHARF_CLI_STREAM_PIPE_H
#define WHARF_CLI_STREAM_PIPE_H

#include "clientlib/cli/task.h"
#include "encoders/deflate/inflate_stream.h"

enum { WHARF_CLI_STREAM_SLOT_NBYTES = 1 << 20 };

/*
 * Decodes the input from `offset`, where the stream begins, and writes it.  Returns the exit
 * status; on WHARF_CLI_GOOD *ret_end is the offset where the stream ended.
 */
int wharf_cli_stream_pipe(struct wharf_cli_task *task, enum wharf_inflate_format format,
                          uint64_t offset, uint64_t *ret_end);

/*
 * What stands from `offset` to the end of the input, after a stream that was good: nothing, or
 * zeros, which pad tapes and disks, is passed over; anything else is mentioned, as gzip does.
 * Returns the exit status.
 */
int wharf_cli_mention_rest(struct wharf_cli_task *task, uint64_t offset);

#endif
