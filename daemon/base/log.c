/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/log.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "proto/utf8.h"

#define LINE_NBYTES 1024

static bool leads_to_journal; /* standard error does */
static int stderr_fd = 2;     /* another one that does not block, where there can be one */
static bool is_socket;        /* standard error */
static unsigned n_left_out;   /* lines that standard error did not take */
static bool uses_fields;      /* of any thread */
static int max_level = WHARF_LOG_INFO;

/* ---- where to ------------------------------------------------------------------------------ */

/* systemd puts the device and inode of the stream that leads to the journal there. */
static bool stderr_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat st;

    if (!stream || sscanf(stream, "%llu:%llu", &device, &inode) != 2 || fstat(2, &st) < 0)
        return false;
    return st.st_dev == device && st.st_ino == inode;
}

/* What is at the other end is somebody else's, so the flag is not set for it, but for a description
 * of our own. */
static void open_without_blocking(void)
{
    struct stat st;

    if (fstat(2, &st) < 0)
        return;
    is_socket = S_ISSOCK(st.st_mode);
    if (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode))
        return;
    int fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (fd >= 0)
        stderr_fd = fd;
}

void wharf_log_init(void)
{
    leads_to_journal = stderr_is_journal();
    open_without_blocking();
}

void wharf_log_use_fields(void)
{
    __atomic_store_n(&uses_fields, leads_to_journal, __ATOMIC_RELAXED);
}

void wharf_log_set_level(enum wharf_log_level level)
{
    __atomic_store_n(&max_level, (int)level, __ATOMIC_RELAXED);
}

/* ---- journal ------------------------------------------------------------------------------- */

struct journal_entry {
    struct iovec iov[8];
    int n;
    char text[LINE_NBYTES + 512];
    size_t n_used;
};

static void entry_add(struct journal_entry *entry, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void entry_add(struct journal_entry *entry, const char *format, ...)
{
    size_t n_free = sizeof(entry->text) - entry->n_used;
    char *at = entry->text + entry->n_used;
    va_list args;

    va_start(args, format);
    int n = vsnprintf(at, n_free, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= n_free)
        return;
    entry->iov[entry->n++] = (struct iovec){at, (size_t)n};
    entry->n_used += (size_t)n + 1;
}

static void write_journal(int level, const struct wharf_log_fields *fields, const char *message)
{
    struct journal_entry entry = {.n = 0};

    entry_add(&entry, "MESSAGE=%s", message);
    entry_add(&entry, "PRIORITY=%d", level);
    entry_add(&entry, "SYSLOG_IDENTIFIER=wharfd");
    if (fields->tenant)
        entry_add(&entry, "WHARF_TENANT=%s", fields->tenant);
    if (fields->connection)
        entry_add(&entry, "WHARF_CONNECTION=%" PRIu64, fields->connection);
    if (fields->session)
        entry_add(&entry, "WHARF_SESSION=%" PRIu64, fields->session);
    if (fields->error)
        entry_add(&entry, "ERRNO=%d", fields->error);
    sd_journal_sendv(entry.iov, entry.n);
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

static bool put(const char *line, size_t nbytes)
{
    ssize_t n = is_socket ? send(2, line, nbytes, MSG_DONTWAIT | MSG_NOSIGNAL)
                          : write(stderr_fd, line, nbytes);

    return n == (ssize_t)nbytes;
}

/* Whether it was taken. */
static bool put_line(int level, const char *message, const char *about)
{
    char line[LINE_NBYTES + 512], begin[32];

    snprintf(begin, sizeof(begin), "wharfd: %s", level_name(level));
    if (leads_to_journal)
        snprintf(begin, sizeof(begin), "<%d>", level);
    int n = snprintf(line, sizeof(line), "%s%s%s\n", begin, message, about);
    return put(line, (size_t)n);
}

static void leave_out(unsigned n)
{
    __atomic_fetch_add(&n_left_out, n, __ATOMIC_RELAXED);
}

/* A reader that has stopped must not stop the daemon, which may hold a lock as well: what is not
 * taken at once is left out. */
static void confess(void)
{
    unsigned n = __atomic_exchange_n(&n_left_out, 0, __ATOMIC_RELAXED);
    char message[64];

    if (n == 0)
        return;
    snprintf(message, sizeof(message), "%u messages were left out: nobody read them", n);
    if (!put_line(WHARF_LOG_WARNING, message, ""))
        leave_out(n);
}

static void write_stderr(int level, const struct wharf_log_fields *fields, const char *message)
{
    char about[256] = "";
    int n = 0;

    if (fields->tenant)
        n += snprintf(about, sizeof(about), " tenant=%.100s", fields->tenant);
    if (fields->connection)
        n += snprintf(about + n, sizeof(about) - (size_t)n, " connection=%" PRIu64,
                      fields->connection);
    if (fields->session)
        n += snprintf(about + n, sizeof(about) - (size_t)n, " session=%" PRIu64, fields->session);
    confess();
    char in_brackets[sizeof(about) + 4] = "";
    if (n > 0)
        snprintf(in_brackets, sizeof(in_brackets), " (%s)", about + 1);
    if (!put_line(level, message, in_brackets))
        leave_out(1);
}

/* ---- messages ------------------------------------------------------------------------------ */

/* Control characters: those of ASCII, and U+0080 to U+009F. */
static bool is_control(const unsigned char *text)
{
    return *text < ' ' || *text == 127 || (text[0] == 0xc2 && text[1] < 0xa0);
}

/* What clients name themselves must not look like another line, steer a terminal, or make the
 * journal take an entry for a blob. */
static void make_plain(char *message)
{
    unsigned char *text = (unsigned char *)message;

    while (*text) {
        int nbytes = wharf_utf8_nbytes(text);
        int n_bad = nbytes == 0 ? 1 : is_control(text) ? nbytes : 0;
        memset(text, '?', (size_t)n_bad);
        text += nbytes ? nbytes : 1;
    }
}

static void log_v(int level, const struct wharf_log_fields *fields, const char *format,
                  va_list args)
{
    static const struct wharf_log_fields none;
    char message[LINE_NBYTES];

    if (!fields)
        fields = &none;
    int n = vsnprintf(message, sizeof(message), format, args);
    if (n < 0)
        return;
    if (fields->error && (size_t)n < sizeof(message))
        snprintf(message + n, sizeof(message) - (size_t)n, ": %s",
                 strerrordesc_np(fields->error) ? strerrordesc_np(fields->error) : "unknown error");
    make_plain(message);
    if (__atomic_load_n(&uses_fields, __ATOMIC_RELAXED))
        write_journal(level, fields, message);
    else
        write_stderr(level, fields, message);
}

static bool is_wanted(enum wharf_log_level level)
{
    return (int)level <= __atomic_load_n(&max_level, __ATOMIC_RELAXED);
}

void wharf_log(enum wharf_log_level level, const struct wharf_log_fields *fields,
               const char *format, ...)
{
    va_list args;

    if (!is_wanted(level))
        return;
    va_start(args, format);
    log_v((int)level, fields, format, args);
    va_end(args);
}

#define CLIENT_WINDOW_NS (5 * (uint64_t)WHARF_NS_PER_S)
#define CLIENT_MESSAGES 20

static struct {
    pthread_mutex_t lock;
    uint64_t window_end;
    unsigned n_written;
    unsigned n_left_out;
} client_limit = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Whether one more message may be written; *ret_left_out is what has to be confessed before. */
static bool client_may_write(unsigned *ret_left_out)
{
    uint64_t now = wharf_now_ns();
    bool may;

    *ret_left_out = 0;
    pthread_mutex_lock(&client_limit.lock);
    if (now >= client_limit.window_end) {
        *ret_left_out = client_limit.n_left_out;
        client_limit.window_end = now + CLIENT_WINDOW_NS;
        client_limit.n_written = 0;
        client_limit.n_left_out = 0;
    }
    may = client_limit.n_written < CLIENT_MESSAGES;
    if (may)
        client_limit.n_written++;
    else
        client_limit.n_left_out++;
    pthread_mutex_unlock(&client_limit.lock);
    return may;
}

void wharf_log_client(enum wharf_log_level level, const struct wharf_log_fields *fields,
                      const char *format, ...)
{
    unsigned left_out;
    va_list args;

    if (!is_wanted(level) || !client_may_write(&left_out))
        return;
    if (left_out)
        wharf_log(WHARF_LOG_NOTICE, NULL, "%u messages about clients were left out", left_out);
    va_start(args, format);
    log_v((int)level, fields, format, args);
    va_end(args);
}
