/* SPDX-License-Identifier: Apache-2.0 */
/*
 * salvage_note.h: one input that is salvaged (salvage.h), and what has been said of its damage.
 */
#ifndef WHARF_CLI_SALVAGE_NOTE_H
#define WHARF_CLI_SALVAGE_NOTE_H

#include <stdint.h>

#include "clientlib/cli/task.h"

struct wharf_cli_salvage {
    struct wharf_cli_task *task;
    uint8_t *buf; /* to search in */
    uint64_t n_faults;
    uint64_t n_doubtful; /* bytes that were written */
    uint64_t n_zeros;    /* bytes that stand for what is lost */

    /* What candidates for a gzip member cost so far, and what was searched. */
    uint64_t n_tried;
    uint64_t n_searched;
};

enum {
    WHARF_CLI_SALVAGE_SEARCH_NBYTES = 64 << 10, /* of buf */
    /* How much of what was read from a pipe can be searched again. */
    WHARF_CLI_SALVAGE_KEEP_NBYTES = 1 << 20,
};

/*
 * Notes a fault after what can be had of it was written: the last n_doubtful + n_zeros bytes of the
 * output are in doubt, or zeros in place of what is lost.  Says so, unless it was said of too many.
 */
void wharf_cli_salvage_note(struct wharf_cli_salvage *salvage, struct wharf_cli_fault *fault,
                            uint64_t n_doubtful, uint64_t n_zeros);

#endif
