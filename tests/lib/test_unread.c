/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/test_unread.h"

#include <errno.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/test_client.h"

static void expect(int result, int expected, const char *what)
{
    if (result == expected)
        return;
    fprintf(stderr, "%s: %s\n", what, strerror(-result));
    abort();
}

static int send_ping(struct test_client *client)
{
    Wharf__PingRequest ping = WHARF__PING_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;

    request.body_case = WHARF__REQUEST__BODY_PING;
    request.ping = &ping;
    return test_client_send(client, &request, NULL, 0);
}

/* What is sent and not read, and how much may be, as the kernel counts them. */
static int unread_nbytes(const struct test_client *client)
{
    int nbytes = 0;

    expect(ioctl(client->fd, SIOCOUTQ, &nbytes) < 0 ? -errno : 0, 0, "what is not read");
    return nbytes;
}

static int room_nbytes(const struct test_client *client)
{
    int nbytes = 0;
    socklen_t size = sizeof(nbytes);

    expect(getsockopt(client->fd, SOL_SOCKET, SO_SNDBUF, &nbytes, &size) < 0 ? -errno : 0, 0,
           "a socket's room");
    return nbytes;
}

/* The client has twice the daemon's room at least.  So three quarters of it full of pings, whose
 * replies are no smaller, are more than the daemon can answer, now or when it comes to them. */
void test_unread_fill(struct test_client *client)
{
    const int nbytes = 1 << 20;

    setsockopt(client->fd, SOL_SOCKET, SO_SNDBUF, &nbytes, sizeof(nbytes));
    int most_nbytes = room_nbytes(client) / 4 * 3;
    while (unread_nbytes(client) < most_nbytes)
        expect(send_ping(client), 0, "a ping");
}

static struct test_client *start(const char *path, uint64_t arena_nbytes)
{
    struct test_client *client = test_client_start(path, 16, arena_nbytes);

    test_unread_fill(client);
    return client;
}

static void send_fd(struct test_client *client, int fd)
{
    expect(test_client_send_fds(client, "own", 3, fd, 1), 0, "a descriptor");
}

void test_unread_keep_itself(const char *path, uint64_t arena_nbytes)
{
    struct test_client *client = start(path, arena_nbytes);

    send_fd(client, client->fd);
    test_client_free(client);
}

void test_unread_keep_each_other(const char *path, uint64_t arena_nbytes)
{
    struct test_client *one = start(path, arena_nbytes), *other = start(path, arena_nbytes);

    send_fd(one, other->fd);
    send_fd(other, one->fd);
    test_client_free(one);
    test_client_free(other);
}

void test_unread_keep_in_another(const char *path, uint64_t arena_nbytes)
{
    struct test_client *client = start(path, arena_nbytes);
    struct test_client carrier;
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        expect(-errno, 0, "a pair of sockets");
    carrier.fd = pair[0];
    send_fd(&carrier, client->fd);
    send_fd(client, pair[1]);
    close(pair[0]);
    close(pair[1]);
    test_client_free(client);
}
