/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_pipe.h: decodes a stream of any length in bounded memory.
 *
 * One thread reads and decodes, another writes; where it pays, threads share the first one's work
 * (parallel_stream.h).  Output goes through a few slots of WHARF_CLI_STREAM_SLOT_NBYTES.  A stream
 * of fewer bytes is written only after its checksum was found right; of longer ones the slots that
 * are full are not held back for it, and the message about a failure says how much is in doubt.
 */
#ifndef WHARF_CLI_STREAM_PIPE_H
#define WHARF_CLI_STREAM_PIPE_H

#include "clientlib/cli/task.h"
#include "encoders/deflate/inflate_stream.h"
#include "encoders/stream.h"

enum { WHARF_CLI_STREAM_SLOT_NBYTES = 1 << 20 };

/*
 * Decodes the input from `offset`, where the stream begins, and writes it.
 *   stream  a new one, which this function frees; NULL: there was no memory for it
 * Returns the exit status; on WHARF_CLI_GOOD *ret_end is the offset where the stream ended.
 */
int wharf_cli_stream_pipe(struct wharf_cli_task *task, struct wharf_stream *stream, uint64_t offset,
                          uint64_t *ret_end);

/* The same of a gzip, zlib or Deflate stream, by as many threads as may be used and it pays. */
int wharf_cli_inflate_pipe(struct wharf_cli_task *task, enum wharf_inflate_format format,
                           uint64_t offset, uint64_t *ret_end);

/* What became of a stream that was written as far as it decodes. */
struct wharf_cli_stream_rescue {
    struct wharf_outcome outcome; /* its places count from the stream's beginning */
    uint64_t end;                 /* where it ended, if it is good */
    uint64_t member_start;        /* where the member begins in which it failed */
    uint64_t n_written;
    uint64_t n_doubtful; /* of these, the last ones that no checksum stands for */
};

/* The same, but all that decodes is written, and of bad data nothing is said.  Returns the exit
 * status: WHARF_CLI_GOOD with *ret_rescue filled, whatever its outcome, unless the input cannot be
 * read or the output not be written. */
int wharf_cli_stream_rescue(struct wharf_cli_task *task, struct wharf_stream *stream,
                            uint64_t offset, struct wharf_cli_stream_rescue *ret_rescue);

/*
 * What stands from `offset` to the end of the input, after a stream that was good: nothing, or
 * zeros, which pad tapes and disks, is passed over; anything else is mentioned, as gzip does.
 * Returns the exit status.
 */
int wharf_cli_mention_rest(struct wharf_cli_task *task, uint64_t offset);

/* Whether anything but zeros stands from `offset` to the end of the input.  Returns the exit
 * status. */
int wharf_cli_look_at_rest(struct wharf_cli_task *task, uint64_t offset, bool *ret_has_bytes);

/* Mentions it. */
void wharf_cli_say_rest(const struct wharf_cli_task *task, uint64_t offset);

#endif
