/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_use.h: the options and the charge of a requested queue.  Loop thread.
 */
#ifndef WHARF_DAEMON_CONTROL_QUEUE_USE_H
#define WHARF_DAEMON_CONTROL_QUEUE_USE_H

#include "daemon/control/connection.h"
#include "daemon/core/session.h"

/* fd: of an arena that the client brings. */
struct wharf_session_options wharf_request_queue_options(const struct wharf_connection *connection,
                                                         const Wharf__OpenQueueRequest *open,
                                                         int fd);

/* The charge for opening a queue, unless its sizes are refused. */
struct wharf_use wharf_request_queue_use(const struct wharf_connection *connection,
                                         const Wharf__OpenQueueRequest *open);

#endif
