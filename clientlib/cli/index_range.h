/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index_range.h: a range of a gzip or zlib file by its index, spans in parallel.
 *
 * Spans of up to 16 MiB are decoded by all threads and written once their checksums were found
 * right.  Longer ones are decoded one by one and written as they come; the message about a failure
 * says how much is in doubt.  Memory: for each slot (pipeline.h) a span.
 */
#ifndef WHARF_CLI_INDEX_RANGE_H
#define WHARF_CLI_INDEX_RANGE_H

#include "clientlib/cli/container_pipe.h"
#include "clientlib/cli/task.h"

/*
 * Decodes the input, of any format, and writes the range of its output: by the index that the range
 * names, or of a part by the one beside the input, if it is true; else from the beginning, as
 * any_decode.h says.  Returns the exit status.
 */
int wharf_cli_index_decode(struct wharf_cli_task *task, struct wharf_cli_range range);

#endif
