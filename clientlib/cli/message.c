/* SPDX-License-Identifier: Apache-2.0 */
/* message.c: the command's messages and exit statuses. */
#include "clientlib/cli/message.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/cli/progress.h"

/* Longest line; PATH_MAX for a name and as much for all else.  What is longer is cut. */
enum { MAX_LINE_NBYTES = 8192 };

static const char prefix[] = "wharf: ";

static void hide_controls(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

/* Writes to standard error.  Nothing can be said about a failure to say something. */
static void write_line(const char *line, size_t nbytes)
{
    ssize_t n = write(STDERR_FILENO, line, nbytes);

    (void)n;
}

__attribute__((format(printf, 1, 0))) static void say_list(const char *format, va_list arguments)
{
    char line[MAX_LINE_NBYTES];
    char *text = line + sizeof(prefix) - 1;

    memcpy(line, prefix, sizeof(prefix));
    vsnprintf(text, sizeof(line) - sizeof(prefix) - 1, format, arguments);
    hide_controls(text);
    strcat(text, "\n");
    wharf_cli_progress_hide();
    write_line(line, strlen(line));
}

void wharf_cli_say(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say_list(format, arguments);
    va_end(arguments);
}

int wharf_cli_say_usage(const char *command, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    say_list(format, arguments);
    va_end(arguments);
    if (command)
        wharf_cli_say("`wharf %s --help` shows how to use it", command);
    else
        wharf_cli_say("`wharf --help` lists the commands");
    return WHARF_CLI_USAGE;
}

void wharf_cli_begin_output(void)
{
    signal(SIGPIPE, SIG_DFL);
}

int wharf_cli_end_output(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return WHARF_CLI_GOOD;
    /* What an earlier write failed with is forgotten. */
    wharf_cli_say("standard output: cannot write: %s", wharf_cli_error_text(errno ? errno : EIO));
    return WHARF_CLI_FAILED;
}

int wharf_cli_status_of(uint32_t result)
{
    switch (result) {
    case WHARF_OK:
        return WHARF_CLI_GOOD;
    case WHARF_BAD_DATA:
    case WHARF_OUTPUT_SHORT:
    case WHARF_BAD_CHECKSUM:
        return WHARF_CLI_BAD_DATA;
    case WHARF_BAD_REQUEST:
        return WHARF_CLI_USAGE;
    default:
        return WHARF_CLI_FAILED;
    }
}

const char *wharf_cli_error_text(int error)
{
    static _Thread_local char text[128];

    return strerror_r(error < 0 ? -error : error, text, sizeof(text));
}
