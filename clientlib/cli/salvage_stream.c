/* SPDX-License-Identifier: Apache-2.0 */
/* salvage_stream.c: salvages a file that is one stream. */
#include "clientlib/cli/salvage_stream.h"

#include "clientlib/cli/stream_pipe.h"

int wharf_cli_salvage_whole_stream(struct wharf_cli_salvage *salvage, struct wharf_stream *stream)
{
    struct wharf_cli_stream_rescue rescue;
    struct wharf_cli_fault fault = {.chunk = WHARF_CLI_NO_CHUNK};
    int status = wharf_cli_stream_rescue(salvage->task, stream, 0, &rescue);

    if (status != WHARF_CLI_GOOD)
        return status;
    if (rescue.outcome.result == WHARF_OK)
        return wharf_cli_mention_rest(salvage->task, rescue.end);
    fault.result = rescue.outcome.result;
    fault.reason = rescue.outcome.reason;
    fault.bit_offset = rescue.outcome.bit_offset;
    wharf_cli_salvage_note(salvage, &fault, rescue.n_doubtful, 0);
    return WHARF_CLI_GOOD;
}
