/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon in which one tenant has asked for much before another one asks. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/test_client.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"
#include "tests/lib/test_worker.h"

enum { N_CONNECTIONS = 200, N_PINGS = 50 };

static struct test_wharfd wharfd;
static struct test_client *storm[N_CONNECTIONS]; /* of another tenant */

static unsigned count_replies(struct test_client *client)
{
    uint8_t packet[WHARF_CONTROL_MAX_NBYTES];
    unsigned n = 0;
    ssize_t r;

    /* That the daemon has closed before it read everything is said once. */
    while ((r = recv(client->fd, packet, sizeof(packet), 0)) > 0 || (r < 0 && errno == ECONNRESET))
        n += r > 0 && packet[0] == 0x08;
    return n;
}

static void start(const char *io, bool opens)
{
    char path[128], more[512];

    snprintf(path, sizeof(path), "/tmp/wharf-fair.%d", (int)getpid());
    snprintf(more, sizeof(more), "[listen storm]\npath = %s\ntenant = socket\n", path);
    test_wharfd_start_by(&wharfd, io, more);
    for (unsigned i = 0; i < N_CONNECTIONS; i++)
        storm[i] = opens ? test_client_start(path, 4, 4096) : test_client_greeted(path);
}

static void send_ping(struct test_client *client)
{
    Wharf__PingRequest ping = WHARF__PING_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;

    request.body_case = WHARF__REQUEST__BODY_PING;
    request.ping = &ping;
    cr_assert_eq(test_client_send(client, &request, NULL, 0), 0);
}

static void send_drain(struct test_client *client)
{
    Wharf__DrainRequest drain = WHARF__DRAIN_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;

    request.body_case = WHARF__REQUEST__BODY_DRAIN;
    request.drain = &drain;
    cr_assert_eq(test_client_send(client, &request, NULL, 0), 0);
}

static void send_registration(struct test_client *client, int fd)
{
    Wharf__RegisterMemoryRequest memory = WHARF__REGISTER_MEMORY_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;

    memory.region = 1;
    memory.kind = WHARF__MEMORY_KIND__MEMORY_KIND_MEMFD;
    memory.nbytes = 4096;
    request.body_case = WHARF__REQUEST__BODY_REGISTER_MEMORY;
    request.register_memory = &memory;
    cr_assert_eq(test_client_send(client, &request, &fd, 1), 0);
}

/* What the storm was answered is what came before the daemon was told to drain. */
static void expect_few_answers(struct test_client *client)
{
    unsigned n_answered = 0;

    kill(wharfd.pid, SIGCONT);
    for (unsigned i = 0; i < N_CONNECTIONS; i++) {
        n_answered += count_replies(storm[i]);
        test_client_free(storm[i]);
    }
    test_client_free(client);
    cr_expect_lt(n_answered, N_CONNECTIONS / 2, "%u", n_answered);
    cr_assert_eq(test_wharfd_wait(&wharfd), 0);
    test_wharfd_remove(&wharfd);
}

/* One tenant has requests waiting on all of its connections when another one asks. */
static void ask_behind_a_storm(const char *io)
{
    start(io, false);
    struct test_client *client = test_client_greeted(wharfd.socket);
    test_process_stop(wharfd.pid);
    for (unsigned i = 0; i < N_CONNECTIONS; i++)
        for (unsigned k = 0; k < N_PINGS; k++)
            send_ping(storm[i]);
    send_drain(client);
    expect_few_answers(client);
}

/* One connection after the other had its turn, whoever's they were. */
Test(wharfd_fair_requests, request_does_not_wait_for_all_connections_of_another_tenant)
{
    ask_behind_a_storm("auto");
    ask_behind_a_storm("epoll");
}

static void register_behind_a_storm(const char *io)
{
    int fd = test_memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW);

    start(io, true);
    struct test_client *client = test_client_start(wharfd.socket, 4, 4096);
    test_process_stop(wharfd.pid);
    for (unsigned i = 0; i < N_CONNECTIONS; i++)
        send_registration(storm[i], fd);
    send_registration(client, fd);
    send_drain(client);
    close(fd);
    expect_few_answers(client);
}

/* So they did at the filter. */
Test(wharfd_fair_requests, registration_does_not_wait_for_all_connections_of_another_tenant)
{
    register_behind_a_storm("auto");
    register_behind_a_storm("epoll");
}

/* The filter is asked for them by the tenants' turns as well: all of the storm's wait there when
 * another tenant's one comes, since the daemon has gone round all connections by then. */
Test(wharfd_fair_requests, registration_does_not_wait_for_all_that_the_gate_was_asked_before)
{
    int fd = test_memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW);

    start("auto", true);
    struct test_client *client = test_client_start(wharfd.socket, 4, 4096);
    pid_t filter = test_wharfd_fd_filter(&wharfd);
    test_process_stop(filter);
    for (unsigned i = 0; i < N_CONNECTIONS; i++)
        send_registration(storm[i], fd);
    for (unsigned i = 0; i < 2 * N_CONNECTIONS; i++)
        cr_assert_eq(test_client_ping(client), 0);
    send_registration(client, fd);
    send_drain(client);
    close(fd);
    kill(filter, SIGCONT);
    expect_few_answers(client);
}

/* A client that rings with nothing in its ring is not listened to for a while, twice as long each
 * time: its packets, of which a visit takes sixteen, last for longer than the holds between. */
Test(wharfd_fair_requests, doorbells_for_nothing_are_heard_ever_more_seldom)
{
    enum { N_DOORBELLS = 200, HOLDS_MS = 1 + 2 + 4 + 8 + 7 * 16 };
    static const char byte;

    test_wharfd_start_by(&wharfd, "auto", "");
    struct test_client *observer = test_client_greeted(wharfd.socket);
    struct test_client *client = test_client_start(wharfd.socket, 4, 4096);
    test_process_stop(wharfd.pid);
    for (unsigned i = 0; i < N_DOORBELLS; i++)
        cr_assert_eq(send(client->fd, &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL), 1);
    uint64_t begun_ns = wharf_now_ns();
    kill(wharfd.pid, SIGCONT);
    cr_assert(
        TEST_WAIT(test_client_metric(observer, "wharf_doorbells_total", "", NULL) >= N_DOORBELLS));
    cr_assert_geq(wharf_now_ns() - begun_ns, HOLDS_MS * (uint64_t)WHARF_NS_PER_MS);
    test_client_free(client);
    test_client_free(observer);
    test_wharfd_finish(&wharfd);
}
