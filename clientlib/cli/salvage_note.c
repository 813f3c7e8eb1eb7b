/* SPDX-License-Identifier: Apache-2.0 */
/* salvage_note.c: notes the damage of an input that is salvaged. */
#include "clientlib/cli/salvage_note.h"

#include <inttypes.h>
#include <stdio.h>

/* More places than this are counted, and not told one by one. */
enum { MOST_SAID = 100 };

static void describe(const struct wharf_cli_output *output, uint64_t n_doubtful, uint64_t n_zeros,
                     char *text, size_t text_nbytes)
{
    uint64_t end = wharf_cli_output_position(output);
    uint64_t zeros = end - n_zeros;
    int n = 0;

    text[0] = 0;
    if (n_doubtful)
        n = snprintf(text, text_nbytes,
                     "%" PRIu64 " bytes from byte %" PRIu64 " of the output on "
                     "are in doubt",
                     n_doubtful, zeros - n_doubtful);
    if (n_zeros)
        snprintf(text + n, text_nbytes - (size_t)n,
                 "%s%" PRIu64 " bytes from byte %" PRIu64 " on are zeros for what is lost",
                 n ? ", " : "", n_zeros, zeros);
    if (!n_doubtful && !n_zeros)
        snprintf(text, text_nbytes, "the output is at byte %" PRIu64 " there", end);
}

void wharf_cli_salvage_note(struct wharf_cli_salvage *salvage, struct wharf_cli_fault *fault,
                            uint64_t n_doubtful, uint64_t n_zeros)
{
    struct wharf_cli_task *task = salvage->task;
    char text[192];

    describe(task->output, n_doubtful, n_zeros, text, sizeof(text));
    fault->advice = text;
    wharf_cli_task_note_fault(task, fault, salvage->n_faults < MOST_SAID);
    if (salvage->n_faults == MOST_SAID)
        wharf_cli_say("%s: further places are only counted", task->input->name);
    salvage->n_faults++;
    salvage->n_doubtful += n_doubtful;
    salvage->n_zeros += n_zeros;
}
