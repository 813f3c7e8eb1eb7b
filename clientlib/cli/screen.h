/* SPDX-License-Identifier: Apache-2.0 */
/*
 * screen.h: a terminal's other screen, for pictures that are drawn again and again.
 *
 * What stood on the terminal comes back however the command ends: by a key, at its end, or by a
 * signal, which then does what it always does.  There is one, for one thread.
 */
#ifndef WHARF_CLI_SCREEN_H
#define WHARF_CLI_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

/* Takes the terminal, if standard output is one; keys are read where standard input is the same
 * one's and the command is in its foreground. */
void wharf_cli_screen_enter(void);

/* Gives it back.  May be called again, and without having entered. */
void wharf_cli_screen_leave(void);

/* Before a picture: standard output is empty then, if it is a terminal.  Returns whether it is. */
bool wharf_cli_screen_clear(void);

/* How many lines it has; 0 where there is no screen, or it does not say. */
unsigned wharf_cli_screen_rows(void);

/* Sleeps until then, by wharf_client_now_ns().  Returns true before that when the key q is hit. */
bool wharf_cli_screen_rest(uint64_t until_ns);

#endif
