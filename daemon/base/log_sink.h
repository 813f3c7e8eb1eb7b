/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_sink.h: where messages go: the journal, with fields, or lines on standard error.
 *
 * Whoever writes here may wait for as long as the journal, or the reader of standard error, has
 * stopped.
 */
#ifndef WHARF_DAEMON_BASE_LOG_SINK_H
#define WHARF_DAEMON_BASE_LOG_SINK_H

#include <stdbool.h>

#include "daemon/base/log_queue.h"

/* Looks where standard error leads.  Before the first message; by one thread. */
void wharf_log_sink_init(void);

/* From now on messages have fields, if standard error leads to the journal. */
void wharf_log_sink_use_fields(void);

/* False: it was not taken, and is lost. */
bool wharf_log_sink_write(const struct wharf_log_entry *entry);

#endif
