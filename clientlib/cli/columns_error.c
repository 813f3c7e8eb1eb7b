/* SPDX-License-Identifier: Apache-2.0 */
#include "clientlib/cli/columns_error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "clientlib/cli/columns_name.h"

enum { PLACE_NBYTES = 1024 };

/* "column 3 (fare), stripe 2, stream DATA, at byte 12345", each as far as it is known. */
static void print_place(const struct wharf_orc_file *file, const struct wharf_orc_error *error,
                        char text[PLACE_NBYTES])
{
    char column[512] = "", stripe[48] = "";

    if (file && error->column != WHARF_ORC_NOWHERE) {
        char *name = wharf_cli_column_name(file, error->column);
        snprintf(column, sizeof(column), "column %" PRIu32 " (%.400s), ", error->column,
                 name ? name : "");
        free(name);
    }
    if (error->stripe != WHARF_ORC_NOWHERE)
        snprintf(stripe, sizeof(stripe), "stripe %" PRIu32 ", ", error->stripe);
    snprintf(text, PLACE_NBYTES, "%s%s%s%sat byte %" PRIu64, column, stripe,
             error->where ? error->where : "", error->where ? ", " : "", error->offset);
}

static int fail_system(struct wharf_cli_task *task, const char *place, int error)
{
    const char *name = task->input->name;

    if (error == -ENODATA)
        wharf_cli_say("%s: %s: has become shorter while it was read", name, place);
    else
        wharf_cli_say("%s: %s: cannot read: %s", name, place, wharf_cli_error_text(error));
    return wharf_cli_tally_error(task->tally, name, error);
}

int wharf_cli_columns_fail(struct wharf_cli_task *task, const struct wharf_orc_file *file,
                           const struct wharf_orc_error *error)
{
    const char *name = task->input->name;
    char place[PLACE_NBYTES], other[24] = "";

    print_place(file, error, place);
    if (error->other)
        snprintf(other, sizeof(other), " %" PRIu64, error->other);
    if (error->trouble == WHARF_ORC_SYSTEM)
        return fail_system(task, place, error->error);
    wharf_cli_say("%s: %s: %s%s%s%s", name, place, error->what, other, error->reason ? ": " : "",
                  error->reason ? wharf_reason_string(error->reason) : "");
    if (error->trouble == WHARF_ORC_UNKNOWN)
        return wharf_cli_tally_error(task->tally, name, -EOPNOTSUPP);
    wharf_cli_tally_outcome(task->tally, name, WHARF_BAD_DATA, error->reason, 8 * error->offset);
    return WHARF_CLI_BAD_DATA;
}
