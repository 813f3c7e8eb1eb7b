/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.h: what the daemon says, to the journal with fields or to standard error as lines.
 *
 * A line on standard error is
 *
 *     wharfd: warning: client sent a packet of 5000 bytes (tenant=uid:1000 connection=7)
 *
 * When standard error leads to the journal (JOURNAL_STREAM says so), it begins with its level in
 * the journal's form, <4>, instead, and wharf_log_use_fields makes messages entries with fields.
 * Not earlier: of a process that ends at once the journal finds out no more whose entry that was,
 * and the unit's log would lack why it does not start.
 *
 * From wharf_log_start on a thread of its own writes all messages, since the journal and whoever
 * reads standard error can stop.  Nobody else waits for them: up to 128 messages wait in a queue,
 * and those that find it full are left out, counted, and the count is said with the next ones.
 *
 * All functions are safe from any thread, if not said otherwise.
 */
#ifndef WHARF_DAEMON_BASE_LOG_H
#define WHARF_DAEMON_BASE_LOG_H

#include <stdint.h>

#include "daemon/base/log_level.h"

/* What a message is about; zero means nothing. */
struct wharf_log_fields {
    const char *tenant;  /* WHARF_TENANT */
    uint64_t connection; /* WHARF_CONNECTION */
    uint64_t session;    /* WHARF_SESSION */
    int error;           /* ERRNO; positive; its text is added to the message */
};

/* wharf_log_init: looks where messages go.  Before the first message; by one thread. */
void wharf_log_init(void);

/* Starts the thread.  Before others are there that log, after signals are blocked; once.  0 or
 * -errno. */
int wharf_log_start(void);

/* Waits until all is written, but for a second at most; later messages are left out.  Does nothing
 * where the thread was not started. */
void wharf_log_stop(void);

/*
 * Between the two a message of this thread makes no system call: the writer is woken when the
 * outermost lock was given back.  For locks that clients wait for.
 */
void wharf_log_hold(void);
void wharf_log_let_go(void);

/* Messages since the start. */
struct wharf_log_counts {
    uint64_t n_written;
    uint64_t n_over_limit; /* of clients, beyond what wharf_log_client allows */
    uint64_t n_not_taken;  /* because nobody read them */
};

void wharf_log_read_counts(struct wharf_log_counts *ret_counts);

/* From now on messages to the journal have fields. */
void wharf_log_use_fields(void);

/* Messages above this level are dropped; at first those above INFO. */
void wharf_log_set_level(enum wharf_log_level level);

/* `fields` may be NULL. */
void wharf_log(enum wharf_log_level level, const struct wharf_log_fields *fields,
               const char *format, ...) __attribute__((format(printf, 3, 4)));

/*
 * The same for what clients cause, so that nobody fills the disk: at most 20 messages in 5 seconds
 * for one tenant and 100 for all together, then one that says how many were left out.
 */
void wharf_log_client(enum wharf_log_level level, const struct wharf_log_fields *fields,
                      const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
