/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrape.c: serves scrapes of statistics over HTTP.
 *
 * Each scrape has one time limit for everything.  All of them are one party of the loop, and send
 * at most TURN_NBYTES in a turn.  Places are limited in total and for each user; a user's newest
 * scrape replaces the oldest one.
 */
#include "daemon/control/scrape.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/clock.h"
#include "daemon/base/fair_queue.h"
#include "daemon/base/list.h"
#include "daemon/base/log.h"
#include "daemon/base/log_level.h"
#include "daemon/base/loop.h"
#include "daemon/control/observer.h"
#include "daemon/control/pass_rights.h"
#include "daemon/control/served_path.h"
#include "daemon/control/server.h"
#include "daemon/control/stats_maker.h"
#include "daemon/control/stats_text.h"
#include "daemon/disposable/closer_process.h"

/* Connections at a time, in total and for one user; others wait to be accepted, or replace the
 * user's oldest one. */
#define MOST_SCRAPES 128
#define MOST_SCRAPES_OF_USER 32
#define BACKLOG 16

/* Of these, scrapes that have sent a request and are served, each of which can hold a text of its
 * own; others wait.  Silent ones do not count. */
#define MOST_SERVED 8
#define MOST_SERVED_OF_USER 2

/* The time limit for a scrape, and for its request from the first to the last byte. */
#define MOST_NS (10 * (uint64_t)WHARF_NS_PER_S)
#define MOST_REQUEST_NS ((uint64_t)WHARF_NS_PER_S)

/* The most bytes sent in one turn. */
#define TURN_NBYTES 65536u

/* The most reads that empty a client's socket. */
#define MOST_READS 64

/* How long to wait when there are no descriptors for accepting, or none should be accepted. */
#define PAUSE_NS (100 * (uint64_t)WHARF_NS_PER_MS)

struct wharf_scraper {
    struct wharf_server *server;
    struct wharf_source source;
    struct wharf_fair_party *party; /* the party of all scrapes, and of accepting them */
    struct sockaddr_un address;
    dev_t device; /* identify the path as this daemon's */
    ino_t inode;
    struct wharf_list scrapes; /* by age, the oldest first */
    unsigned n_scrapes;
    unsigned n_served; /* of these */
    struct wharf_timer pause_timer;
    bool is_paused;
    bool is_ending;
};

struct scrape {
    struct wharf_scraper *scraper;
    struct wharf_source source;
    struct wharf_timer timer;
    struct wharf_list link;
    struct wharf_list stats_link; /* in the list of scrapes that wait for a text */
    uint64_t until_ns;
    uid_t uid;
    bool has_asked; /* its request has arrived, so it waits or is served */
    bool is_late;   /* its request is not, and has had its time */
    bool is_served;
    char request[4096];
    size_t n_request;
    struct wharf_stats_text *text;
    size_t n_sent; /* of the text */
};

/* Starts or stops accepting, as the limits require.  A closed socket accepts no more. */
static void update(struct wharf_scraper *scraper)
{
    bool may = scraper->n_scrapes < MOST_SCRAPES && !scraper->is_paused;

    if (scraper->source.fd >= 0)
        wharf_loop_want(scraper->server->loop, &scraper->source, may ? POLLIN : 0);
}

static struct scrape *scrape_of(struct wharf_list *link)
{
    return WHARF_LIST_ENTRY(link, struct scrape, link);
}

/* ---- turns --------------------------------------------------------------------------------- */

/* Whether a user's limit allows to serve the scrape. */
static bool may_be_served(struct wharf_scraper *scraper, const struct scrape *scrape)
{
    unsigned n_of_user = 0;

    if (!scrape->has_asked || scrape->is_served)
        return false;
    WHARF_LIST_FOR(link, &scraper->scrapes)
    n_of_user += scrape_of(link)->is_served && scrape_of(link)->uid == scrape->uid;
    return n_of_user < MOST_SERVED_OF_USER;
}

static struct scrape *next_to_serve(struct wharf_scraper *scraper)
{
    WHARF_LIST_FOR(link, &scraper->scrapes)
    if (may_be_served(scraper, scrape_of(link)))
        return scrape_of(link);
    return NULL;
}

static void answer(struct wharf_list *link, struct wharf_stats_text *text);

static void serve(struct wharf_scraper *scraper)
{
    struct scrape *scrape;

    while (!scraper->is_ending && scraper->n_served < MOST_SERVED &&
           (scrape = next_to_serve(scraper))) {
        scrape->is_served = true;
        scraper->n_served++;
        wharf_stats_ask_text(scraper->server, &scrape->stats_link, answer);
    }
}

/* ---- the end of one ------------------------------------------------------------------------ */

/* Peeks at the received bytes, without touching descriptors. */
static ssize_t look(int fd, char *bytes, size_t nbytes, bool *ret_has_fds)
{
    struct iovec iov = {bytes, nbytes};
    struct msghdr header = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t n = recvmsg(fd, &header, MSG_PEEK | MSG_DONTWAIT);

    *ret_has_fds = header.msg_flags & MSG_CTRUNC;
    return n < 0 ? -errno : n;
}

/* Whether the socket, which was shut down, contains nothing that could hang its close. */
static bool is_empty(int fd)
{
    char bytes[1024];
    bool has_fds;

    for (unsigned i = 0; i < MOST_READS; i++) {
        ssize_t n = look(fd, bytes, sizeof(bytes), &has_fds);
        if (has_fds)
            return false;
        if (n == -ECONNRESET)
            continue;
        if (n <= 0)
            return true;
        recv(fd, bytes, (size_t)n, MSG_DONTWAIT);
    }
    return false;
}

static void close_socket(struct wharf_scraper *scraper, int fd)
{
    shutdown(fd, SHUT_RDWR);
    if (is_empty(fd))
        wharf_close_fd(fd);
    else
        wharf_closer_process_take(scraper->server->closer_process, fd, NULL, NULL);
}

static void scrape_free(struct scrape *scrape)
{
    struct wharf_scraper *scraper = scrape->scraper;
    struct wharf_loop *loop = scraper->server->loop;
    int fd = scrape->source.fd;

    wharf_loop_remove(loop, &scrape->source);
    wharf_timer_clear(loop, &scrape->timer);
    wharf_list_remove(&scrape->stats_link);
    wharf_list_remove(&scrape->link);
    if (scrape->text) {
        scrape->text->n_references--;
        wharf_stats_text_free(scrape->text);
    }
    close_socket(scraper, fd);
    scraper->n_served -= scrape->is_served;
    free(scrape);
    scraper->n_scrapes--;
    update(scraper);
    serve(scraper);
}

static void on_time(struct wharf_timer *timer)
{
    scrape_free(WHARF_LIST_ENTRY(timer, struct scrape, timer));
}

static void limit(struct scrape *scrape)
{
    wharf_timer_set(scrape->scraper->server->loop, &scrape->timer, scrape->until_ns, on_time);
}

/* ---- talking ------------------------------------------------------------------------------- */

/* Short enough for any socket that was not written to yet. */
static bool say(struct scrape *scrape, const char *text)
{
    size_t nbytes = strlen(text);

    return send(scrape->source.fd, text, nbytes, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)nbytes;
}

static void send_some(struct scrape *scrape)
{
    const struct wharf_stats_text *text = scrape->text;
    size_t n_left = text->nbytes - scrape->n_sent;
    ssize_t n = send(scrape->source.fd, text->bytes + scrape->n_sent,
                     n_left < TURN_NBYTES ? n_left : TURN_NBYTES, MSG_DONTWAIT | MSG_NOSIGNAL);

    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        scrape_free(scrape);
        return;
    }
    scrape->n_sent += n > 0 ? (size_t)n : 0;
    if (scrape->n_sent == text->nbytes)
        scrape_free(scrape);
}

static void answer(struct wharf_list *link, struct wharf_stats_text *text)
{
    struct scrape *scrape = WHARF_LIST_ENTRY(link, struct scrape, stats_link);

    if (!text) {
        scrape_free(scrape);
        return;
    }
    text->n_references++;
    scrape->text = text;
    if (wharf_loop_want(scrape->scraper->server->loop, &scrape->source, POLLOUT) < 0)
        scrape_free(scrape);
}

/* Sends the HTTP head at once, which shows that the daemon lives.  The text follows later. */
static void take_request(struct scrape *scrape)
{
    struct wharf_loop *loop = scrape->scraper->server->loop;

    if (strncmp(scrape->request, "GET ", 4) != 0) {
        say(scrape, "HTTP/1.0 405 Method Not Allowed\r\nAllow: GET\r\n\r\n");
        scrape_free(scrape);
        return;
    }
    if (!say(scrape, "HTTP/1.0 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\n"
                     "Connection: close\r\n\r\n") ||
        wharf_loop_want(loop, &scrape->source, POLLRDHUP) < 0) {
        scrape_free(scrape);
        return;
    }
    scrape->has_asked = true;
    limit(scrape);
    serve(scrape->scraper);
}

static bool is_whole(const struct scrape *scrape)
{
    return strstr(scrape->request, "\r\n\r\n") || strstr(scrape->request, "\n\n");
}

static void receive(struct scrape *scrape);

/* The rest may have arrived while this thread had no processor. */
static void on_request_time(struct wharf_timer *timer)
{
    struct scrape *scrape = WHARF_LIST_ENTRY(timer, struct scrape, timer);

    scrape->is_late = true;
    receive(scrape);
}

/* The request as a whole has a time limit, so that single bytes do not prolong it. */
static void limit_request(struct scrape *scrape)
{
    uint64_t end_ns = wharf_now_ns() + MOST_REQUEST_NS;

    if (end_ns < scrape->until_ns)
        wharf_timer_set(scrape->scraper->server->loop, &scrape->timer, end_ns, on_request_time);
}

static void receive(struct scrape *scrape)
{
    char *at = scrape->request + scrape->n_request;
    size_t n_free = sizeof(scrape->request) - 1 - scrape->n_request;
    bool has_fds;
    ssize_t n = look(scrape->source.fd, at, n_free, &has_fds);

    if ((n == -EAGAIN || n == -EINTR) && !scrape->is_late)
        return;
    if (has_fds || n <= 0 || recv(scrape->source.fd, at, (size_t)n, MSG_DONTWAIT) != n) {
        scrape_free(scrape);
        return;
    }
    if (scrape->n_request == 0)
        limit_request(scrape);
    scrape->n_request += (size_t)n;
    at[n] = 0;
    if (is_whole(scrape))
        take_request(scrape);
    else if (scrape->is_late || scrape->n_request == sizeof(scrape->request) - 1)
        scrape_free(scrape);
}

/* A client that only shuts down its writing side still reads; one that is gone shows at the next
 * write. */
static void on_ready(struct wharf_source *source, uint32_t ready)
{
    struct scrape *scrape = WHARF_LIST_ENTRY(source, struct scrape, source);

    if (scrape->text)
        send_some(scrape);
    else if (source->wanted == POLLIN)
        receive(scrape);
    else if (ready & (POLLHUP | POLLERR))
        scrape_free(scrape);
    else
        wharf_loop_want(scrape->scraper->server->loop, source, 0);
}

/* ---- accepting ----------------------------------------------------------------------------- */

/* A user at the limit loses the oldest scrape. */
static void make_room(struct wharf_scraper *scraper, uid_t uid)
{
    struct scrape *oldest = NULL;
    unsigned n_of_user = 0;

    WHARF_LIST_FOR(link, &scraper->scrapes)
    {
        struct scrape *scrape = scrape_of(link);
        if (scrape->uid != uid)
            continue;
        oldest = oldest ? oldest : scrape;
        n_of_user++;
    }
    if (n_of_user >= MOST_SCRAPES_OF_USER)
        scrape_free(oldest);
}

static int scrape_new(struct wharf_scraper *scraper, int fd, uid_t uid)
{
    struct scrape *scrape = calloc(1, sizeof(*scrape));
    struct wharf_loop *loop = scraper->server->loop;

    if (!scrape)
        return -ENOMEM;
    make_room(scraper, uid);
    scrape->scraper = scraper;
    scrape->uid = uid;
    wharf_list_init(&scrape->stats_link);
    int r = wharf_loop_add_of(loop, &scrape->source, fd, POLLIN, on_ready, scraper->party);
    if (r < 0) {
        free(scrape);
        return r;
    }
    wharf_list_append(&scraper->scrapes, &scrape->link);
    scrape->until_ns = wharf_now_ns() + MOST_NS;
    limit(scrape);
    scraper->n_scrapes++;
    update(scraper);
    return 0;
}

static void refuse(struct wharf_scraper *scraper, int fd)
{
    static const char text[] =
        "HTTP/1.0 403 Forbidden\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
        "only root, the daemon's own user and observer_group of wharfd.conf may read this\n";

    (void)!send(fd, text, sizeof(text) - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    close_socket(scraper, fd);
}

static void end_pause(struct wharf_timer *timer)
{
    struct wharf_scraper *scraper = WHARF_LIST_ENTRY(timer, struct wharf_scraper, pause_timer);

    scraper->is_paused = false;
    update(scraper);
}

static void pause_accepting(struct wharf_scraper *scraper)
{
    scraper->is_paused = true;
    update(scraper);
    wharf_timer_set(scraper->server->loop, &scraper->pause_timer, wharf_now_ns() + PAUSE_NS,
                    end_pause);
}

static void on_connect(struct wharf_source *source, uint32_t ready)
{
    struct wharf_scraper *scraper = WHARF_LIST_ENTRY(source, struct wharf_scraper, source);
    struct ucred peer;
    socklen_t nbytes = sizeof(peer);

    (void)ready;
    /* On kernels where refused clients can send descriptors, closing can hang. */
    if (wharf_closer_process_is_full(scraper->server->closer_process)) {
        pause_accepting(scraper);
        return;
    }
    int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            pause_accepting(scraper);
        return;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &nbytes) < 0 ||
        !wharf_observer_is(&scraper->server->observers, fd, &peer))
        refuse(scraper, fd);
    else if (scrape_new(scraper, fd, peer.uid) < 0)
        close_socket(scraper, fd);
}

/* ---- the socket ---------------------------------------------------------------------------- */

/* Finds the socket's path; false: there is none, which is logged unless the configuration says so.
 * The lock is beside the main socket, even if that was handed over. */
static bool find_path(const struct wharf_server *server, char path[], size_t nbytes)
{
    const char *setting = server->config.metrics_socket, *folder = getenv("RUNTIME_DIRECTORY");
    int n;

    if (strcmp(setting, "none") == 0)
        return false;
    if (strcmp(setting, "auto") != 0)
        n = snprintf(path, nbytes, "%s", setting);
    else if (folder && folder[0])
        n = snprintf(path, nbytes, "%.*s/metrics.sock", (int)strcspn(folder, ":"), folder);
    else
        n = snprintf(path, nbytes, "%.*s.metrics",
                     (int)(strlen(server->promise_path) - strlen(".lock")), server->promise_path);
    if (n >= 0 && (size_t)n < nbytes)
        return true;
    wharf_log(WHARF_LOG_WARNING, NULL,
              "there is no socket for metrics: its path is too long; [daemon] metrics_socket sets "
              "another");
    return false;
}

/* Everybody may connect; then the daemon checks whether the client is an observer. */
static int make_socket(struct wharf_scraper *scraper)
{
    const char *path = scraper->address.sun_path;
    struct stat st;

    if (wharf_path_other_kind(path, SOCK_STREAM) ||
        wharf_path_is_served(&scraper->address, SOCK_STREAM))
        return -EADDRINUSE;
    if (lstat(path, &st) == 0)
        unlink(path);
    WHARF_CLEANUP_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    wharf_pass_rights(fd, false);
    if (bind(fd, (const struct sockaddr *)&scraper->address, sizeof(scraper->address)) < 0)
        return -errno;
    if (chmod(path, 0666) < 0 || lstat(path, &st) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    scraper->device = st.st_dev;
    scraper->inode = st.st_ino;
    int r = wharf_loop_add_of(scraper->server->loop, &scraper->source, fd, POLLIN, on_connect,
                              scraper->party);
    if (r == 0)
        wharf_steal_fd(&fd);
    return r;
}

static void log_no_socket(const char *path, int r)
{
    const char *kind = wharf_path_other_kind(path, SOCK_STREAM);

    if (kind)
        wharf_log(WHARF_LOG_WARNING, NULL,
                  "there is no socket for metrics: %s is %s, which is left as it is; [daemon] "
                  "metrics_socket sets another path",
                  path, kind);
    else
        wharf_log(WHARF_LOG_WARNING, &(struct wharf_log_fields){.error = -r},
                  "there is no socket for metrics at %s", path);
}

int wharf_scraper_new(struct wharf_server *server, struct wharf_scraper **ret_scraper)
{
    struct wharf_scraper *scraper = calloc(1, sizeof(*scraper));

    if (!scraper)
        return -ENOMEM;
    scraper->server = server;
    scraper->source.fd = -1;
    scraper->address.sun_family = AF_UNIX;
    wharf_list_init(&scraper->scrapes);
    scraper->party = wharf_fair_party_new();
    if (!scraper->party) {
        free(scraper);
        return -ENOMEM;
    }
    *ret_scraper = scraper;
    if (!find_path(server, scraper->address.sun_path, sizeof(scraper->address.sun_path)))
        return 0;
    int r = make_socket(scraper);
    if (r < 0) {
        scraper->source.fd = -1;
        log_no_socket(scraper->address.sun_path, r);
    }
    return 0;
}

void wharf_scraper_close(struct wharf_scraper *scraper)
{
    struct stat st;

    if (!scraper || scraper->source.fd < 0)
        return;
    if (lstat(scraper->address.sun_path, &st) == 0 && st.st_dev == scraper->device &&
        st.st_ino == scraper->inode)
        unlink(scraper->address.sun_path);
    wharf_loop_remove(scraper->server->loop, &scraper->source);
    wharf_timer_clear(scraper->server->loop, &scraper->pause_timer);
    scraper->source.fd = wharf_close_fd(scraper->source.fd);
}

void wharf_scraper_free(struct wharf_scraper *scraper)
{
    if (!scraper)
        return;
    wharf_scraper_close(scraper);
    scraper->is_ending = true;
    WHARF_LIST_FOR(link, &scraper->scrapes)
    scrape_free(scrape_of(link));
    wharf_fair_party_unref(scraper->party);
    free(scraper);
}
