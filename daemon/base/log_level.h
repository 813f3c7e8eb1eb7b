/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_level.h: the severity of a message.
 */
#ifndef WHARF_DAEMON_BASE_LOG_LEVEL_H
#define WHARF_DAEMON_BASE_LOG_LEVEL_H

/* The values are those of syslog. */
enum wharf_log_level {
    WHARF_LOG_ERROR = 3,   /* something does not work */
    WHARF_LOG_WARNING = 4, /* something is wrong, and the daemon continues */
    WHARF_LOG_NOTICE = 5,  /* normal, and worth knowing */
    WHARF_LOG_INFO = 6,    /* normal */
    WHARF_LOG_DEBUG = 7,   /* each client that says Hello */
};

#endif
