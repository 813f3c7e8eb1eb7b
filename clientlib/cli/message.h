/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h: what the command says to people, and its exit statuses.
 *
 * Every message is one line on standard error, "wharf: " first, written at once so that the
 * lines of several processes do not mix.  Control characters in it (a file's name may hold
 * any) become question marks, so that no file can write to somebody's terminal.
 */
#ifndef WHARF_CLI_MESSAGE_H
#define WHARF_CLI_MESSAGE_H

#include "proto/wharf_result.h"

/* The exit status of every command; wharf(1) documents them. */
enum wharf_cli_status {
    WHARF_CLI_GOOD = 0,
    WHARF_CLI_BAD_DATA = 1,
    WHARF_CLI_USAGE = 2,
    WHARF_CLI_NO_DAEMON = 3,
    WHARF_CLI_FAILED = 4,
};

/* Says one line.  Safe from any thread. */
void wharf_cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Says that the command line is wrong and where its help is.  Returns WHARF_CLI_USAGE. */
int wharf_cli_say_usage(const char *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* At the beginning of a command that prints: when nobody reads any more, it ends quietly. */
void wharf_cli_begin_output(void);

/* At the end of a command that prints: the exit status, FAILED after saying that standard output
 * could not be written. */
int wharf_cli_end_output(void);

/* The exit status that goes with a result: bad data, bad request or any other failure. */
int wharf_cli_status_of(uint32_t result);

/* The text of an errno number.  Safe from any thread; the string lasts until the thread's next
 * call. */
const char *wharf_cli_error_text(int error);

#endif
