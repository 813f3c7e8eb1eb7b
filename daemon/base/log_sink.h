/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_sink.h: writes messages to the journal, with fields, or as lines to standard error.
 *
 * A writer may block for as long as the journal, or the reader of standard error, does not read.
 */
#ifndef WHARF_DAEMON_BASE_LOG_SINK_H
#define WHARF_DAEMON_BASE_LOG_SINK_H

#include <stdbool.h>

#include "daemon/base/log_queue.h"

/* Finds out where standard error leads.  Call it before the first message, from one thread. */
void wharf_log_sink_init(void);

/* From now on messages have fields, if standard error leads to the journal. */
void wharf_log_sink_use_fields(void);

/* False: the message could not be written, and is lost. */
bool wharf_log_sink_write(const struct wharf_log_entry *entry);

#endif
