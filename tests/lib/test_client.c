/* SPDX-License-Identifier: Apache-2.0 */
/* test_client.c: connects to a daemon, exchanges messages, and uses its queue. */
#include "tests/lib/test_client.h"
#include "tests/lib/test_wait.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "encoders/wharf_codec.h"
#include "tests/lib/test_environment.h"

#define LIMIT_S 60

/* ---- beginning and end --------------------------------------------------------------------- */

struct test_client *test_client_new(void)
{
    struct test_client *client = calloc(1, sizeof(*client));

    if (!client)
        abort();
    client->fd = client->c_fd = client->d_fd = client->arena_fd = -1;
    return client;
}

static bool has_words(const struct test_client *client)
{
    return client->optional_features >> WHARF__FEATURE__FEATURE_DONE_WORDS & 1;
}

static size_t c_nbytes_of(const struct test_client *client)
{
    return wharf_ring_c_nbytes(client->n_entries, has_words(client));
}

void test_client_free(struct test_client *client)
{
    int fds[] = {client->fd, client->c_fd, client->d_fd, client->arena_fd};
    size_t ring_nbytes = wharf_ring_segment_nbytes(client->n_entries);

    if (client->c)
        munmap(client->c, c_nbytes_of(client));
    if (client->d)
        munmap((void *)client->d, ring_nbytes);
    if (client->arena)
        munmap(client->arena, client->arena_nbytes);
    for (unsigned i = 0; i < 4; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    free(client);
}

int test_client_connect(struct test_client *client, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    client->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (client->fd < 0 || connect(client->fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    return 0;
}

/* ---- messages ------------------------------------------------------------------------------ */

int test_client_send(struct test_client *client, Wharf__Request *request, const int *fds,
                     size_t n_fds)
{
    uint8_t packet[WHARF_CONTROL_MAX_NBYTES];
    size_t nbytes;

    request->id = ++client->last_id;
    int r = wharf_control_pack_request(request, packet, &nbytes);
    return r < 0 ? r : wharf_control_send(client->fd, packet, nbytes, fds, n_fds, 0);
}

static int wait_readable(struct test_client *client)
{
    struct pollfd poll_fd = {client->fd, POLLIN, 0};
    int r = poll(&poll_fd, 1, LIMIT_S * 1000);

    return r < 0 ? -errno : r == 0 ? -ETIMEDOUT : 0;
}

int test_client_receive(struct test_client *client, const Wharf__Reply **ret_reply)
{
    const Wharf__Reply *reply;
    int r;

    do {
        r = wait_readable(client);
        if (r == 0)
            r = wharf_control_receive(client->fd, &client->receiver, 0);
        if (r == -ECONNRESET || (r == 0 && client->receiver.nbytes == 0))
            r = -EPIPE;
        if (r < 0)
            return r;
    } while (client->receiver.nbytes == 1);
    r = wharf_control_unpack_reply(&client->memory, client->receiver.packet,
                                   client->receiver.nbytes, &reply);
    if (r < 0)
        return r;
    if (reply->body_case == WHARF__REPLY__BODY_ERROR) {
        snprintf(client->error, sizeof(client->error), "%s", reply->error->text);
        return -reply->error->code;
    }
    *ret_reply = reply;
    return 0;
}

int test_client_call(struct test_client *client, Wharf__Request *request, const int *fds,
                     size_t n_fds, const Wharf__Reply **ret_reply)
{
    int r = test_client_send(client, request, fds, n_fds);

    if (r < 0)
        return r;
    r = test_client_receive(client, ret_reply);
    if (r == 0 && (*ret_reply)->id != request->id)
        return -EBADMSG;
    return r;
}

/* Calls with a request that is answered by Done. */
static int call_for_done(struct test_client *client, Wharf__Request *request, const int *fds,
                         size_t n_fds)
{
    const Wharf__Reply *reply;
    int r = test_client_call(client, request, fds, n_fds, &reply);

    if (r == 0 && reply->body_case != WHARF__REPLY__BODY_DONE)
        return -EBADMSG;
    return r;
}

int test_client_hello(struct test_client *client)
{
    Wharf__HelloRequest hello = WHARF__HELLO_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    const Wharf__Reply *reply;

    hello.version = hello.min_version = WHARF_CONTROL_VERSION;
    hello.client_name = (char *)"test";
    request.body_case = WHARF__REQUEST__BODY_HELLO;
    request.hello = &hello;
    hello.optional_features = client->optional_features;
    int r = test_client_call(client, &request, NULL, 0, &reply);
    if (r < 0)
        return r;
    if (reply->body_case != WHARF__REPLY__BODY_HELLO || !reply->hello->limits)
        return -EBADMSG;
    client->generation = reply->hello->generation;
    client->limits = *reply->hello->limits;
    for (size_t i = 0; i < reply->hello->n_engines; i++)
        client->engines |= 1u << reply->hello->engines[i];
    return 0;
}

static int register_memory(struct test_client *client, Wharf__MemoryKind kind, uint32_t region,
                           int fd, uint64_t nbytes, bool read_only)
{
    Wharf__RegisterMemoryRequest memory = WHARF__REGISTER_MEMORY_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;

    memory.region = region;
    memory.kind = kind;
    memory.nbytes = nbytes;
    memory.read_only = read_only;
    request.body_case = WHARF__REQUEST__BODY_REGISTER_MEMORY;
    request.register_memory = &memory;
    return call_for_done(client, &request, &fd, fd >= 0);
}

int test_client_send_fds(struct test_client *client, const void *data, size_t nbytes, int fd,
                         unsigned n_fds)
{
    _Alignas(struct cmsghdr) static uint8_t control[CMSG_SPACE(253 * sizeof(int))];
    struct iovec iov = {(void *)data, nbytes};
    struct msghdr header = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = CMSG_SPACE(n_fds * sizeof(int)),
    };
    struct cmsghdr *c = CMSG_FIRSTHDR(&header);

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
    for (unsigned i = 0; i < n_fds; i++)
        memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(int));
    return sendmsg(client->fd, &header, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int test_client_register(struct test_client *client, uint32_t region, int fd, uint64_t nbytes,
                         bool read_only)
{
    return register_memory(client, WHARF__MEMORY_KIND__MEMORY_KIND_MEMFD, region, fd, nbytes,
                           read_only);
}

int test_client_register_gpu(struct test_client *client, uint32_t region, int fd, uint64_t nbytes)
{
    return register_memory(client, WHARF__MEMORY_KIND__MEMORY_KIND_GPU, region, fd, nbytes, false);
}

int test_client_unregister(struct test_client *client, uint32_t region)
{
    Wharf__UnregisterMemoryRequest memory = WHARF__UNREGISTER_MEMORY_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;

    memory.region = region;
    request.body_case = WHARF__REQUEST__BODY_UNREGISTER_MEMORY;
    request.unregister_memory = &memory;
    return call_for_done(client, &request, NULL, 0);
}

int test_client_ping(struct test_client *client)
{
    Wharf__PingRequest ping = WHARF__PING_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;

    request.body_case = WHARF__REQUEST__BODY_PING;
    request.ping = &ping;
    return call_for_done(client, &request, NULL, 0);
}

int test_client_drain(struct test_client *client)
{
    Wharf__DrainRequest drain = WHARF__DRAIN_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;

    request.body_case = WHARF__REQUEST__BODY_DRAIN;
    request.drain = &drain;
    return call_for_done(client, &request, NULL, 0);
}

/* ---- statistics ---------------------------------------------------------------------------- */

static bool has_label(const Wharf__Sample *sample, const char *value)
{
    for (size_t i = 0; i < sample->n_labels; i++)
        if (strcmp(sample->labels[i]->value, value) == 0)
            return true;
    return !value[0];
}

static double find_sample(const Wharf__StatsReply *stats, const char *name, const char *suffix,
                          const char *label_value)
{
    for (size_t i = 0; i < stats->n_families; i++) {
        const Wharf__MetricFamily *family = stats->families[i];
        for (size_t k = 0; strcmp(family->name, name) == 0 && k < family->n_samples; k++)
            if (strcmp(family->samples[k]->suffix, suffix) == 0 &&
                has_label(family->samples[k], label_value))
                return family->samples[k]->value;
    }
    return -1;
}

static int ask_stats(struct test_client *client, uint64_t first, const Wharf__StatsReply **ret_page)
{
    Wharf__StatsRequest stats = WHARF__STATS_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    const Wharf__Reply *reply;

    stats.first = first;
    request.body_case = WHARF__REQUEST__BODY_STATS;
    request.stats = &stats;
    int r = test_client_call(client, &request, NULL, 0, &reply);
    if (r < 0)
        return r;
    *ret_page = reply->body_case == WHARF__REPLY__BODY_STATS ? reply->stats : NULL;
    return *ret_page ? 0 : -EPROTO;
}

int test_client_stats_page(struct test_client *client, uint64_t first, uint64_t *ret_next)
{
    const Wharf__StatsReply *page;
    int r = ask_stats(client, first, &page);

    if (r == 0)
        *ret_next = page->next;
    return r;
}

double test_client_metric(struct test_client *client, const char *name, const char *suffix,
                          const char *label_value)
{
    const Wharf__StatsReply *page;
    uint64_t next = 0;
    double value = -1;

    do {
        if (ask_stats(client, next, &page) < 0)
            return -1;
        value = find_sample(page, name, suffix, label_value ? label_value : "");
        next = page->next;
    } while (next && value < 0);
    return value;
}

/* ---- the queue ----------------------------------------------------------------------------- */

static void *map_fd(int fd, size_t nbytes, int protection)
{
    void *address = mmap(NULL, nbytes, protection, MAP_SHARED, fd, 0);

    return address == MAP_FAILED ? NULL : address;
}

static int map_queue(struct test_client *client)
{
    size_t ring_nbytes = wharf_ring_segment_nbytes(client->n_entries);

    client->c = map_fd(client->c_fd, c_nbytes_of(client), PROT_READ | PROT_WRITE);
    client->d = map_fd(client->d_fd, ring_nbytes, PROT_READ);
    if (client->arena_fd >= 0)
        client->arena = map_fd(client->arena_fd, client->arena_nbytes, PROT_READ | PROT_WRITE);
    if (!client->c || !client->d || (client->arena_fd >= 0 && !client->arena))
        return -ENOMEM;
    if (!client->leaves_c_unsealed &&
        fcntl(client->c_fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) < 0)
        return -errno;
    wharf_ring_client_init(&client->ring, client->c, client->d, client->n_entries);
    if (has_words(client))
        wharf_ring_client_use_words(&client->ring);
    return 0;
}

int test_client_open(struct test_client *client, const Wharf__OpenQueueRequest *open,
                     int brought_fd)
{
    Wharf__Request request = WHARF__REQUEST__INIT;
    const Wharf__Reply *reply;
    size_t n_expected = open->arena_nbytes && !open->bring_arena ? 3 : 2;

    request.body_case = WHARF__REQUEST__BODY_OPEN_QUEUE;
    request.open_queue = (Wharf__OpenQueueRequest *)open;
    int r = test_client_call(client, &request, &brought_fd, brought_fd >= 0, &reply);
    if (r < 0)
        return r;
    if (reply->body_case != WHARF__REPLY__BODY_OPEN_QUEUE || client->receiver.n_fds != n_expected)
        return -EBADMSG;
    client->n_entries = reply->open_queue->n_entries;
    client->arena_nbytes = reply->open_queue->arena_nbytes;
    client->c_fd = client->receiver.fds[0];
    client->d_fd = client->receiver.fds[1];
    if (n_expected == 3)
        client->arena_fd = client->receiver.fds[2];
    else if (open->bring_arena)
        client->arena_fd = fcntl(brought_fd, F_DUPFD_CLOEXEC, 0);
    return map_queue(client);
}

int test_client_open_with(struct test_client *client, uint32_t n_entries, uint64_t arena_nbytes,
                          uint32_t default_class, uint32_t engine)
{
    Wharf__OpenQueueRequest open = WHARF__OPEN_QUEUE_REQUEST__INIT;

    open.n_entries = n_entries;
    open.arena_nbytes = arena_nbytes;
    open.default_class = default_class;
    open.engine = engine;
    return test_client_open(client, &open, -1);
}

static void must(const struct test_client *client, int r, const char *what, const char *path)
{
    if (r >= 0)
        return;
    fprintf(stderr, "no %s on %s: %s (%s)\n", what, path, strerror(-r), client->error);
    abort();
}

struct test_client *test_client_connected(const char *path)
{
    struct test_client *client = test_client_new();

    must(client, test_client_connect(client, path), "connection", path);
    return client;
}

struct test_client *test_client_greeted(const char *path)
{
    struct test_client *client = test_client_connected(path);

    must(client, test_client_hello(client), "Hello", path);
    return client;
}

struct test_client *test_client_start(const char *path, uint32_t n_entries, uint64_t arena_nbytes)
{
    struct test_client *client = test_client_greeted(path);

    must(client,
         test_client_open_with(client, n_entries, arena_nbytes, 0, test_environment_engine()),
         "session", path);
    return client;
}

struct test_client *test_client_greeted_in_time(const char *path)
{
    uint64_t begun_ns = wharf_now_ns();
    struct test_client *client = test_client_connected(path);
    int r;

    while ((r = test_client_hello(client)) < 0 && wharf_now_ns() - begun_ns < TEST_WAIT_LIMIT_NS) {
        test_client_free(client);
        usleep(1000);
        client = test_client_connected(path);
    }
    if (r == 0)
        return client;
    fprintf(stderr, "ended connections are not forgotten: %s\n", strerror(-r));
    abort();
}

int test_client_publish(struct test_client *client)
{
    if (wharf_ring_publish_submissions(&client->ring) == 0)
        return 0;
    return wharf_control_wake(client->fd);
}

int test_client_submit(struct test_client *client, const struct wharf_submission *submission)
{
    if (wharf_ring_room(&client->ring) == 0)
        return -EAGAIN;
    wharf_ring_submit(&client->ring, submission);
    return test_client_publish(client);
}

void test_client_begin_endless(struct test_client *client, uint64_t user_data, uint16_t last_region)
{
    enum { N = 4096, RESULTS = 1 << 19, SOURCE = 1 << 20, OUTPUT = 65 << 20, LARGE = 60 << 20 };
    const struct wharf_chunk_result *first = (struct wharf_chunk_result *)(client->arena + RESULTS);
    const struct wharf_submission s = {
        .opcode = WHARF_OP_BATCH,
        .codec = WHARF_CODEC_STORED,
        .user_data = user_data,
        .src_nbytes = N * sizeof(struct wharf_chunk),
        .dst_offset = RESULTS,
        .dst_nbytes = N * sizeof(struct wharf_chunk_result),
    };

    for (unsigned i = 0; i < N; i++) {
        struct wharf_chunk chunk = {
            .src_offset = SOURCE, .src_nbytes = LARGE, .dst_offset = OUTPUT, .dst_nbytes = LARGE};
        if (i == N - 1)
            chunk = (struct wharf_chunk){
                .src_offset = SOURCE, .src_nbytes = 1, .dst_nbytes = 1, .dst_region = last_region};
        memcpy(client->arena + i * sizeof(chunk), &chunk, sizeof(chunk));
    }
    must(client, test_client_submit(client, &s), "batch", "the ring");
    must(client, TEST_WAIT(__atomic_load_n(&first->engine, __ATOMIC_RELAXED)) ? 0 : -ETIMEDOUT,
         "beginning of a batch", "the ring");
}

/* Whether the daemon has closed the connection.  Discards wake-ups. */
static bool is_closed(struct test_client *client)
{
    char byte[8];
    ssize_t n;

    do {
        n = recv(client->fd, byte, sizeof(byte), MSG_DONTWAIT);
    } while (n > 0);
    return n == 0 || (errno != EAGAIN && errno != EINTR);
}

static int sleep_until_there(struct test_client *client)
{
    /* A daemon that has died sends no wake-up. */
    struct timespec limit = {.tv_nsec = 50000000};

    for (unsigned i = 0; i < LIMIT_S * 20; i++) {
        int r = wharf_ring_client_arm(&client->ring, WHARF_WAIT_FUTEX, 1);
        if (r != 0)
            return r < 0 ? r : 0;
        if (syscall(SYS_futex, &client->d->cq_tail, FUTEX_WAIT, client->ring.cq_tail, &limit, NULL,
                    0) == 0 ||
            errno != ETIMEDOUT)
            i--;
        else if (is_closed(client))
            return wharf_ring_client_arm(&client->ring, 0, 1) >= 1 ? 0 : -EPIPE;
    }
    return -ETIMEDOUT;
}

int test_client_reap(struct test_client *client, struct wharf_completion *ret_completion)
{
    int r = sleep_until_there(client);

    if (r == 0)
        r = wharf_ring_reap(&client->ring, ret_completion);
    return r == 1 ? 0 : r == 0 ? -EAGAIN : r;
}

int test_client_wait_for_end(struct test_client *client)
{
    for (;;) {
        int r = wait_readable(client);
        if (r < 0)
            return r;
        r = wharf_control_receive(client->fd, &client->receiver, 0);
        if ((r == 0 && client->receiver.nbytes == 0) || r == -ECONNRESET)
            return 0;
        if (r < 0)
            return r;
        for (size_t i = 0; i < client->receiver.n_fds; i++)
            close(client->receiver.fds[i]);
    }
}

void test_client_ended(struct test_client *client)
{
    must(client, test_client_wait_for_end(client), "end", "the connection");
    test_client_free(client);
}

int test_memfd(uint64_t nbytes, int seals)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || ftruncate(fd, (off_t)nbytes) < 0 || fcntl(fd, F_ADD_SEALS, seals) < 0)
        return -errno;
    return fd;
}
