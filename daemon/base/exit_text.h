/* SPDX-License-Identifier: Apache-2.0 */
/* exit_text.h: describes how a process ended. */
#ifndef WHARF_DAEMON_BASE_EXIT_TEXT_H
#define WHARF_DAEMON_BASE_EXIT_TEXT_H

#define WHARF_EXIT_TEXT_NBYTES 32

/* Describes a status as a shell has it, 128 plus the signal: "with status 3", "by SIGKILL".
 * Returns `text`. */
const char *wharf_exit_text(int status, char text[WHARF_EXIT_TEXT_NBYTES]);

#endif
