/* SPDX-License-Identifier: Apache-2.0 */
/* error_text.c: each thread's error message. */
#include "clientlib/error_text.h"

#include <stdarg.h>
#include <stdio.h>

#include "clientlib/wharf.h"

static _Thread_local char message[512];

void wharf_client_set_message(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
}

const char *wharf_error_message(void)
{
    return message;
}

void wharf_client_copy_printable(char *to, size_t nbytes, const char *from)
{
    size_t i;

    for (i = 0; i + 1 < nbytes && from[i]; i++)
        to[i] = from[i] >= ' ' && from[i] <= '~' ? from[i] : '?';
    to[i] = '\0';
}
