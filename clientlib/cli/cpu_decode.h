/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cpu_decode.h: decodes files of the formats of cpu_format.h, and looks at their headers.
 */
#ifndef WHARF_CLI_CPU_DECODE_H
#define WHARF_CLI_CPU_DECODE_H

#include <stdbool.h>
#include <stdint.h>

#include "clientlib/cli/cpu_format.h"
#include "clientlib/cli/salvage_note.h"
#include "clientlib/cli/task.h"

/* What headers say. */
struct wharf_cli_cpu_sums {
    uint64_t n_blocks;   /* WHARF_FRAME_SIZE_UNKNOWN if they do not tell for certain */
    uint64_t out_nbytes; /* likewise */
    bool has_header;     /* the first frame's was whole and good, or the format has none */
    bool has_checks;     /* that frame's */
};

/*
 * Goes from header to header of framed blocks.  Of a pipe, which can be read only once, that is the
 * first one; of other formats there are none.  What is wrong with headers is left to who decodes:
 * then nothing is known for certain.  Returns the exit status.
 */
int wharf_cli_cpu_format_look(struct wharf_cli_task *task,
                              const struct wharf_cli_cpu_format *format,
                              struct wharf_cli_cpu_sums *ret_sums);

/*
 * Decodes all of the input and writes it.  Returns the exit status, after saying which engines
 * there are if the one that was asked for has no decoder.
 *   salvage   NULL, or of bad data all is written that decodes
 */
int wharf_cli_cpu_format_decode(struct wharf_cli_task *task,
                                const struct wharf_cli_cpu_format *format,
                                struct wharf_cli_salvage *salvage);

#endif
