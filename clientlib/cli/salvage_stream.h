/* SPDX-License-Identifier: Apache-2.0 */
/*
 * salvage_stream.h: salvages a file that is one stream.
 */
#ifndef WHARF_CLI_SALVAGE_STREAM_H
#define WHARF_CLI_SALVAGE_STREAM_H

#include "clientlib/cli/salvage_note.h"
#include "encoders/stream.h"

/* Decodes a stream that is all of the input, up to its first error.  `stream` as of stream_pipe.h.
 * Returns the exit status. */
int wharf_cli_salvage_whole_stream(struct wharf_cli_salvage *salvage, struct wharf_stream *stream);

#endif
