/* SPDX-License-Identifier: Apache-2.0 */
/* worker_say.c: sends the worker's messages and errors to the core. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/gpu/worker_message.h"
#include "daemon/worker/worker.h"
#include "proto/control.h"

void wharf_worker_say(const struct wharf_worker_message *message)
{
    if (wharf_control_send(WHARF_WORKER_SOCKET_FD, (const uint8_t *)message, sizeof(*message), NULL,
                           0, 0) < 0)
        _exit(WHARF_WORKER_EXIT_OK);
}

void wharf_worker_fail(int status, int error, const char *what, const char *why)
{
    struct wharf_worker_message message = {.kind = WHARF_WORKER_FAILED, .error = error};

    snprintf(message.text, sizeof(message.text), "%s: %s", what,
             why && *why ? why : strerrordesc_np(error));
    wharf_worker_say(&message);
    /* Not exit(): functions registered for it may wait for a device that hangs. */
    _exit(status);
}
