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
 * Standard error that is a pipe, a terminal or a socket is never waited for: lines that it does not
 * take are left out, and counted in the next one that it does.
 *
 * All functions are safe from any thread.
 */
#ifndef WHARF_DAEMON_BASE_LOG_H
#define WHARF_DAEMON_BASE_LOG_H

#include <stdint.h>

/* The values are those of syslog. */
enum wharf_log_level {
    WHARF_LOG_ERROR = 3,   /* something does not work */
    WHARF_LOG_WARNING = 4, /* something is not as it should be, and the daemon goes on */
    WHARF_LOG_NOTICE = 5,  /* normal, and worth knowing */
    WHARF_LOG_INFO = 6,    /* normal */
    WHARF_LOG_DEBUG = 7,   /* each client that says Hello */
};

/* What a message is about; zero means nothing. */
struct wharf_log_fields {
    const char *tenant;  /* WHARF_TENANT */
    uint64_t connection; /* WHARF_CONNECTION */
    uint64_t session;    /* WHARF_SESSION */
    int error;           /* ERRNO; positive; its text is added to the message */
};

/* wharf_log_init: looks where messages go.  Before the first message; by one thread. */
void wharf_log_init(void);

/* From now on messages to the journal have fields. */
void wharf_log_use_fields(void);

/* Messages above this level are dropped; at first those above INFO. */
void wharf_log_set_level(enum wharf_log_level level);

/* `fields` may be NULL. */
void wharf_log(enum wharf_log_level level, const struct wharf_log_fields *fields,
               const char *format, ...) __attribute__((format(printf, 3, 4)));

/*
 * The same for what clients cause, so that nobody fills the disk: at most 20 messages in 5 seconds
 * for all clients together, then one that says how many were left out.
 */
void wharf_log_client(enum wharf_log_level level, const struct wharf_log_fields *fields,
                      const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
