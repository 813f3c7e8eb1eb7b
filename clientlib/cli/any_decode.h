/* SPDX-License-Identifier: Apache-2.0 */
/*
 * any_decode.h: decodes an input of any format that wharf knows: gzip, BGZF, zlib, containers.
 *
 * The format is told by the first bytes.  `cat`, `unpack` and `test` are this with different
 * outputs.
 */
#ifndef WHARF_CLI_ANY_DECODE_H
#define WHARF_CLI_ANY_DECODE_H

#include "clientlib/cli/container_pipe.h"
#include "clientlib/cli/task.h"
#include "encoders/source_kind.h"

/*
 * Decodes the input and writes the range of its output.
 *   expects_container   what no format's first bytes fit is a damaged container, and told of as one
 * Bytes behind the end of a gzip or zlib stream are mentioned.  A range that is not all within the
 * output is a failure.  Returns the exit status, after saying and noting what is wrong.
 */
int wharf_cli_any_decode(struct wharf_cli_task *task, struct wharf_cli_range range,
                         bool expects_container);

/* Recognises the input, which can then be read from its start.  Returns the exit status. */
int wharf_cli_any_detect(struct wharf_cli_task *task, enum wharf_source_kind *ret_kind);

/* Says that the input is of no format that wharf reads, and of which one it is if that can be told.
 * Returns the exit status. */
int wharf_cli_any_tell_unknown(struct wharf_cli_task *task, enum wharf_source_kind kind);

#endif
