/* SPDX-License-Identifier: Apache-2.0 */
/*
 * salvage.h: of damaged files writes all that decodes, and says what of it is in doubt.
 *
 * What is lost is never made up: of containers, whose headers tell how much is missing, zeros stand
 * for it, so that everything behind is where it was; of gzip and BGZF, whose sizes nothing vouches
 * for, nothing stands for it.  Behind damage the next chunk, block or gzip member is searched for,
 * byte by byte.  What looks like a gzip member is believed once it has given 32 KiB without an
 * error, or decoded to its end.
 *
 * Memory is bounded and time linear in the input, as without --salvage.  From a pipe too: the last
 * part of what was read is kept, to search in.
 */
#ifndef WHARF_CLI_SALVAGE_H
#define WHARF_CLI_SALVAGE_H

#include "clientlib/cli/container_pipe.h"
#include "clientlib/cli/task.h"
#include "encoders/deflate/inflate_stream.h"
#include "encoders/source_kind.h"

/*
 * Decodes the input, whose first bytes are of that kind, and writes the range of what could be
 * saved.  Returns the exit status: WHARF_CLI_GOOD if nothing was bad.
 */
int wharf_cli_salvage(struct wharf_cli_task *task, struct wharf_cli_range range,
                      enum wharf_source_kind kind);

/* The same of one Deflate or zlib stream, up to its first error, or of gzip members. */
int wharf_cli_salvage_stream(struct wharf_cli_task *task, enum wharf_inflate_format format);

#endif
