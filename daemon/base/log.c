/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log.c: formats messages, limits their number, and passes them to a thread that writes them.
 *
 * The journal, or the reader of standard error, may stop reading.  So threads that serve clients
 * only put messages into a queue, which never blocks, and one thread of its own writes them.
 * Messages that find the queue full are counted, and a later message reports the count.
 */
#include "daemon/base/log.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/log_level.h"
#include "daemon/base/log_queue.h"
#include "daemon/base/log_sink.h"
#include "proto/utf8.h"

/* How long the daemon's end waits for messages to be written. */
#define STOP_NS ((uint64_t)WHARF_NS_PER_S)

/* DIRECT: before the thread runs, callers write messages.  ENDED: after its end, messages are
 * dropped. */
enum way { DIRECT, QUEUED, ENDED };

static enum way way;
static int max_level = WHARF_LOG_INFO;
static struct wharf_log_counts counts; /* updated by all threads */
static unsigned n_unsaid;              /* dropped messages that are not reported yet */

static struct {
    struct wharf_log_queue queue;
    sem_t wanted; /* posted at least once for each message */
    sem_t ended;
    pthread_t thread;
    bool stop;
} writer;

/* Locks of this thread under which no system call may happen.  After the last one it wakes the
 * writer, if it owes that. */
static __thread unsigned n_holds;
static __thread bool owes_wake;

/* ---- the writer ---------------------------------------------------------------------------- */

static void wake_writer(void)
{
    if (n_holds > 0)
        owes_wake = true;
    else
        sem_post(&writer.wanted);
}

void wharf_log_hold(void)
{
    n_holds++;
}

void wharf_log_let_go(void)
{
    if (--n_holds > 0 || !owes_wake)
        return;
    owes_wake = false;
    sem_post(&writer.wanted);
}

static void leave_out(unsigned n)
{
    __atomic_fetch_add(&counts.n_not_taken, n, __ATOMIC_RELAXED);
    __atomic_fetch_add(&n_unsaid, n, __ATOMIC_RELAXED);
}

static void write_entry(const struct wharf_log_entry *entry)
{
    if (wharf_log_sink_write(entry))
        __atomic_fetch_add(&counts.n_written, 1, __ATOMIC_RELAXED);
    else
        leave_out(1);
}

static void write_count(int level, unsigned n, const char *what)
{
    struct wharf_log_entry entry = {.level = level};

    snprintf(entry.message, sizeof(entry.message), "%u %s", n, what);
    write_entry(&entry);
}

/* Reports dropped messages.  If the report is dropped too, it counts as another one. */
static void confess(void)
{
    unsigned n = __atomic_exchange_n(&n_unsaid, 0, __ATOMIC_RELAXED);

    if (n > 0)
        write_count(WHARF_LOG_WARNING, n, "messages were left out: nobody read them");
}

static void put_entry(const struct wharf_log_entry *entry)
{
    switch (__atomic_load_n(&way, __ATOMIC_ACQUIRE)) {
    case DIRECT:
        write_entry(entry);
        return;
    case QUEUED:
        if (wharf_log_queue_put(&writer.queue, entry)) {
            wake_writer();
            return;
        }
        break;
    case ENDED:
        break;
    }
    leave_out(1);
}

/* ---- messages about clients ---------------------------------------------------------------- */

#define CLIENT_WINDOW_NS (5 * (uint64_t)WHARF_NS_PER_S)
#define TENANT_MESSAGES 20
/* Fewer than the queue holds, since they may all come at once. */
#define ALL_MESSAGES 100

/* Counters by a hash of the tenant's name, so several tenants may share one.  Messages about no
 * tenant have the first counter. */
#define N_PLACES 64

static struct {
    pthread_mutex_t lock;
    uint64_t window_end;
    unsigned n_written[N_PLACES], n_all_written;
    unsigned n_left_out; /* not reported yet */
} client_limit = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* FNV-1a. */
static unsigned place_of(const char *tenant)
{
    uint32_t hash = 2166136261u;

    if (!tenant)
        return 0;
    for (; *tenant; tenant++)
        hash = (hash ^ (unsigned char)*tenant) * 16777619u;
    return 1 + (hash ^ hash >> 16) % (N_PLACES - 1);
}

/* Limits the messages about clients.  One tenant's clients cannot keep messages about others
 * out. */
static bool client_may_write(const char *tenant)
{
    unsigned *n_written = &client_limit.n_written[place_of(tenant)];
    uint64_t now = wharf_now_ns();
    bool is_first = false;

    pthread_mutex_lock(&client_limit.lock);
    if (now >= client_limit.window_end) {
        client_limit.window_end = now + CLIENT_WINDOW_NS;
        memset(client_limit.n_written, 0, sizeof(client_limit.n_written));
        client_limit.n_all_written = 0;
    }
    bool may = *n_written < TENANT_MESSAGES && client_limit.n_all_written < ALL_MESSAGES;
    *n_written += may;
    client_limit.n_all_written += may;
    if (!may)
        is_first = client_limit.n_left_out++ == 0;
    pthread_mutex_unlock(&client_limit.lock);
    if (!may)
        __atomic_fetch_add(&counts.n_over_limit, 1, __ATOMIC_RELAXED);
    /* The writer reports the count when the window ends. */
    if (is_first && __atomic_load_n(&way, __ATOMIC_ACQUIRE) == QUEUED)
        wake_writer();
    return may;
}

/* Takes the number of messages left out, if their window is over or if until_now.  *ret_due_ns is
 * when the window of the rest ends. */
static unsigned take_left_out(bool until_now, uint64_t *ret_due_ns)
{
    uint64_t now = wharf_now_ns();
    unsigned n = 0;

    pthread_mutex_lock(&client_limit.lock);
    if (until_now || now >= client_limit.window_end) {
        n = client_limit.n_left_out;
        client_limit.n_left_out = 0;
    }
    *ret_due_ns = client_limit.n_left_out ? client_limit.window_end : WHARF_NEVER;
    pthread_mutex_unlock(&client_limit.lock);
    return n;
}

/* Returns when to call it again. */
static uint64_t tell_left_out(bool until_now)
{
    uint64_t due_ns;
    unsigned n = take_left_out(until_now, &due_ns);

    if (n > 0)
        write_count(WHARF_LOG_NOTICE, n, "messages about clients were left out");
    return due_ns;
}

/* ---- the writer's thread ------------------------------------------------------------------- */

/* Whether the semaphore was posted.  False also after an interruption. */
static bool wait_until(sem_t *semaphore, uint64_t due_ns)
{
    struct timespec until = {.tv_sec = (time_t)(due_ns / WHARF_NS_PER_S),
                             .tv_nsec = (long)(due_ns % WHARF_NS_PER_S)};

    if (due_ns == WHARF_NEVER)
        return sem_wait(semaphore) == 0;
    return sem_clockwait(semaphore, CLOCK_MONOTONIC, &until) == 0;
}

static void write_queued(void)
{
    const struct wharf_log_entry *entry;

    while ((entry = wharf_log_queue_first(&writer.queue))) {
        confess();
        write_entry(entry);
        wharf_log_queue_drop_first(&writer.queue);
    }
    confess();
}

static void *write_all(void *data)
{
    uint64_t due_ns = WHARF_NEVER;
    bool stop = false;

    pthread_setname_np(pthread_self(), "wharf-log");
    while (!stop) {
        wait_until(&writer.wanted, due_ns);
        stop = __atomic_load_n(&writer.stop, __ATOMIC_ACQUIRE);
        write_queued();
        due_ns = tell_left_out(stop);
    }
    sem_post(&writer.ended);
    return data;
}

int wharf_log_start(void)
{
    wharf_log_queue_init(&writer.queue);
    writer.stop = false;
    if (sem_init(&writer.wanted, 0, 0) < 0 || sem_init(&writer.ended, 0, 0) < 0)
        return -errno;
    int r = pthread_create(&writer.thread, NULL, write_all, NULL);
    if (r != 0)
        return -r;
    __atomic_store_n(&way, QUEUED, __ATOMIC_RELEASE);
    return 0;
}

/* If the writer still waits, it is left behind until the process ends, with what it uses. */
void wharf_log_stop(void)
{
    if (__atomic_load_n(&way, __ATOMIC_ACQUIRE) != QUEUED)
        return;
    __atomic_store_n(&way, ENDED, __ATOMIC_RELEASE);
    __atomic_store_n(&writer.stop, true, __ATOMIC_RELEASE);
    sem_post(&writer.wanted);
    if (wait_until(&writer.ended, wharf_now_ns() + STOP_NS))
        pthread_join(writer.thread, NULL);
    else
        pthread_detach(writer.thread);
}

void wharf_log_read_counts(struct wharf_log_counts *ret_counts)
{
    ret_counts->n_written = __atomic_load_n(&counts.n_written, __ATOMIC_RELAXED);
    ret_counts->n_over_limit = __atomic_load_n(&counts.n_over_limit, __ATOMIC_RELAXED);
    ret_counts->n_not_taken = __atomic_load_n(&counts.n_not_taken, __ATOMIC_RELAXED);
}

/* ---- messages ------------------------------------------------------------------------------ */

void wharf_log_init(void)
{
    wharf_log_sink_init();
}

void wharf_log_use_fields(void)
{
    wharf_log_sink_use_fields();
}

void wharf_log_set_level(enum wharf_log_level level)
{
    __atomic_store_n(&max_level, (int)level, __ATOMIC_RELAXED);
}

/* Whether a control character begins here: one of ASCII, or U+0080 to U+009F. */
static bool is_control(const unsigned char *text)
{
    return *text < ' ' || *text == 127 || (text[0] == 0xc2 && text[1] < 0xa0);
}

/* Replaces what clients may put into names: newlines, terminal sequences, and bytes for which the
 * journal would store the entry as binary data. */
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
    struct wharf_log_entry entry = {.level = level};
    char *message = entry.message;

    int n = vsnprintf(message, sizeof(entry.message), format, args);
    if (n < 0)
        return;
    if (fields) {
        entry.error = fields->error;
        entry.connection = fields->connection;
        entry.session = fields->session;
        snprintf(entry.tenant, sizeof(entry.tenant), "%s", fields->tenant ? fields->tenant : "");
    }
    if (entry.error && (size_t)n < sizeof(entry.message))
        snprintf(message + n, sizeof(entry.message) - (size_t)n, ": %s",
                 strerrordesc_np(entry.error) ? strerrordesc_np(entry.error) : "unknown error");
    make_plain(message);
    put_entry(&entry);
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

void wharf_log_client(enum wharf_log_level level, const struct wharf_log_fields *fields,
                      const char *format, ...)
{
    va_list args;

    if (!is_wanted(level) || !client_may_write(fields ? fields->tenant : NULL))
        return;
    va_start(args, format);
    log_v((int)level, fields, format, args);
    va_end(args);
}
