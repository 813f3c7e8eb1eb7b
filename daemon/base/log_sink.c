/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_sink.c: writes messages to the journal, or to standard error.
 */
#include "daemon/base/log_sink.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include "daemon/base/log_level.h"
#include "daemon/base/log_queue.h"

static bool leads_to_journal; /* of standard error */
static bool uses_fields;      /* written by any thread */

/* systemd sets JOURNAL_STREAM to the device and inode of the stream that leads to the journal. */
static bool stderr_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat st;

    if (!stream || sscanf(stream, "%llu:%llu", &device, &inode) != 2 || fstat(2, &st) < 0)
        return false;
    return st.st_dev == device && st.st_ino == inode;
}

void wharf_log_sink_init(void)
{
    leads_to_journal = stderr_is_journal();
}

void wharf_log_sink_use_fields(void)
{
    __atomic_store_n(&uses_fields, leads_to_journal, __ATOMIC_RELAXED);
}

/* ---- journal ------------------------------------------------------------------------------- */

struct fields {
    struct iovec iov[8];
    int n;
    char text[WHARF_LOG_MESSAGE_NBYTES + 512];
    size_t n_used;
};

static void add(struct fields *fields, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void add(struct fields *fields, const char *format, ...)
{
    size_t n_free = sizeof(fields->text) - fields->n_used;
    char *at = fields->text + fields->n_used;
    va_list args;

    va_start(args, format);
    int n = vsnprintf(at, n_free, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= n_free)
        return;
    fields->iov[fields->n++] = (struct iovec){at, (size_t)n};
    fields->n_used += (size_t)n + 1;
}

static bool write_journal(const struct wharf_log_entry *entry)
{
    struct fields fields = {.n = 0};

    add(&fields, "MESSAGE=%s", entry->message);
    add(&fields, "PRIORITY=%d", entry->level);
    add(&fields, "SYSLOG_IDENTIFIER=wharfd");
    if (entry->tenant[0])
        add(&fields, "WHARF_TENANT=%s", entry->tenant);
    if (entry->connection)
        add(&fields, "WHARF_CONNECTION=%" PRIu64, entry->connection);
    if (entry->session)
        add(&fields, "WHARF_SESSION=%" PRIu64, entry->session);
    if (entry->error)
        add(&fields, "ERRNO=%d", entry->error);
    return sd_journal_sendv(fields.iov, fields.n) >= 0;
}

/* ---- standard error ------------------------------------------------------------------------ */

static const char *level_name(int level)
{
    switch (level) {
    case WHARF_LOG_ERROR:
        return "error: ";
    case WHARF_LOG_WARNING:
        return "warning: ";
    case WHARF_LOG_DEBUG:
        return "debug: ";
    default:
        return "";
    }
}

/* Standard error may have been made non-blocking by whoever started the daemon. */
static bool wait_until_writable(void)
{
    struct pollfd writable = {.fd = 2, .events = POLLOUT};

    return poll(&writable, 1, -1) >= 0 || errno == EINTR;
}

static bool put(const char *line, size_t nbytes)
{
    while (nbytes > 0) {
        ssize_t n = write(2, line, nbytes);
        if (n > 0) {
            line += n;
            nbytes -= (size_t)n;
        } else if (n == 0 || (errno == EAGAIN && !wait_until_writable()) ||
                   (errno != EAGAIN && errno != EINTR)) {
            return false;
        }
    }
    return true;
}

static bool write_stderr(const struct wharf_log_entry *entry)
{
    char line[WHARF_LOG_MESSAGE_NBYTES + 512], about[256] = "";
    int n = 0;

    if (entry->tenant[0])
        n += snprintf(about, sizeof(about), " tenant=%s", entry->tenant);
    if (entry->connection)
        n += snprintf(about + n, sizeof(about) - (size_t)n, " connection=%" PRIu64,
                      entry->connection);
    if (entry->session)
        n += snprintf(about + n, sizeof(about) - (size_t)n, " session=%" PRIu64, entry->session);
    if (leads_to_journal)
        n = snprintf(line, sizeof(line), "<%d>%s", entry->level, entry->message);
    else
        n = snprintf(line, sizeof(line), "wharfd: %s%s", level_name(entry->level), entry->message);
    n += about[0] ? snprintf(line + n, sizeof(line) - (size_t)n, " (%s)\n", about + 1)
                  : snprintf(line + n, sizeof(line) - (size_t)n, "\n");
    return put(line, (size_t)n);
}

bool wharf_log_sink_write(const struct wharf_log_entry *entry)
{
    return __atomic_load_n(&uses_fields, __ATOMIC_RELAXED) ? write_journal(entry)
                                                           : write_stderr(entry);
}
