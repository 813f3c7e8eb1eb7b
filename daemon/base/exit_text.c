/* SPDX-License-Identifier: Apache-2.0 */
/* exit_text.c: describes how a process ended. */
#include "daemon/base/exit_text.h"

#include <stdio.h>
#include <string.h>

const char *wharf_exit_text(int status, char text[WHARF_EXIT_TEXT_NBYTES])
{
    const char *name = status > 128 ? sigabbrev_np(status - 128) : NULL;

    if (name)
        snprintf(text, WHARF_EXIT_TEXT_NBYTES, "by SIG%s", name);
    else if (status > 128)
        snprintf(text, WHARF_EXIT_TEXT_NBYTES, "by signal %d", status - 128);
    else
        snprintf(text, WHARF_EXIT_TEXT_NBYTES, "with status %d", status);
    return text;
}
