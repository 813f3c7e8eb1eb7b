/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole_decode.h: decodes one stream in memory, through a daemon or in this process.
 *
 * Nothing of the output is seen before all of it was verified.  Memory: the input's size and the
 * output's, each bounded by a limit that the user sets; memory for output is taken as it is
 * written to, not ahead.  Through a daemon the input of a pipe is there once more.
 */
#ifndef WHARF_CLI_WHOLE_DECODE_H
#define WHARF_CLI_WHOLE_DECODE_H

#include "clientlib/cli/task.h"

#define WHARF_CLI_WHOLE_DEFAULT_NBYTES ((uint64_t)1 << 30)

struct wharf_cli_whole {
    uint32_t codec;
    uint32_t parameter;
    uint64_t max_output_nbytes;
    bool is_exact; /* the output has just so many bytes */
    /* A model that the stream was coded with and has not in it, or NULL: as it is registered, and
     * what decoders here read. */
    const void *model;
    size_t model_nbytes;
    const void *image;
};

/*
 * Decodes the input from `offset` to its end, writes the output, and tallies.  Returns the exit
 * status; on WHARF_CLI_GOOD *ret_end is where the stream ended and the bytes behind it can be
 * read again.
 */
int wharf_cli_whole_decode(struct wharf_cli_task *task, const struct wharf_cli_whole *wanted,
                           uint64_t offset, uint64_t *ret_end);

#endif
