/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h: the daemon's messages, to the journal with fields or to standard error as lines.
 *
 * A line on standard error is
 *
 *     wharfd: warning: client sent a packet of 5000 bytes (tenant=uid:1000 connection=7)
 *
 * If standard error is connected to the journal (JOURNAL_STREAM), a line starts with its level as
 * <4> instead, and after wharf_log_use_fields messages are entries with fields.  Not from the
 * start: the journal cannot attribute an entry of a process that exits at once, so the unit's log
 * would lack the reason why it did not start.
 *
 * After wharf_log_start a thread writes all messages, because the journal, or the reader of
 * standard error, can stop.  No other thread waits for them.  Up to 128 messages wait in a queue;
 * messages beyond that are dropped and counted, and a later message has the count.
 *
 * All functions are safe from any thread, if not said otherwise.
 */
#ifndef WHARF_DAEMON_BASE_LOG_H
#define WHARF_DAEMON_BASE_LOG_H

#include <stdint.h>

#include "daemon/base/log_level.h"

/* The subject of a message; 0 or NULL: none. */
struct wharf_log_fields {
    const char *tenant;  /* WHARF_TENANT */
    uint64_t connection; /* WHARF_CONNECTION */
    uint64_t session;    /* WHARF_SESSION */
    int error;           /* ERRNO; positive; its text is added to the message */
};

/* wharf_log_init: finds out where messages go.  Call it before the first message, from one
 * thread. */
void wharf_log_init(void);

/* Starts the writer's thread, once.  Call it after signals are blocked and before other threads
 * log.  0 or -errno. */
int wharf_log_start(void);

/* Waits until all messages are written, for a second at most; drops later messages.  Does nothing
 * if the thread was not started. */
void wharf_log_stop(void);

/*
 * Between these two calls, messages of this thread make no system call; the outermost let_go wakes
 * the writer.  For code under locks that clients wait for.
 */
void wharf_log_hold(void);
void wharf_log_let_go(void);

/* Messages since the start. */
struct wharf_log_counts {
    uint64_t n_written;
    uint64_t n_over_limit; /* about clients, beyond the limits of wharf_log_client */
    uint64_t n_not_taken;  /* because the queue was full */
};

void wharf_log_read_counts(struct wharf_log_counts *ret_counts);

/* Later messages to the journal have fields. */
void wharf_log_use_fields(void);

/* Messages above this level are dropped.  The level is INFO at first. */
void wharf_log_set_level(enum wharf_log_level level);

/* `fields` may be NULL. */
void wharf_log(enum wharf_log_level level, const struct wharf_log_fields *fields,
               const char *format, ...) __attribute__((format(printf, 3, 4)));

/*
 * The same for messages that clients cause, so that no client can fill the disk.  At most 20
 * messages in 5 seconds about one tenant and 100 about all, then one with the number left out.
 */
void wharf_log_client(enum wharf_log_level level, const struct wharf_log_fields *fields,
                      const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
