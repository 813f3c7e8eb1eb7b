/* SPDX-License-Identifier: Apache-2.0 */
/* test_serve.c: one life of the test daemon: connections and messages. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "proto/control.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_serve.h"
#include "tests/lib/test_session.h"

enum { MAX_CONNECTIONS = 64 };

#define DONE_WORDS ((uint64_t)1 << WHARF__FEATURE__FEATURE_DONE_WORDS)
#define MARKS ((uint64_t)1 << WHARF__FEATURE__FEATURE_MARKS)

struct server {
    struct test_daemon *daemon;
    int listen_fd;
    uint64_t generation;
    unsigned n;
    struct test_session *sessions[MAX_CONNECTIONS];
    struct wharf_control_receiver receiver;
    struct wharf_control_memory memory;
};

/* ---- replies ------------------------------------------------------------------------------- */

static void send_reply(struct test_session *session, Wharf__Reply *reply, const int *fds,
                       size_t n_fds)
{
    uint8_t packet[WHARF_CONTROL_MAX_NBYTES];
    size_t nbytes;

    test_daemon_step(session->daemon);
    if (wharf_control_pack_reply(reply, packet, &nbytes) == 0)
        wharf_control_send(session->socket, packet, nbytes, fds, n_fds, MSG_DONTWAIT);
    test_daemon_step(session->daemon);
}

static void send_error(struct test_session *session, uint32_t id, int code, const char *text)
{
    Wharf__Error error = WHARF__ERROR__INIT;
    Wharf__Reply reply = WHARF__REPLY__INIT;

    error.code = code;
    error.text = (char *)text;
    reply.id = id;
    reply.body_case = WHARF__REPLY__BODY_ERROR;
    reply.error = &error;
    send_reply(session, &reply, NULL, 0);
}

static void send_done(struct test_session *session, uint32_t id)
{
    Wharf__Done done = WHARF__DONE__INIT;
    Wharf__Reply reply = WHARF__REPLY__INIT;
    int fd = 0;

    if (test_daemon_does(session->daemon, TEST_MISDEED_DONE_NEVER))
        return;
    if (test_daemon_does(session->daemon, TEST_MISDEED_DONE_GARBAGE)) {
        wharf_control_send(session->socket, (const uint8_t *)"\xff\xff\xff", 3, NULL, 0, 0);
        return;
    }
    reply.id = id;
    reply.body_case = WHARF__REPLY__BODY_DONE;
    reply.done = &done;
    send_reply(session, &reply, &fd, test_daemon_does(session->daemon, TEST_MISDEED_DONE_WITH_FD));
}

/* ---- Hello --------------------------------------------------------------------------------- */

/* Returns whether the misdeed was the answer. */
static int misbehave_at_hello(struct test_session *session, uint32_t id)
{
    static const uint8_t long_packet[WHARF_CONTROL_MAX_NBYTES + 1];
    const struct test_daemon *daemon = session->daemon;
    uint8_t wake = 0;
    int fd = 0;

    switch (daemon->misdeed) {
    case TEST_MISDEED_HELLO_SILENT:
        return 1;
    case TEST_MISDEED_HELLO_HANG_UP:
        shutdown(session->socket, SHUT_RDWR);
        return 1;
    case TEST_MISDEED_HELLO_REFUSED:
        send_error(session, id, EDQUOT, "too many\x1b[2J connections\n\xff");
        return 1;
    case TEST_MISDEED_HELLO_BAD_CODE:
        send_error(session, id, -5, "");
        return 1;
    case TEST_MISDEED_HELLO_GARBAGE:
        wharf_control_send(session->socket, (const uint8_t *)"\x08\xff", 2, NULL, 0, 0);
        return 1;
    case TEST_MISDEED_HELLO_TOO_LONG:
        wharf_control_send(session->socket, long_packet, sizeof(long_packet), NULL, 0, 0);
        return 1;
    case TEST_MISDEED_HELLO_WRONG_BODY:
        send_done(session, id);
        return 1;
    case TEST_MISDEED_HELLO_WAKE_WITH_FD:
        wharf_control_send(session->socket, &wake, 1, &fd, 1, 0);
        return 0;
    default:
        return 0;
    }
}

static void fill_limits(const struct test_daemon *daemon, Wharf__Limits *limits)
{
    wharf__limits__init(limits);
    limits->max_entries = daemon->max_entries;
    limits->max_arena_nbytes = daemon->max_arena_nbytes;
    limits->max_memory_nbytes = UINT64_MAX;
    limits->max_regions = TEST_N_REGIONS - 1;
    limits->max_job_nbytes = daemon->max_job_nbytes;
    limits->max_batch_chunks = 1 << 16;
    limits->max_jobs = 1 << 20;
    limits->max_connections = MAX_CONNECTIONS;
}

static void answer_hello(struct server *server, struct test_session *session, uint32_t id,
                         const Wharf__HelloRequest *request)
{
    static uint32_t codecs[] = {0, 1, 2, 3}, engines[] = {WHARF_ENGINE_CPU};
    const struct test_daemon *daemon = server->daemon;
    Wharf__HelloReply hello = WHARF__HELLO_REPLY__INIT;
    Wharf__Reply reply = WHARF__REPLY__INIT;
    Wharf__Limits limits;
    int fd = 0;

    fill_limits(daemon, &limits);
    hello.version = test_daemon_does(daemon, TEST_MISDEED_HELLO_VERSION) ? 2 : 1;
    session->has_marks = !daemon->has_no_marks && (request->optional_features & MARKS);
    hello.features = daemon->has_gpu ? request->optional_features & 1 : 0;
    hello.features |= session->has_marks ? MARKS : 0;
    session->has_words = !daemon->has_no_words && (request->optional_features & DONE_WORDS);
    hello.features |= session->has_words ? DONE_WORDS : 0;
    if (test_daemon_does(daemon, TEST_MISDEED_HELLO_FEATURES))
        hello.features = UINT64_MAX;
    hello.generation = server->generation;
    hello.daemon_version = (char *)"test";
    hello.codecs = codecs;
    hello.n_codecs = 4;
    hello.engines = engines;
    hello.n_engines = 1;
    hello.limits = test_daemon_does(daemon, TEST_MISDEED_HELLO_NO_LIMITS) ? NULL : &limits;
    reply.id = id + test_daemon_does(daemon, TEST_MISDEED_HELLO_WRONG_ID);
    reply.body_case = WHARF__REPLY__BODY_HELLO;
    reply.hello = &hello;
    send_reply(session, &reply, &fd, test_daemon_does(daemon, TEST_MISDEED_HELLO_WITH_FD));
}

/* ---- other requests ------------------------------------------------------------------------ */

static void answer_open_queue(struct server *server, struct test_session *session, uint32_t id,
                              const Wharf__OpenQueueRequest *request)
{
    const struct test_daemon *daemon = server->daemon;
    Wharf__OpenQueueReply opened = WHARF__OPEN_QUEUE_REPLY__INIT;
    Wharf__Reply reply = WHARF__REPLY__INIT;
    int fds[4] = {-1, -1, -1, 0};
    size_t n_fds = request->bring_arena ? 2 : 3;

    if (session->n_entries || server->receiver.n_fds != (size_t)request->bring_arena ||
        test_daemon_does(daemon, TEST_MISDEED_QUEUE_REFUSED)) {
        send_error(session, id, session->n_entries ? EBUSY : ENOMEM, "no memory is left");
        return;
    }
    if (request->engine == WHARF_ENGINE_GPU || request->engine == WHARF_ENGINE_SIMT) {
        send_error(session, id, EOPNOTSUPP, "that engine is not there");
        return;
    }
    test_session_open(session, request->n_entries, request->arena_nbytes,
                      request->bring_arena ? server->receiver.fds[0] : -1, fds);
    opened.n_entries = request->n_entries << test_daemon_does(daemon, TEST_MISDEED_QUEUE_ENTRIES);
    opened.arena_nbytes =
        request->arena_nbytes - test_daemon_does(daemon, TEST_MISDEED_QUEUE_SMALL_ARENA);
    reply.id = id;
    reply.body_case = WHARF__REPLY__BODY_OPEN_QUEUE;
    reply.open_queue = &opened;
    if (test_daemon_does(daemon, TEST_MISDEED_QUEUE_NO_FDS))
        n_fds = 0;
    n_fds -= (size_t)test_daemon_does(daemon, TEST_MISDEED_QUEUE_FEW_FDS);
    if (test_daemon_does(daemon, TEST_MISDEED_QUEUE_MANY_FDS)) {
        n_fds = 4;
        fds[2] = fds[2] < 0 ? 0 : fds[2];
    }
    send_reply(session, &reply, fds, n_fds);
    for (int i = 0; i < 3; i++)
        if (fds[i] > 2 && fds[i] != session->arena_fd)
            close(fds[i]);
}

static void answer_register(struct server *server, struct test_session *session, uint32_t id,
                            const Wharf__RegisterMemoryRequest *request)
{
    int r = -EINVAL;

    if (server->receiver.n_fds == 1 && request->region > 0)
        r = test_session_map(session, request->region, server->receiver.fds[0], request->nbytes,
                             request->read_only);
    if (r < 0) {
        send_error(session, id, -r, "cannot register that");
        return;
    }
    server->daemon->n_regions++;
    send_done(session, id);
}

static void answer_unregister(struct test_session *session, uint32_t id, uint32_t region)
{
    if (region == 0 || region >= TEST_N_REGIONS || !session->regions[region].data) {
        send_error(session, id, ENOENT, "no such region");
        return;
    }
    munmap(session->regions[region].data, session->regions[region].nbytes);
    session->regions[region].data = NULL;
    session->daemon->n_regions--;
    send_done(session, id);
}

/* Sends one of two pages: page 0 has the first sample of a family, page 7 the second. */
static void answer_stats(struct test_session *session, uint32_t id, uint64_t first)
{
    Wharf__Label label = WHARF__LABEL__INIT, *labels[] = {&label};
    Wharf__Sample sample = WHARF__SAMPLE__INIT, *samples[] = {&sample};
    Wharf__MetricFamily family = WHARF__METRIC_FAMILY__INIT, *families[] = {&family};
    Wharf__StatsReply stats = WHARF__STATS_REPLY__INIT;
    Wharf__Reply reply = WHARF__REPLY__INIT;

    label.name = (char *)"page";
    label.value = (char *)(first ? "second" : "first");
    sample.labels = labels;
    sample.n_labels = 1;
    sample.value = first ? 2.5 : 1.5;
    family.name = (char *)"test_total";
    family.help = (char *)"A number.";
    family.type = WHARF__METRIC_TYPE__METRIC_TYPE_COUNTER;
    family.samples = samples;
    family.n_samples = 1;
    stats.families = families;
    stats.n_families = 1;
    stats.next = first ? 0 : 7;
    if (test_daemon_does(session->daemon, TEST_MISDEED_STATS_LOOP))
        stats.next = first ? first : 7;
    reply.id = id;
    reply.body_case = WHARF__REPLY__BODY_STATS;
    reply.stats = &stats;
    send_reply(session, &reply, NULL, 0);
}

static void answer(struct server *server, struct test_session *session,
                   const Wharf__Request *request)
{
    uint32_t id = request->id;

    switch (request->body_case) {
    case WHARF__REQUEST__BODY_HELLO:
        if (!misbehave_at_hello(session, id))
            answer_hello(server, session, id, request->hello);
        return;
    case WHARF__REQUEST__BODY_OPEN_QUEUE:
        answer_open_queue(server, session, id, request->open_queue);
        return;
    case WHARF__REQUEST__BODY_REGISTER_MEMORY:
        answer_register(server, session, id, request->register_memory);
        return;
    case WHARF__REQUEST__BODY_UNREGISTER_MEMORY:
        answer_unregister(session, id, request->unregister_memory->region);
        return;
    case WHARF__REQUEST__BODY_STATS:
        answer_stats(session, id, request->stats->first);
        return;
    case WHARF__REQUEST__BODY_DRAIN:
        __atomic_store_n(&server->daemon->drain, 1, __ATOMIC_RELAXED);
        send_done(session, id);
        return;
    default:
        send_done(session, id);
    }
}

/* ---- connections --------------------------------------------------------------------------- */

static void drop(struct server *server, unsigned at)
{
    struct test_session *session = server->sessions[at];

    close(session->socket);
    test_session_close(session);
    free(session);
    server->sessions[at] = server->sessions[--server->n];
}

static void accept_one(struct server *server)
{
    int socket = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct test_session *session;

    if (socket < 0 || server->n == MAX_CONNECTIONS) {
        close(socket);
        return;
    }
    session = calloc(1, sizeof(*session));
    if (!session)
        _exit(1);
    session->daemon = server->daemon;
    session->socket = socket;
    session->arena_fd = -1;
    server->sessions[server->n++] = session;
    server->daemon->n_connections++;
}

/* Reads everything that is there, but nothing after a message that ends this life.  Returns whether
 * the connection continues. */
static int listen_to(struct server *server, struct test_session *session)
{
    struct wharf_control_receiver *receiver = &server->receiver;
    const Wharf__Request *request;
    int r;

    while ((r = wharf_control_receive(session->socket, receiver, MSG_DONTWAIT)) == 0) {
        test_daemon_step(server->daemon);
        if (wharf_packet_kind(receiver->nbytes) == WHARF_PACKET_END)
            return 0;
        if (wharf_packet_kind(receiver->nbytes) == WHARF_PACKET_MESSAGE) {
            if (wharf_control_unpack_request(&server->memory, receiver->packet, receiver->nbytes,
                                             &request) < 0)
                return 0;
            answer(server, session, request);
        }
        for (size_t i = 0; i < receiver->n_fds; i++)
            close(receiver->fds[i]);
        if (__atomic_load_n(&server->daemon->drain, __ATOMIC_RELAXED))
            return 1;
    }
    return r == -EAGAIN;
}

/* Whether the session has ended for good before its first job is run.  Programs may still read the
 * outputs of finished jobs in the arena, which is emptied. */
static int is_revoked(struct test_session *session)
{
    const struct test_daemon *daemon = session->daemon;
    int is_silent = test_daemon_does(daemon, TEST_MISDEED_SILENT_FORFEIT);
    struct wharf_ring_d *d = session->d;
    struct wharf_ring_c *c = session->c;

    if (!is_silent && !test_daemon_does(daemon, TEST_MISDEED_FORFEIT))
        return 0;
    if (!session->n_entries || __atomic_load_n(&c->sq_tail, __ATOMIC_RELAXED) == 0)
        return 0;
    wharf_ring_store_flags(&d->flags, WHARF_RING_FORFEITED);
    if (!is_silent)
        send_error(session, 0, EPROTO, "go away");
    return 1;
}

/* Misbehaves on the socket with the first completion. */
static int misbehave_at_work(struct test_session *session)
{
    if (test_daemon_does(session->daemon, TEST_MISDEED_WAKE_FLOOD))
        wharf_control_wake(session->socket);
    if (session->n_completed == 0)
        return 1;
    if (test_daemon_does(session->daemon, TEST_MISDEED_REPLY_NOBODY_WANTS))
        send_done(session, 99);
    if (test_daemon_does(session->daemon, TEST_MISDEED_FAREWELL)) {
        send_error(session, 0, ESHUTDOWN, "come again");
        /* The client keeps its arena. */
        if (session->arena_fd >= 0)
            close(session->arena_fd);
        session->arena_fd = -1;
        return 0;
    }
    return 1;
}

/* Returns whether there was work. */
static int work(struct server *server)
{
    int was_busy = 0;

    for (unsigned i = 0; i < server->n; i++) {
        struct test_session *session = server->sessions[i];
        int r = is_revoked(session) ? -EPROTO : test_session_work(session);
        if (r < 0 || !misbehave_at_work(session))
            drop(server, i--);
        else
            was_busy |= r;
    }
    return was_busy;
}

/* Returns whether it may sleep. */
static int arm(struct server *server)
{
    for (unsigned i = 0; i < server->n; i++) {
        if (!server->sessions[i]->n_entries)
            continue;
        if (wharf_ring_daemon_arm(&server->sessions[i]->ring) != 0)
            return 0;
        test_daemon_step(server->daemon);
    }
    return !test_daemon_does(server->daemon, TEST_MISDEED_SCRIBBLE) &&
           !test_daemon_does(server->daemon, TEST_MISDEED_WAKE_FLOOD);
}

static void disarm(struct server *server)
{
    for (unsigned i = 0; i < server->n; i++)
        if (server->sessions[i]->n_entries)
            wharf_ring_daemon_disarm(&server->sessions[i]->ring);
}

static void look_at_sockets(struct server *server, int timeout_ms)
{
    struct pollfd fds[MAX_CONNECTIONS + 1];
    unsigned n = server->n;

    for (unsigned i = 0; i < n; i++)
        fds[i] = (struct pollfd){.fd = server->sessions[i]->socket, .events = POLLIN};
    fds[n] = (struct pollfd){.fd = server->listen_fd, .events = POLLIN};
    if (poll(fds, n + 1, timeout_ms) <= 0)
        return;
    /* Backwards, since drop moves the last one. */
    for (unsigned i = n; i-- > 0;)
        if (fds[i].revents && !listen_to(server, server->sessions[i]))
            drop(server, i);
    if (fds[n].revents)
        accept_one(server);
}

static void drain(struct server *server)
{
    for (unsigned i = 0; i < server->n; i++)
        test_session_drain(server->sessions[i]);
    while (work(server)) {
    }
    __atomic_store_n(&server->daemon->drain, 0, __ATOMIC_RELAXED);
    _exit(0);
}

_Noreturn void test_daemon_serve(struct test_daemon *daemon, int listen_fd)
{
    struct server *server = calloc(1, sizeof(*server));
    uint64_t busy_ns = wharf_now_ns();

    if (!server)
        _exit(1);
    server->daemon = daemon;
    server->listen_fd = listen_fd;
    server->generation = test_daemon_chance(daemon, UINT64_MAX) | 1;
    while (!__atomic_load_n(&daemon->stops, __ATOMIC_ACQUIRE)) {
        test_daemon_step(daemon);
        if (__atomic_load_n(&daemon->drain, __ATOMIC_RELAXED))
            drain(server);
        if (work(server)) {
            busy_ns = wharf_now_ns();
            look_at_sockets(server, 0);
        } else if (wharf_now_ns() - busy_ns >= daemon->spin_us * UINT64_C(1000)) {
            look_at_sockets(server, arm(server) ? 50 : 0);
            disarm(server);
        }
    }
    _exit(0);
}
