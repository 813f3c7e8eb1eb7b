/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/hostile/storm_kinds.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "encoders/wharf_codec.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_rans.h"

/* Connections of one process, and requests of one that wait for their answers. */
enum { N_CONNECTIONS = 16, N_PIPELINED = 64 };

static struct test_client *clients[N_CONNECTIONS];

static void greet_all(const char *path, uint64_t features)
{
    for (unsigned i = 0; i < N_CONNECTIONS; i++) {
        clients[i] = test_client_connected(path);
        clients[i]->optional_features = features;
        if (test_client_hello(clients[i]) < 0)
            abort();
    }
}

static void open_all(const char *path, uint64_t features)
{
    greet_all(path, features);
    for (unsigned i = 0; i < N_CONNECTIONS; i++)
        if (test_client_open_with(clients[i], 256, 1 << 20, 0, 0) < 0)
            abort();
}

/* ---- doorbells ----------------------------------------------------------------------------- */

static void ring_for_nothing(const char *path)
{
    static const char byte;

    open_all(path, 0);
    for (unsigned i = 0;; i = (i + 1) % N_CONNECTIONS)
        send(clients[i]->fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Each with something in the ring. */
static void ring_for_noops(const char *path)
{
    static const struct wharf_submission noop = {.opcode = WHARF_OP_NOOP};
    struct wharf_completion completion;

    open_all(path, 0);
    for (unsigned i = 0;; i = (i + 1) % N_CONNECTIONS) {
        while (wharf_ring_reap(&clients[i]->ring, &completion) == 1) {
        }
        test_client_submit(clients[i], &noop);
    }
}

/* ---- requests ------------------------------------------------------------------------------ */

/* Sends so many requests on every connection before it reads the answers. */
static void pipeline(unsigned n, void (*send_one)(struct test_client *client, unsigned i))
{
    const Wharf__Reply *reply;

    for (;;) {
        for (unsigned k = 0; k < n; k++)
            for (unsigned i = 0; i < N_CONNECTIONS; i++)
                send_one(clients[i], k);
        for (unsigned k = 0; k < n; k++)
            for (unsigned i = 0; i < N_CONNECTIONS; i++)
                test_client_receive(clients[i], &reply);
    }
}

static void send_ping(struct test_client *client, unsigned i)
{
    Wharf__PingRequest ping = WHARF__PING_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;

    (void)i;
    request.body_case = WHARF__REQUEST__BODY_PING;
    request.ping = &ping;
    test_client_send(client, &request, NULL, 0);
}

static void ping(const char *path)
{
    greet_all(path, 0);
    pipeline(N_PIPELINED, send_ping);
}

static void send_stats(struct test_client *client, unsigned i)
{
    Wharf__StatsRequest stats = WHARF__STATS_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;

    (void)i;
    request.body_case = WHARF__REQUEST__BODY_STATS;
    request.stats = &stats;
    test_client_send(client, &request, NULL, 0);
}

static void ask_for_stats(const char *path)
{
    greet_all(path, 0);
    pipeline(16, send_stats);
}

static int memory_fd;

/* Registers and unregisters by turns. */
static void send_registration(struct test_client *client, unsigned i)
{
    Wharf__RegisterMemoryRequest memory = WHARF__REGISTER_MEMORY_REQUEST__INIT;
    Wharf__UnregisterMemoryRequest unregister = WHARF__UNREGISTER_MEMORY_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;

    if (i % 2 == 0) {
        memory.region = 1;
        memory.kind = WHARF__MEMORY_KIND__MEMORY_KIND_MEMFD;
        memory.nbytes = 4096;
        request.body_case = WHARF__REQUEST__BODY_REGISTER_MEMORY;
        request.register_memory = &memory;
        test_client_send(client, &request, &memory_fd, 1);
    } else {
        unregister.region = 1;
        request.body_case = WHARF__REQUEST__BODY_UNREGISTER_MEMORY;
        request.unregister_memory = &unregister;
        test_client_send(client, &request, NULL, 0);
    }
}

static void register_memory(const char *path)
{
    memory_fd = test_memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW);
    open_all(path, 0);
    pipeline(16, send_registration);
}

static struct test_rans rans;

static void send_model(struct test_client *client, unsigned i)
{
    Wharf__RegisterModelRequest model = WHARF__REGISTER_MODEL_REQUEST__INIT;
    Wharf__UnregisterModelRequest unregister = WHARF__UNREGISTER_MODEL_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;

    if (i % 2 == 0) {
        model.model = 256;
        model.codec = WHARF_CODEC_RANS;
        model.nbytes = rans.model_nbytes;
        request.body_case = WHARF__REQUEST__BODY_REGISTER_MODEL;
        request.register_model = &model;
        test_client_send(client, &request, &memory_fd, 1);
    } else {
        unregister.model = 256;
        request.body_case = WHARF__REQUEST__BODY_UNREGISTER_MODEL;
        request.unregister_model = &unregister;
        test_client_send(client, &request, NULL, 0);
    }
}

static void register_models(const char *path)
{
    static const struct test_rans_plan plan = {11, 1, 1, 20000, 1, 100, 1};

    rans = test_rans_new_registered(&plan);
    memory_fd = memfd_create("model", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (write(memory_fd, rans.model, rans.model_nbytes) != (ssize_t)rans.model_nbytes ||
        fcntl(memory_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
        abort();
    open_all(path, (uint64_t)1 << WHARF__FEATURE__FEATURE_MODELS);
    pipeline(16, send_model);
}

/* ---- connections --------------------------------------------------------------------------- */

static void connect_and_go(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    for (;;) {
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        connect(fd, (struct sockaddr *)&address, sizeof(address));
        close(fd);
    }
}

/* Whatever becomes of it. */
static void greet_and_go(const char *path)
{
    for (;;) {
        struct test_client *client = test_client_new();
        if (test_client_connect(client, path) == 0)
            test_client_hello(client);
        test_client_free(client);
    }
}

/* Makes rings and an arena, and gives them back. */
static void open_and_go(const char *path)
{
    for (;;) {
        struct test_client *client = test_client_new();
        if (test_client_connect(client, path) == 0 && test_client_hello(client) == 0)
            test_client_open_with(client, 4096, 256 << 20, 0, 0);
        test_client_free(client);
    }
}

/* Each session's first file makes the daemon start a process. */
static void register_file_and_go(const char *path)
{
    Wharf__RegisterMemoryRequest memory = WHARF__REGISTER_MEMORY_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    const Wharf__Reply *reply;
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    memory.region = 1;
    memory.kind = WHARF__MEMORY_KIND__MEMORY_KIND_FILE;
    memory.nbytes = 4096;
    memory.read_only = 1;
    request.body_case = WHARF__REQUEST__BODY_REGISTER_MEMORY;
    request.register_memory = &memory;
    for (;;) {
        struct test_client *client = test_client_new();
        client->optional_features = (uint64_t)1 << WHARF__FEATURE__FEATURE_FILES;
        if (test_client_connect(client, path) == 0 && test_client_hello(client) == 0 &&
            test_client_open_with(client, 16, 4096, 0, 0) == 0 &&
            test_client_send(client, &request, &file, 1) >= 0)
            test_client_receive(client, &reply);
        test_client_free(client);
    }
}

const struct storm_kind storm_kinds[] = {
    {"doorbells", ring_for_nothing},
    {"noops", ring_for_noops},
    {"pings", ping},
    {"stats", ask_for_stats},
    {"registrations", register_memory},
    {"models", register_models},
    {"hellos", greet_and_go},
    {"connects", connect_and_go},
    {"sessions", open_and_go},
    {"files", register_file_and_go},
    {NULL, NULL},
};
