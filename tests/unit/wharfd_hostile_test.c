/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rings, doorbells, packets and memory against every rule; after each, another client's job has to
 * come out right, and in the end the daemon has to have given everything back.
 */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include "encoders/wharf_codec.h"
#include "proto/wharf_result.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_innocent.h"
#include "tests/lib/test_random.h"

#define MiB ((uint64_t)1 << 20)

static struct test_innocent scene;

/* ---- rings --------------------------------------------------------------------------------- */

static void scribble_rings(void)
{
    struct test_random random = {11};

    for (unsigned i = 0; i < 100; i++) {
        struct test_client *client = test_client_start(scene.wharfd.socket, 16, MiB);
        size_t nbytes = wharf_ring_segment_nbytes(16);
        test_random_fill(&random, client->arena, 65536);
        for (unsigned k = 0; k < 20; k++) {
            test_random_fill(&random, (uint8_t *)client->c + 1024, nbytes - 1024);
            /* Mostly a jump that is allowed. */
            uint32_t step = (uint32_t)test_random_below(&random, 17);
            if (test_random_one_in(&random, 30))
                step = (uint32_t)test_random_next(&random);
            uint32_t head = wharf_ring_load_cq_tail(&client->d->cq_tail);
            wharf_ring_store_cq_head(&client->c->cq_head, head);
            wharf_ring_store_sq_tail(&client->c->sq_tail, head + step);
            wharf_control_wake(client->fd);
        }
        test_random_fill(&random, (uint8_t *)client->c, nbytes);
        wharf_control_wake(client->fd);
        if (test_random_one_in(&random, 2))
            test_client_ended(client);
        else
            test_client_free(client);
    }
}

Test(wharfd_hostile, random_bytes_in_the_rings)
{
    test_innocent_both_ways(&scene, scribble_rings);
}

static void jump_indices(void)
{
    static const uint32_t jumps[][2] = {{17, 0}, {UINT32_MAX, 0}, {0x80000000u, 0}, {1, 1}, {0, 1},
                                        {5, 6},  {0x7fffffff, 0}, {16, UINT32_MAX}};

    for (unsigned i = 0; i < sizeof(jumps) / sizeof(jumps[0]); i++) {
        struct test_client *client = test_client_start(scene.wharfd.socket, 16, 4096);
        wharf_ring_store_cq_head(&client->c->cq_head, jumps[i][1]);
        wharf_ring_store_sq_tail(&client->c->sq_tail, jumps[i][0]);
        wharf_control_wake(client->fd);
        /* A cq_head that lies matters, and is looked at, only when room is needed by it. */
        if (jumps[i][0] <= 16)
            wharf_ring_store_sq_tail(&client->c->sq_tail, 33);
        for (unsigned k = 0; k < 20; k++) {
            wharf_control_wake(client->fd);
            usleep(100);
        }
        test_client_ended(client);
    }
}

Test(wharfd_hostile, jumping_indices)
{
    test_innocent_both_ways(&scene, jump_indices);
}

static void never_reap(void)
{
    struct test_client *clients[8];

    for (unsigned i = 0; i < 8; i++) {
        clients[i] = test_client_start(scene.wharfd.socket, 64, 4096);
        for (unsigned k = 0; k < 64; k++) {
            struct wharf_submission s = {.opcode = (uint8_t)(1 + k % 2)};
            wharf_ring_submit(&clients[i]->ring, &s);
        }
        cr_assert_eq(test_client_publish(clients[i]), 0);
    }
    for (unsigned i = 0; i < 20; i++)
        test_innocent_check(&scene);
    for (unsigned i = 0; i < 8; i++)
        test_client_free(clients[i]);
}

Test(wharfd_hostile, never_reaping)
{
    test_innocent_both_ways(&scene, never_reap);
}

/* Two processes with one session: each has indices of its own, and writes the other's words. */
static void share_a_session(void)
{
    for (unsigned round = 0; round < 20; round++) {
        struct test_client *client = test_client_start(scene.wharfd.socket, 16, MiB);
        pid_t pid = fork();
        struct test_random random = {round * 2 + (pid == 0)};
        for (unsigned i = 0; i < 200; i++) {
            struct wharf_submission s = {.opcode = (uint8_t)(1 + test_random_below(&random, 4)),
                                         .src_nbytes = 64};
            struct wharf_completion completion;
            if (wharf_ring_room(&client->ring) > 0)
                test_client_submit(client, &s);
            wharf_ring_reap(&client->ring, &completion);
            if (i % 50 == 0)
                send(client->fd, "\x08\x01\x42\x00", 4, MSG_DONTWAIT | MSG_NOSIGNAL);
        }
        if (pid == 0)
            _exit(0);
        cr_assert_eq(waitpid(pid, NULL, 0), pid);
        if (round % 2)
            shutdown(client->fd, SHUT_RDWR);
        test_client_free(client);
        test_innocent_check(&scene);
    }
}

Test(wharfd_hostile, forked_clients_that_share_a_session)
{
    test_innocent_both_ways(&scene, share_a_session);
}

/* ---- doorbells ----------------------------------------------------------------------------- */

static bool storm_stops;

static void *storm(void *data)
{
    struct test_client *client = data;
    static const uint8_t bytes[1];

    while (!__atomic_load_n(&storm_stops, __ATOMIC_RELAXED))
        send(client->fd, bytes, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    return NULL;
}

static void storm_doorbells(void)
{
    enum { N = 4 };
    struct test_client *clients[N];
    pthread_t threads[N];

    storm_stops = false;
    for (unsigned i = 0; i < N; i++) {
        /* In all states: before Hello, before the queue, with one. */
        clients[i] = i == 0   ? test_client_connected(scene.wharfd.socket)
                     : i == 1 ? test_client_greeted(scene.wharfd.socket)
                              : test_client_start(scene.wharfd.socket, 8, 4096);
        pthread_create(&threads[i], NULL, storm, clients[i]);
    }
    for (unsigned i = 0; i < 50; i++)
        test_innocent_check(&scene);
    __atomic_store_n(&storm_stops, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < N; i++) {
        pthread_join(threads[i], NULL);
        test_client_free(clients[i]);
    }
}

Test(wharfd_hostile, doorbell_storms)
{
    test_innocent_both_ways(&scene, storm_doorbells);
}

/* ---- packets ------------------------------------------------------------------------------- */

static void send_raw(struct test_client *client, const void *data, size_t nbytes)
{
    cr_assert_eq(send(client->fd, data, nbytes, MSG_NOSIGNAL), (ssize_t)nbytes);
}

static void send_nonsense(void)
{
    struct test_random random = {5};
    static uint8_t packet[8192];

    for (unsigned i = 0; i < 300; i++) {
        struct test_client *client = i % 3 == 0   ? test_client_connected(scene.wharfd.socket)
                                     : i % 3 == 1 ? test_client_greeted(scene.wharfd.socket)
                                                  : test_client_start(scene.wharfd.socket, 4, 4096);
        size_t nbytes = 2 + test_random_below(&random, i % 10 == 0 ? 8000 : 60);
        test_random_fill(&random, packet, nbytes);
        /* A field 1 (id) and a body's key make it look like a request. */
        if (test_random_one_in(&random, 2)) {
            packet[0] = 0x08;
            packet[1] = 0x01;
            packet[2] = (uint8_t)((2 + test_random_below(&random, 8)) << 3 | 2);
        }
        send_raw(client, packet, nbytes);
        shutdown(client->fd, SHUT_WR);
        test_client_ended(client);
    }
}

Test(wharfd_hostile, nonsense_packets)
{
    test_innocent_both_ways(&scene, send_nonsense);
}

static void send_cut_off(void)
{
    static uint8_t packet[WHARF_CONTROL_MAX_NBYTES + 1];
    Wharf__HelloRequest hello = WHARF__HELLO_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    size_t nbytes;

    hello.version = hello.min_version = 1;
    hello.client_name = (char *)"half a hello";
    request.id = 1;
    request.body_case = WHARF__REQUEST__BODY_HELLO;
    request.hello = &hello;
    cr_assert_eq(wharf_control_pack_request(&request, packet, &nbytes), 0);
    for (size_t n = 2; n < nbytes; n++) {
        struct test_client *client = test_client_connected(scene.wharfd.socket);
        send_raw(client, packet, n);
        shutdown(client->fd, SHUT_WR);
        test_client_ended(client);
    }
    struct test_client *client = test_client_greeted(scene.wharfd.socket);
    memset(packet, 0, sizeof(packet));
    send_raw(client, packet, sizeof(packet));
    test_client_ended(client);
    /* Nothing at all is an end. */
    client = test_client_greeted(scene.wharfd.socket);
    cr_assert_eq(send(client->fd, packet, 0, MSG_NOSIGNAL), 0);
    test_client_ended(client);
}

Test(wharfd_hostile, half_messages_and_long_ones)
{
    test_innocent_both_ways(&scene, send_cut_off);
}

/* Replies wait where the client does not read; it gets all of them, in order, when it does. */
static void leave_replies_unread(void)
{
    enum { N = 6, PINGS = 3000 };
    struct test_client *clients[N];
    uint32_t n_sent[N] = {0};
    Wharf__PingRequest ping = WHARF__PING_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    const Wharf__Reply *reply;

    request.body_case = WHARF__REQUEST__BODY_PING;
    request.ping = &ping;
    for (unsigned i = 0; i < N; i++) {
        clients[i] = test_client_greeted(scene.wharfd.socket);
        fcntl(clients[i]->fd, F_SETFL, O_NONBLOCK);
    }
    for (unsigned k = 0; k < PINGS; k++)
        for (unsigned i = 0; i < N; i++)
            n_sent[i] += test_client_send(clients[i], &request, NULL, 0) == 0;
    test_innocent_check(&scene);
    for (unsigned i = 0; i < N; i++) {
        uint32_t last = 1;
        for (uint32_t k = 0; k < n_sent[i]; k++) {
            cr_assert_eq(test_client_receive(clients[i], &reply), 0);
            cr_assert_gt(reply->id, last);
            last = reply->id;
        }
        test_client_free(clients[i]);
    }
}

Test(wharfd_hostile, unread_replies)
{
    test_innocent_both_ways(&scene, leave_replies_unread);
}

/* Three descriptors wait in each reply: they count against the daemon's limit for all. */
static void leave_sessions_unread(void)
{
    enum { N = 60 };
    struct test_client *clients[N];
    Wharf__OpenQueueRequest open = WHARF__OPEN_QUEUE_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;

    open.n_entries = 2;
    open.arena_nbytes = 4096;
    request.body_case = WHARF__REQUEST__BODY_OPEN_QUEUE;
    request.open_queue = &open;
    for (unsigned i = 0; i < N; i++) {
        clients[i] = test_client_greeted(scene.wharfd.socket);
        cr_assert_eq(test_client_send(clients[i], &request, NULL, 0), 0);
    }
    usleep(20000);
    struct test_client *another = test_client_start(scene.other_socket, 4, 4096);
    test_client_free(another);
    for (unsigned i = 0; i < N; i++)
        test_client_free(clients[i]);
}

Test(wharfd_hostile, unread_descriptors)
{
    test_innocent_both_ways(&scene, leave_sessions_unread);
}

/* ---- memory that changes meanwhile --------------------------------------------------------- */

struct scribbler {
    struct test_client *client;
    int memfd;
    bool stop;
    bool punches;
};

static void *scribble(void *data)
{
    struct scribbler *scribbler = data;
    struct test_random random = {9};

    while (!__atomic_load_n(&scribbler->stop, __ATOMIC_RELAXED)) {
        if (scribbler->punches)
            fallocate(scribbler->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      (off_t)test_random_below(&random, 64) * 4096, 65536);
        else
            test_random_fill(&random, scribbler->client->arena + test_random_below(&random, 60000),
                             64);
    }
    return NULL;
}

/* Whatever comes out, each job gets one completion with a result that there is. */
static void run_beside_scribbler(bool punches)
{
    enum { N = 3000 };
    struct test_client *client = test_client_start(scene.wharfd.socket, 16, MiB);
    struct scribbler scribbler = {.client = client, .punches = punches};
    struct wharf_completion completion;
    uLongf nbytes = 60000;
    pthread_t thread;
    uint32_t n_done = 0, n_ok = 0;

    scribbler.memfd = dup(client->arena_fd);
    cr_assert_eq(compress2(client->arena, &nbytes, scene.plain, TEST_INNOCENT_CHUNK, 6), Z_OK);
    pthread_create(&thread, NULL, scribble, &scribbler);
    for (unsigned n_submitted = 0; n_done < N;) {
        bool is_batch = n_submitted % 4 == 0;
        struct wharf_submission s = {
            .opcode = is_batch ? WHARF_OP_BATCH : WHARF_OP_DECODE,
            .codec = WHARF_CODEC_ZLIB,
            .src_offset = is_batch ? 32 : 0,
            .src_nbytes = is_batch ? 32 * 64 : nbytes,
            .dst_offset = 65536,
            .dst_nbytes = is_batch ? 24 * 64 : TEST_INNOCENT_CHUNK,
        };
        if (n_submitted < N && wharf_ring_room(&client->ring) > 0) {
            cr_assert_eq(test_client_submit(client, &s), 0);
            n_submitted++;
            continue;
        }
        cr_assert_eq(test_client_reap(client, &completion), 0);
        cr_assert_leq(completion.result, WHARF_BAD_REQUEST);
        cr_assert_leq(completion.out_nbytes, 64 * MiB);
        n_ok += completion.result == WHARF_OK;
        n_done++;
    }
    __atomic_store_n(&scribbler.stop, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    cr_assert_lt(n_ok, N, "nothing was changed in time");
    close(scribbler.memfd);
    test_client_free(client);
}

Test(wharfd_hostile, memory_rewritten_while_it_is_decoded)
{
    test_innocent_start(&scene, "auto");
    run_beside_scribbler(false);
    test_innocent_finish(&scene);
}

Test(wharfd_hostile, memory_punched_while_it_is_decoded)
{
    test_innocent_start(&scene, "auto");
    run_beside_scribbler(true);
    test_innocent_finish(&scene);
}
