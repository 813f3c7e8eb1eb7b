/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue_use.h: what a queue is asked to be, and what it costs.  Loop thread.
 */
#ifndef WHARF_DAEMON_CONTROL_QUEUE_USE_H
#define WHARF_DAEMON_CONTROL_QUEUE_USE_H

#include "daemon/control/connection.h"
#include "daemon/core/session.h"

/* fd: of an arena that is brought. */
struct wharf_session_options wharf_request_queue_options(const struct wharf_connection *connection,
                                                         const Wharf__OpenQueueRequest *open,
                                                         int fd);

/* What opening a queue will be charged, if it is not refused for its sizes. */
struct wharf_use wharf_request_queue_use(const struct wharf_connection *connection,
                                         const Wharf__OpenQueueRequest *open);

#endif
