/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frame_pipe.h: decodes files of framed blocks, LZ4 frames and framed Snappy, in this process.
 *
 * One thread reads and takes the file apart (encoders/frame_piece.h), the workers decode blocks,
 * the caller writes and verifies what is a frame's as a whole.  Blocks that reach back into those
 * before are decoded by the reading thread, in order.
 *
 * Memory: at most 2 * 16 + 2 slots, each with the data and the output of a block, however large the
 * format lets that be, or of smaller ones up to 1 MiB.  A frame that ends within a slot is written
 * after its checksum was found right; of longer ones blocks are not held back for it, and the
 * message about a failure says how much is in doubt.
 */
#ifndef WHARF_CLI_FRAME_PIPE_H
#define WHARF_CLI_FRAME_PIPE_H

#include "clientlib/cli/salvage_note.h"
#include "clientlib/cli/task.h"
#include "encoders/frame_piece.h"

/*
 * Decodes all of the input by its splitter, writes it, and tallies.  Returns the exit status.
 *   salvage   NULL, or of bad data all blocks are written that decode, and it is told of the others
 */
int wharf_cli_frame_pipe(struct wharf_cli_task *task, wharf_frame_next_fn *next,
                         struct wharf_cli_salvage *salvage);

#endif
