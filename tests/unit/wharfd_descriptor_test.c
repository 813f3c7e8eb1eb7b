/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of every kind, where they belong and where they do not; and filters that die. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "tests/lib/test_client.h"
#include "tests/lib/test_innocent.h"
#include "tests/lib/test_random.h"

#define MiB ((uint64_t)1 << 20)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

static struct test_innocent scene;

static void send_raw(struct test_client *client, const void *data, size_t nbytes)
{
    cr_assert_eq(send(client->fd, data, nbytes, MSG_NOSIGNAL), (ssize_t)nbytes);
}

/* ---- descriptors --------------------------------------------------------------------------- */

static size_t pack_register(uint8_t *packet, uint32_t id, uint32_t region, uint64_t nbytes)
{
    Wharf__RegisterMemoryRequest memory = WHARF__REGISTER_MEMORY_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    size_t packet_nbytes;

    memory.region = region;
    memory.kind = WHARF__MEMORY_KIND__MEMORY_KIND_MEMFD;
    memory.nbytes = nbytes;
    request.id = id;
    request.body_case = WHARF__REQUEST__BODY_REGISTER_MEMORY;
    request.register_memory = &memory;
    cr_assert_eq(wharf_control_pack_request(&request, packet, &packet_nbytes), 0);
    return packet_nbytes;
}

static void send_descriptors_where_none_belong(void)
{
    uint8_t packet[WHARF_CONTROL_MAX_NBYTES];
    static const unsigned counts[] = {1, 2, 8, 9, 253};
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (unsigned i = 0; i < 5; i++) {
        /* With a wake-up, with a ping, and too many with a request for one. */
        struct test_client *client = test_client_start(scene.wharfd.socket, 4, 4096);
        test_client_send_fds(client, "x", 1, fd, counts[i]);
        test_client_ended(client);
        client = test_client_greeted(scene.wharfd.socket);
        test_client_send_fds(client, "\x08\x01\x42\x00", 4, fd, counts[i]);
        test_client_ended(client);
        if (counts[i] == 1)
            continue;
        client = test_client_start(scene.wharfd.socket, 4, 4096);
        test_client_send_fds(client, packet, pack_register(packet, 3, 1, 4096), fd, counts[i]);
        test_client_ended(client);
    }
    /* And none where one belongs. */
    struct test_client *client = test_client_start(scene.wharfd.socket, 4, 4096);
    send_raw(client, packet, pack_register(packet, 3, 1, 4096));
    test_client_ended(client);
    close(fd);
}

Test(wharfd_descriptor, descriptors_where_none_belong)
{
    test_innocent_both_ways(&scene, send_descriptors_where_none_belong);
}

/* Packets that nobody reads, full of descriptors. */
static void flood_descriptors(void)
{
    enum { N = 8 };
    struct test_client *clients[N];
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (unsigned i = 0; i < N; i++) {
        clients[i] = test_client_greeted(scene.wharfd.socket);
        fcntl(clients[i]->fd, F_SETFL, O_NONBLOCK);
    }
    for (unsigned k = 0; k < 20; k++)
        for (unsigned i = 0; i < N; i++)
            test_client_send_fds(clients[i], "\x08\x01\x42\x00", 4, fd, 250);
    test_innocent_check(&scene);
    for (unsigned i = 0; i < N; i++)
        test_client_ended(clients[i]);
    close(fd);
}

Test(wharfd_descriptor, descriptor_floods)
{
    test_innocent_both_ways(&scene, flood_descriptors);
}

static int memfd_read_only(void)
{
    char path[64];
    int fd = test_memfd(4096, SEALS);

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int read_only = open(path, O_RDONLY | O_CLOEXEC);
    close(fd);
    return read_only;
}

static void offer(struct test_client *client, int fd, int expected, const char *what)
{
    cr_assert_geq(fd, 0, "no %s here", what);
    int r = test_client_register(client, 1, fd, 4096, false);
    cr_assert_eq(r, expected, "%s: %d (%s)", what, r, client->error);
    /* What can only be read is good for that. */
    r = test_client_register(client, 1, fd, 4096, true);
    cr_assert_eq(r, expected == -EACCES ? 0 : expected, "%s, read-only: %d", what, r);
    if (r == 0)
        cr_assert_eq(test_client_unregister(client, 1), 0);
    close(fd);
}

/* Newer kernels do not let it be sent at all. */
static void offer_uring(struct test_client *client)
{
    struct io_uring_params params = {.flags = 0};
    int fd = (int)syscall(SYS_io_uring_setup, 4, &params);
    int r = fd < 0 ? -EBADF : test_client_register(client, 1, fd, 4096, false);

    cr_assert(r == -EBADF || r == -EINVAL, "%d", r);
    if (fd >= 0)
        close(fd);
}

static void offer_all_kinds(void)
{
    struct test_client *client = test_client_start(scene.wharfd.socket, 4, 4096);
    Wharf__OpenQueueRequest open_queue = WHARF__OPEN_QUEUE_REQUEST__INIT;
    int pipes[2], pair[2];
    sigset_t set;

    sigemptyset(&set);
    cr_assert_eq(pipe2(pipes, O_CLOEXEC), 0);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    offer(client, pipes[0], -EBADF, "pipe");
    offer(client, pipes[1], -EBADF, "pipe");
    offer(client, pair[0], -EBADF, "socket");
    offer(client, dup(client->fd), -EBADF, "the control socket itself");
    offer(client, epoll_create1(EPOLL_CLOEXEC), -EBADF, "epoll");
    offer(client, eventfd(0, EFD_CLOEXEC), -EBADF, "eventfd");
    offer(client, timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), -EBADF, "timerfd");
    offer(client, signalfd(-1, &set, SFD_CLOEXEC), -EBADF, "signalfd");
    offer(client, (int)syscall(SYS_pidfd_open, getpid(), 0), -EBADF, "pidfd");
    offer_uring(client);
    offer(client, open("/dev/zero", O_RDWR | O_CLOEXEC), -EBADF, "device");
    offer(client, open("/tmp", O_RDONLY | O_CLOEXEC), -EBADF, "folder");
    offer(client, open("/tmp", O_PATH | O_CLOEXEC), -EBADF, "path");
    offer(client, open(scene.wharfd.config, O_RDWR | O_CLOEXEC), -EBADF, "file");
    offer(client, memfd_create("unsealed", MFD_CLOEXEC), -EPERM, "memfd without seals");
    offer(client, test_memfd(4096, F_SEAL_SHRINK), -EPERM, "memfd that can grow");
    offer(client, test_memfd(4096, F_SEAL_GROW), -EPERM, "memfd that can shrink");
    offer(client, test_memfd(100, SEALS), -EINVAL, "memfd that is too short");
    offer(client, test_memfd(0, SEALS), -EINVAL, "empty memfd");
    offer(client, memfd_read_only(), -EACCES, "memfd opened for reading");
    /* Its own D can be read, as anything can that is sealed. */
    cr_assert_eq(test_client_register(client, 1, client->d_fd, 4096, false), -EPERM);
    cr_assert_eq(test_client_register(client, 1, client->d_fd, 4096, true), 0);
    close(pair[1]);
    test_client_free(client);
    /* The same way for arenas. */
    client = test_client_greeted(scene.wharfd.socket);
    open_queue.n_entries = 4;
    open_queue.arena_nbytes = 4096;
    open_queue.bring_arena = true;
    int fd = eventfd(0, EFD_CLOEXEC);
    cr_assert_eq(test_client_open(client, &open_queue, fd), -EBADF);
    close(fd);
    fd = test_memfd(4096, SEALS | F_SEAL_WRITE);
    cr_assert_eq(test_client_open(client, &open_queue, fd), -EPERM);
    close(fd);
    fd = test_memfd(8192, SEALS);
    cr_assert_eq(test_client_open(client, &open_queue, fd), 0);
    close(fd);
    test_client_free(client);
}

Test(wharfd_descriptor, descriptors_of_all_kinds)
{
    test_innocent_both_ways(&scene, offer_all_kinds);
}

Test(wharfd_descriptor, memfd_of_huge_pages)
{
    int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);

    if (fd < 0)
        cr_skip_test("this kernel has no huge pages");
    test_innocent_start(&scene, "auto");
    struct test_client *client = test_client_start(scene.wharfd.socket, 4, 4096);
    cr_assert_eq(ftruncate(fd, (off_t)(4 * MiB)), 0);
    cr_assert_eq(fcntl(fd, F_ADD_SEALS, SEALS), 0);
    cr_assert_eq(test_client_register(client, 1, fd, 4 * MiB, false), -EBADF);
    test_client_free(client);
    close(fd);
    test_innocent_finish(&scene);
}

/* ---- the filter dies ------------------------------------------------------------------------- */

/* Only the packet's sender is closed; a new filter starts when it is needed. */
static void kill_fd_filters(void)
{
    struct test_random random = {8};
    unsigned n_good = 0;

    for (unsigned i = 0; i < 60; i++) {
        struct test_client *client = test_client_start(scene.wharfd.socket, 4, 4096);
        int fd = test_memfd(4096, SEALS);
        int r = test_client_register(client, 1, fd, 4096, false);
        /* There is one, which has just answered. */
        pid_t filter = r == 0 ? test_wharfd_fd_filter(&scene.wharfd) : 0;
        if (r == 0 && filter) {
            /* Before, while or after it looks at the next one. */
            if (test_random_one_in(&random, 2))
                kill(filter, SIGKILL);
            else
                kill(filter, SIGTERM);
            usleep((useconds_t)test_random_below(&random, 300));
            r = test_client_register(client, 2, fd, 4096, false);
        }
        cr_assert(r == 0 || r == -EPIPE || r == -ESHUTDOWN, "%d (%s)", r, client->error);
        n_good += r == 0;
        close(fd);
        test_client_free(client);
        test_innocent_check(&scene);
    }
    cr_assert_gt(n_good, 0);
    cr_assert(test_innocent_can_register(scene.wharfd.socket));
}

Test(wharfd_descriptor, fd_filters_that_are_killed_come_again)
{
    test_innocent_both_ways(&scene, kill_fd_filters);
}
