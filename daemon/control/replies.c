/* SPDX-License-Identifier: Apache-2.0 */
/* replies.c: replies without content. */
#include "daemon/control/replies.h"

#include <stdarg.h>
#include <stdio.h>

#include "daemon/control/connection.h"

void wharf_request_refuse(struct wharf_connection *connection, uint32_t id, int code,
                          const char *format, ...)
{
    Wharf__Error error = WHARF__ERROR__INIT;
    Wharf__Reply reply = WHARF__REPLY__INIT;
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    error.code = code;
    error.text = text;
    reply.id = id;
    reply.body_case = WHARF__REPLY__BODY_ERROR;
    reply.error = &error;
    wharf_connection_send(connection, &reply, false);
}

void wharf_request_done(struct wharf_connection *connection, uint32_t id)
{
    Wharf__Done done = WHARF__DONE__INIT;
    Wharf__Reply reply = WHARF__REPLY__INIT;

    reply.id = id;
    reply.body_case = WHARF__REPLY__BODY_DONE;
    reply.done = &done;
    wharf_connection_send(connection, &reply, false);
}
