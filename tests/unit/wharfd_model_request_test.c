/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to register models: refusals, charges, and clients that misbehave or go away. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_rans.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"
#include "tests/lib/test_worker.h"

static struct test_wharfd wharfd;

/* What a stream cannot bring with it: 5 distributions of 2^16 slots; and one of bytes. */
static const struct test_rans_plan large = {16, 2, 5, 20000, 12, 3000, 1};
static const struct test_rans_plan small = {11, 1, 1, 20000, 12, 250, 2};

/* ---- requests ------------------------------------------------------------------------------ */

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static int model_memfd(const void *model, size_t nbytes, int seals)
{
    int fd = memfd_create("model", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    cr_assert(fd >= 0 && write(fd, model, nbytes) == (ssize_t)nbytes);
    cr_assert_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

/* Clients that know of models. */
static struct test_client *greeted(void)
{
    struct test_client *client = test_client_connected(wharfd.socket);

    client->optional_features = (uint64_t)1 << WHARF__FEATURE__FEATURE_MODELS;
    cr_assert_eq(test_client_hello(client), 0);
    return client;
}

static struct test_client *session(uint32_t n_entries, uint64_t arena_nbytes)
{
    struct test_client *client = greeted();

    cr_assert_eq(test_client_open_with(client, n_entries, arena_nbytes, 0, 0), 0);
    return client;
}

static int ask(struct test_client *client, uint32_t number, uint32_t codec, uint64_t nbytes, int fd)
{
    Wharf__RegisterModelRequest model = WHARF__REGISTER_MODEL_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    const Wharf__Reply *reply;

    model.model = number;
    model.codec = codec;
    model.nbytes = nbytes;
    request.body_case = WHARF__REQUEST__BODY_REGISTER_MODEL;
    request.register_model = &model;
    return test_client_call(client, &request, &fd, 1, &reply);
}

static int drop(struct test_client *client, uint32_t number)
{
    Wharf__UnregisterModelRequest model = WHARF__UNREGISTER_MODEL_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    const Wharf__Reply *reply;

    model.model = number;
    request.body_case = WHARF__REQUEST__BODY_UNREGISTER_MODEL;
    request.unregister_model = &model;
    return test_client_call(client, &request, NULL, 0, &reply);
}

/* The result of a stream at the arena's beginning. */
static struct wharf_completion run(struct test_client *client, const struct test_rans *rans,
                                   uint32_t parameter)
{
    struct wharf_submission s = {
        .opcode = WHARF_OP_DECODE,
        .codec = WHARF_CODEC_RANS,
        .parameter = (uint16_t)parameter,
        .src_nbytes = rans->stream_nbytes,
        .dst_offset = 1 << 19,
        .dst_nbytes = rans->plain_nbytes,
    };
    struct wharf_completion completion = {0};

    memcpy(client->arena, rans->stream, rans->stream_nbytes);
    cr_assert_eq(test_client_submit(client, &s), 0);
    cr_assert_eq(test_client_reap(client, &completion), 0);
    return completion;
}

/* ---- refusals ------------------------------------------------------------------------------ */

Test(wharfd_model_request, models_are_refused_for_good_reasons_alone)
{
    struct test_rans rans = test_rans_new_registered(&small);
    size_t nbytes = rans.model_nbytes;
    int fd = model_memfd(rans.model, nbytes, SEALS);
    int writable = model_memfd(rans.model, nbytes, F_SEAL_SHRINK | F_SEAL_GROW);
    int growing = model_memfd(rans.model, nbytes, F_SEAL_WRITE);
    int pipes[2];

    cr_assert_eq(pipe(pipes), 0);
    test_wharfd_start(&wharfd, "[quota]\nmax_models = 2\n");
    struct test_client *client = greeted();
    cr_assert_eq(client->limits.max_models, 2);
    cr_assert_eq(ask(client, 256, WHARF_CODEC_RANS, nbytes, fd), -EINVAL, "no queue yet");
    cr_assert_eq(drop(client, 256), -ENOENT);
    cr_assert_eq(test_client_open_with(client, 4, 1 << 20, 0, WHARF_ENGINE_CPU), 0);
    cr_assert_eq(ask(client, 255, WHARF_CODEC_RANS, nbytes, fd), -EINVAL);
    cr_assert_eq(ask(client, 258, WHARF_CODEC_RANS, nbytes, fd), -EDQUOT);
    cr_assert_eq(ask(client, UINT32_MAX, WHARF_CODEC_RANS, nbytes, fd), -EDQUOT);
    cr_assert_eq(ask(client, 256, WHARF_CODEC_ZLIB, nbytes, fd), -EINVAL);
    cr_assert_eq(ask(client, 256, 999, nbytes, fd), -EINVAL);
    cr_assert_eq(ask(client, 256, WHARF_CODEC_RANS, 0, fd), -EINVAL);
    cr_assert_eq(ask(client, 256, WHARF_CODEC_RANS, UINT64_MAX, fd), -EINVAL);
    cr_assert_eq(ask(client, 256, WHARF_CODEC_RANS, nbytes + 1, fd), -EINVAL);
    cr_assert_eq(ask(client, 256, WHARF_CODEC_RANS, nbytes - 1, fd), -EBADMSG);
    cr_assert(strstr(client->error, "no model") != NULL, "%s", client->error);
    cr_assert_eq(ask(client, 256, WHARF_CODEC_RANS, nbytes, writable), -EPERM);
    cr_assert_eq(ask(client, 256, WHARF_CODEC_RANS, nbytes, growing), -EPERM);
    cr_assert_eq(ask(client, 256, WHARF_CODEC_RANS, nbytes, pipes[0]), -EBADF);
    cr_assert_eq(run(client, &rans, 256).reason, WHARF_REASON_REQUEST_PARAMETER);
    cr_assert_eq(ask(client, 257, WHARF_CODEC_RANS, nbytes, fd), 0);
    cr_assert_eq(ask(client, 257, WHARF_CODEC_RANS, nbytes, fd), -EEXIST);
    cr_assert_eq(run(client, &rans, 257).result, WHARF_OK);
    cr_assert(memcmp(client->arena + (1 << 19), rans.plain, rans.plain_nbytes) == 0);
    cr_assert_eq(drop(client, 256), -ENOENT);
    cr_assert_eq(drop(client, 257), 0);
    cr_assert_eq(drop(client, 257), -ENOENT);
    cr_assert_eq(run(client, &rans, 257).reason, WHARF_REASON_REQUEST_PARAMETER);
    cr_assert_eq(run(client, &rans, 65535).reason, WHARF_REASON_REQUEST_PARAMETER);
    test_client_free(client);
    test_wharfd_finish(&wharfd);
    test_rans_free(&rans);
}

/* A number means something in its own session alone. */
Test(wharfd_model_request, models_of_others_are_none)
{
    struct test_rans rans = test_rans_new_registered(&small);
    struct test_rans other = test_rans_new_registered(&(struct test_rans_plan){
        small.n_bits, 1, 1, small.n_symbols, small.max_splits, small.alphabet, 77});
    int fd = model_memfd(rans.model, rans.model_nbytes, SEALS);
    int other_fd = model_memfd(other.model, other.model_nbytes, SEALS);

    test_wharfd_start(&wharfd, "");
    struct test_client *a = session(4, 1 << 20);
    struct test_client *b = session(4, 1 << 20);
    cr_assert_eq(ask(a, 256, WHARF_CODEC_RANS, rans.model_nbytes, fd), 0);
    cr_assert_eq(run(b, &rans, 256).reason, WHARF_REASON_REQUEST_PARAMETER);
    cr_assert_eq(drop(b, 256), -ENOENT);
    cr_assert_eq(ask(b, 256, WHARF_CODEC_RANS, other.model_nbytes, other_fd), 0);
    cr_assert_eq(run(b, &other, 256).result, WHARF_OK);
    cr_assert_eq(run(a, &rans, 256).result, WHARF_OK);
    cr_assert_neq(run(a, &other, 256).result, WHARF_OK);
    test_client_free(a);
    cr_assert_eq(run(b, &other, 256).result, WHARF_OK);
    test_client_free(b);
    test_wharfd_finish(&wharfd);
    test_rans_free(&rans);
    test_rans_free(&other);
}

/* Jobs in the worker's hands name it: it stays until they have ended. */
Test(wharfd_model_request, models_in_use_stay)
{
    struct test_rans_plan plan = large;

    plan.n_symbols = 100000;
    struct test_rans rans = test_rans_new_registered(&plan);
    int fd = model_memfd(rans.model, rans.model_nbytes, SEALS);
    struct wharf_completion completion;

    test_wharfd_start(&wharfd, "[cpu]\nworkers = 1\n");
    for (unsigned round = 0; round < 6; round++) {
        struct test_client *client = session(64, 4 << 20);
        unsigned n_busy = 0;
        cr_assert_eq(ask(client, 256, WHARF_CODEC_RANS, rans.model_nbytes, fd), 0);
        memcpy(client->arena, rans.stream, rans.stream_nbytes);
        for (unsigned i = 0; i < 60; i++) {
            struct wharf_submission s = {
                .opcode = WHARF_OP_DECODE,
                .codec = WHARF_CODEC_RANS,
                .parameter = 256,
                .src_nbytes = rans.stream_nbytes,
                .dst_offset = 2 << 20,
                .dst_nbytes = rans.plain_nbytes,
            };
            wharf_ring_submit(&client->ring, &s);
        }
        cr_assert_eq(test_client_publish(client), 0);
        /* Half of them are left to the daemon when the client is gone. */
        if (round % 2) {
            test_client_free(client);
            continue;
        }
        int r;
        while ((r = drop(client, 256)) == -EBUSY)
            n_busy++;
        /* Those that the daemon has not taken yet are not in flight. */
        cr_assert_eq(r, 0);
        for (unsigned i = 0; i < 60; i++) {
            cr_assert_eq(test_client_reap(client, &completion), 0);
            cr_assert(completion.result == WHARF_OK ||
                          completion.reason == WHARF_REASON_REQUEST_PARAMETER,
                      "%u %u", completion.result, completion.reason);
        }
        cr_assert_eq(run(client, &rans, 256).reason, WHARF_REASON_REQUEST_PARAMETER);
        test_client_free(client);
    }
    test_wharfd_finish(&wharfd);
    test_rans_free(&rans);
}

/* ---- charges ------------------------------------------------------------------------------- */

/* The tables are charged, and come back. */
Test(wharfd_model_request, models_are_charged)
{
    struct test_rans rans = test_rans_new_registered(&large);
    int fd = model_memfd(rans.model, rans.model_nbytes, SEALS);

    /* 2 bytes for each of 5 * 2^16 slots, and the ranges. */
    test_wharfd_start(&wharfd, "[quota]\nmax_memory = 2M\n");
    for (unsigned round = 0; round < 3; round++) {
        struct test_client *client = session(4, 4096);
        unsigned n = 0;
        while (ask(client, 256 + n, WHARF_CODEC_RANS, rans.model_nbytes, fd) == 0)
            n++;
        cr_assert_eq(n, 2);
        cr_assert_eq(ask(client, 258, WHARF_CODEC_RANS, rans.model_nbytes, fd), -EDQUOT);
        cr_assert(strstr(client->error, "max_memory"), "%s", client->error);
        /* What is given back takes a moment. */
        cr_assert_eq(drop(client, 257), 0);
        int r;
        while ((r = ask(client, 258, WHARF_CODEC_RANS, rans.model_nbytes, fd)) == -EDQUOT)
            usleep(1000);
        cr_assert_eq(r, 0);
        test_client_free(client);
        struct test_client *next = test_client_greeted_in_time(wharfd.socket);
        double used;
        while ((used = test_client_metric(next, "wharf_memory_bytes", "", NULL)) > 0)
            usleep(1000);
        cr_assert_eq(used, 0);
        test_client_free(next);
    }
    test_wharfd_finish(&wharfd);
    test_rans_free(&rans);
}

/* The model itself is charged as long as it waits. */
Test(wharfd_model_request, models_that_wait_are_charged)
{
    struct test_rans rans = test_rans_new_registered(&small);
    uint8_t *long_model = calloc(1, 1 << 20);

    cr_assert_not_null(long_model);
    memcpy(long_model, rans.model, rans.model_nbytes);
    int fd = model_memfd(long_model, 1 << 20, SEALS);
    test_wharfd_start(&wharfd, "[quota]\nmax_memory = 512K\n");
    struct test_client *client = session(4, 4096);
    cr_assert_eq(ask(client, 256, WHARF_CODEC_RANS, 1 << 20, fd), -EDQUOT);
    cr_assert(strstr(client->error, "max_memory"), "%s", client->error);
    cr_assert_eq(ask(client, 256, WHARF_CODEC_RANS, rans.model_nbytes, fd), 0);
    double used = test_wharfd_metric(&wharfd, "wharf_memory_bytes", NULL);
    for (unsigned i = 0; i < 3; i++)
        cr_assert_eq(ask(client, 257, WHARF_CODEC_RANS, 100000, fd), -EBADMSG);
    cr_assert(TEST_WAIT(test_wharfd_metric(&wharfd, "wharf_memory_bytes", NULL) == used));
    test_client_free(client);
    test_wharfd_finish(&wharfd);
    free(long_model);
    test_rans_free(&rans);
}

/* ---- clients that go ----------------------------------------------------------------------- */

/* What the daemon's thread that makes models has had of the processors, in clock ticks. */
static unsigned long maker_ticks(void)
{
    char path[64], line[512];
    unsigned long user = 0, system = 0;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)wharfd.pid);
    DIR *dir = opendir(path);
    cr_assert_not_null(dir);
    struct dirent *entry;
    while ((entry = readdir(dir))) {
        snprintf(path, sizeof(path), "/proc/%d/task/%.16s/stat", (int)wharfd.pid, entry->d_name);
        FILE *file = fopen(path, "re");
        if (!file)
            continue;
        /* Its fields 14 and 15, of which the second one is the name. */
        if (fgets(line, sizeof(line), file) && strstr(line, "(wharf-models)"))
            sscanf(strrchr(line, ')') + 1, "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu %lu",
                   &user, &system);
        fclose(file);
    }
    closedir(dir);
    return user + system;
}

static void send_order(struct test_client *client, const struct test_rans *rans, int fd)
{
    Wharf__RegisterModelRequest model = WHARF__REGISTER_MODEL_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;

    model.model = 256;
    model.codec = WHARF_CODEC_RANS;
    model.nbytes = rans->model_nbytes;
    request.body_case = WHARF__REQUEST__BODY_REGISTER_MODEL;
    request.register_model = &model;
    cr_assert_eq(test_client_send(client, &request, &fd, 1), 0);
}

static void go_while_models_wait(const char *io, const struct test_rans *rans)
{
    enum { N = 16, N_OWN = 3 };
    struct test_client *dead[N];
    int fd = model_memfd(rans->model, rans->model_nbytes, SEALS);

    test_wharfd_start_by(&wharfd, io, "");
    struct test_client *client = session(4, 4096);
    for (uint32_t i = 0; i < N_OWN; i++)
        cr_assert_eq(ask(client, 256 + i, WHARF_CODEC_RANS, rans->model_nbytes, fd), 0);
    unsigned long ticks = maker_ticks();
    double used = test_wharfd_metric(&wharfd, "wharf_memory_bytes", NULL);
    int n_fds = test_wharfd_n_fds(&wharfd);
    for (unsigned i = 0; i < N; i++)
        dead[i] = session(4, 4096);
    /* It finds what they ask for and that they are gone at once. */
    test_process_stop(wharfd.pid);
    for (unsigned i = 0; i < N; i++) {
        send_order(dead[i], rans, fd);
        test_client_free(dead[i]);
    }
    kill(wharfd.pid, SIGCONT);
    cr_assert_eq(ask(client, 256 + N_OWN, WHARF_CODEC_RANS, rans->model_nbytes, fd), 0);
    /* Of the dead one's models one may have been begun. */
    cr_expect_leq(maker_ticks(), 4 * ticks, "%lu, and at first %lu", maker_ticks(), ticks);
    cr_assert_eq(drop(client, 256 + N_OWN), 0);
    cr_assert(TEST_WAIT(test_wharfd_metric(&wharfd, "wharf_memory_bytes", NULL) == used));
    cr_assert(TEST_WAIT(test_wharfd_n_fds(&wharfd) <= n_fds));
    test_client_free(client);
    test_wharfd_finish(&wharfd);
    close(fd);
}

/* Once, a model was made although its client had gone while it waited. */
Test(wharfd_model_request, nothing_is_made_for_clients_that_are_gone, .timeout = 600)
{
    static const struct test_rans_plan largest = {16, 2, 256, 20000, 12, 3000, 1};
    struct test_rans rans = test_rans_new_registered(&largest);

    go_while_models_wait("epoll", &rans);
    go_while_models_wait("auto", &rans);
    test_rans_free(&rans);
}

/* Whatever is registered, and whoever goes before the answer: others are served. */
Test(wharfd_model_request, garbage_is_an_answer, .timeout = 600)
{
    struct test_rans rans = test_rans_new_registered(&small);
    struct test_rans good = test_rans_new_registered(&large);
    struct test_random random = {3};
    uint8_t *model = malloc(rans.model_nbytes);
    int good_fd = model_memfd(good.model, good.model_nbytes, SEALS);

    test_wharfd_start_gpu(&wharfd, "simt", "");
    struct test_client *client = session(4, 1 << 20);
    cr_assert_eq(ask(client, 300, WHARF_CODEC_RANS, good.model_nbytes, good_fd), 0);
    for (unsigned i = 0; i < 150; i++) {
        memcpy(model, rans.model, rans.model_nbytes);
        for (unsigned k = 0; k <= i % 4; k++)
            model[test_random_below(&random, i % 2 ? 16 : rans.model_nbytes)] ^=
                (uint8_t)(1u << test_random_below(&random, 8));
        int fd = model_memfd(model, rans.model_nbytes, SEALS);
        int r = ask(client, 256, WHARF_CODEC_RANS, rans.model_nbytes, fd);
        cr_assert(r == 0 || r == -EBADMSG || r == -EDQUOT, "%d: %s", r, client->error);
        if (r == 0) {
            run(client, &rans, 256);
            cr_assert_eq(drop(client, 256), 0);
        }
        close(fd);
        if (i % 10)
            continue;
        /* One that does not wait. */
        struct test_client *hasty = session(4, 4096);
        send_order(hasty, &good, good_fd);
        test_client_free(hasty);
    }
    cr_assert_eq(run(client, &good, 300).result, WHARF_OK);
    test_client_free(client);
    test_wharfd_finish(&wharfd);
    free(model);
    test_rans_free(&rans);
    test_rans_free(&good);
}
