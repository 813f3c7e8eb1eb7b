/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replies.h: replies without content: done, or refused with a reason.  Loop thread.
 */
#ifndef WHARF_DAEMON_CONTROL_REPLIES_H
#define WHARF_DAEMON_CONTROL_REPLIES_H

#include "daemon/control/connection.h"

/* Answer a request: refused, with an errno value and one line of text; or done. */
void wharf_request_refuse(struct wharf_connection *connection, uint32_t id, int code,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));
void wharf_request_done(struct wharf_connection *connection, uint32_t id);

#endif
