/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Descriptors of every kind, where they belong and where they do not; files whose close() hangs.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/test_client.h"
#include "tests/lib/test_fuse.h"
#include "tests/lib/test_innocent.h"
#include "tests/lib/test_random.h"
#include "tests/lib/test_wait.h"

#define MiB ((uint64_t)1 << 20)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

static struct test_innocent scene;

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void send_raw(struct test_client *client, const void *data, size_t nbytes)
{
    cr_assert_eq(send(client->fd, data, nbytes, MSG_NOSIGNAL), (ssize_t)nbytes);
}

/* ---- descriptors --------------------------------------------------------------------------- */

static void send_fds(struct test_client *client, const void *data, size_t nbytes, int fd,
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
    sendmsg(client->fd, &header, MSG_NOSIGNAL);
}

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
        send_fds(client, "x", 1, fd, counts[i]);
        test_client_ended(client);
        client = test_client_greeted(scene.wharfd.socket);
        send_fds(client, "\x08\x01\x42\x00", 4, fd, counts[i]);
        test_client_ended(client);
        if (counts[i] == 1)
            continue;
        client = test_client_start(scene.wharfd.socket, 4, 4096);
        send_fds(client, packet, pack_register(packet, 3, 1, 4096), fd, counts[i]);
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
            send_fds(clients[i], "\x08\x01\x42\x00", 4, fd, 250);
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

/* ---- files that hang ----------------------------------------------------------------------- */

/* A client that offers such a file, and stays alive: what it sent must not die with it. */
static pid_t fork_fuse_client(const char *folder)
{
    char path[128];
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(path, sizeof(path), "%s/file", folder);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct test_client *client = test_client_start(scene.wharfd.socket, 4, 4096);
    int r = fd < 0 ? fd : test_client_register(client, 1, fd, 4096, false);
    /* Not closed: that would hang this process too. */
    syscall(SYS_kill, getpid(), r == -EPIPE || r == -ESHUTDOWN ? SIGSTOP : SIGABRT);
    for (;;)
        pause();
}

static void wait_until_stopped(pid_t pid)
{
    int status;

    cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
    cr_assert(WIFSTOPPED(status), "the client was answered in another way");
}

static int try_good_memory(const char *socket)
{
    struct test_client *client = test_client_start(socket, 4, 4096);
    int fd = test_memfd(4096, SEALS);
    int r = test_client_register(client, 1, fd, 4096, false);

    close(fd);
    test_client_free(client);
    return r;
}

/* Where gates have little time one can be late for nothing, on a machine that does much else: then
 * the client is asked to come again. */
static void register_good_memory(const char *socket)
{
    cr_assert(TEST_WAIT(try_good_memory(socket) == 0));
}

/* Of root as a tenant, of whom `root` is a connection: the innocent client's tenant sees no other.
 */
static int root_has(struct test_client *root, const char *what)
{
    return (int)test_client_metric(root, what, "", "uid:0");
}

Test(wharfd_descriptor, files_whose_close_hangs)
{
    enum { N = 4 };
    struct test_fuse fuse;
    pid_t pids[N];

    if (test_fuse_start(&fuse) < 0)
        cr_skip_test("needs root and /dev/fuse");
    scene.gate_timeout = "300ms";
    test_innocent_start(&scene, "auto");
    struct test_client *root = test_client_greeted(scene.wharfd.socket);
    for (unsigned i = 0; i < N; i++) {
        pids[i] = fork_fuse_client(fuse.folder);
        wait_until_stopped(pids[i]);
        test_innocent_check(&scene);
        register_good_memory(scene.other_socket);
    }
    /* Two hung, then the tenant was refused; others were not. */
    cr_assert_eq(root_has(root, "wharf_hung_gates"), 2);
    test_client_free(root);
    /* The daemon can be killed, and its clients see it: nothing that hangs holds their sockets. */
    test_wharfd_kill(&scene.wharfd);
    cr_assert_eq(test_client_wait_for_end(scene.client), 0);
    test_client_free(scene.client);
    test_wharfd_restart(&scene.wharfd);
    test_innocent_connect(&scene);
    for (unsigned i = 0; i < N; i++)
        kill(pids[i], SIGKILL);
    test_fuse_stop(&fuse);
    for (unsigned i = 0; i < N; i++)
        waitpid(pids[i], NULL, 0);
    test_innocent_finish(&scene);
}

/* Many at once wait for the gate together.  Once each of them hung it for its time, one after the
 * other, and others waited for all of them; and when those that hung were let go, it began anew. */
Test(wharfd_descriptor, many_files_that_hang_hold_others_up_for_two)
{
    enum { N = 24 };
    struct test_fuse fuse;
    pid_t pids[N];

    if (test_fuse_start(&fuse) < 0)
        cr_skip_test("needs root and /dev/fuse");
    scene.gate_timeout = "1s";
    test_innocent_start(&scene, "auto");
    struct test_client *root = test_client_greeted(scene.wharfd.socket);
    for (unsigned i = 0; i < N; i++)
        pids[i] = fork_fuse_client(fuse.folder);
    wait_until_stopped(pids[0]);
    double start_s = now_s();
    register_good_memory(scene.other_socket);
    /* Of 24 s they would have been. */
    cr_assert_lt(now_s() - start_s, 18.0);
    for (unsigned i = 1; i < N; i++)
        wait_until_stopped(pids[i]);
    cr_assert_eq(root_has(root, "wharf_hung_gates"), 2);
    test_fuse_stop(&fuse);
    for (unsigned i = 0; i < N; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    cr_assert(TEST_WAIT(root_has(root, "wharf_hung_gates") == 0));
    test_client_free(root);
    /* They are gone, and forgiven later. */
    struct test_client *client = test_client_start(scene.wharfd.socket, 4, 4096);
    int fd = test_memfd(4096, SEALS);
    int r = test_client_register(client, 1, fd, 4096, false);
    cr_assert(r == -ESHUTDOWN || r == -EPIPE, "%d", r);
    close(fd);
    test_client_free(client);
    test_innocent_finish(&scene);
}

/* The same in a packet that has no use for it, or that is never read: the kernel drops it. */
Test(wharfd_descriptor, files_that_hang_where_none_belong)
{
    struct test_fuse fuse;
    char path[128];

    if (test_fuse_start(&fuse) < 0)
        cr_skip_test("needs root and /dev/fuse");
    test_innocent_start(&scene, "auto");
    pid_t pid = fork();
    if (pid == 0) {
        snprintf(path, sizeof(path), "%s/file", fuse.folder);
        int fd = open(path, O_RDWR);
        for (unsigned i = 0; i < 5; i++) {
            struct test_client *client = i == 0 ? test_client_connected(scene.wharfd.socket)
                                                : test_client_greeted(scene.wharfd.socket);
            send_fds(client, "\x08\x01\x42\x00", i % 2 ? 4 : 1, fd, 1 + 50 * i);
            test_client_wait_for_end(client);
        }
        kill(getpid(), SIGSTOP);
    }
    wait_until_stopped(pid);
    for (unsigned i = 0; i < 5; i++)
        test_innocent_check(&scene);
    register_good_memory(scene.wharfd.socket);
    kill(pid, SIGKILL);
    test_fuse_stop(&fuse);
    waitpid(pid, NULL, 0);
    test_innocent_finish(&scene);
}

/* ---- sockets that linger ------------------------------------------------------------------------
 */

/* A TCP socket with more in it than its peer takes, whose close waits for that for a minute. */
static int lingering_socket(int *ret_listener)
{
    static const struct linger minute = {1, 60};
    static const char zeros[65536];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t nbytes = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    cr_assert(bind(listener, (struct sockaddr *)&address, nbytes) == 0 && listen(listener, 1) == 0);
    cr_assert_eq(getsockname(listener, (struct sockaddr *)&address, &nbytes), 0);
    cr_assert_eq(connect(fd, (struct sockaddr *)&address, nbytes), 0);
    while (send(fd, zeros, sizeof(zeros), MSG_DONTWAIT) > 0) {
    }
    cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &minute, sizeof(minute)), 0);
    *ret_listener = listener;
    return fd;
}

/* Sends it with, or behind, a packet that ends the connection; the daemon has the last reference to
 * it.  Closing the connection was closing that: nobody was served for as long as it lingered. */
static void send_lingering(unsigned how)
{
    struct test_client *client = test_client_connected(scene.wharfd.socket);
    int listener, fd = lingering_socket(&listener);

    cr_assert_eq(kill(scene.wharfd.pid, SIGSTOP), 0);
    if (how == 1)
        cr_assert_eq(wharf_control_send(client->fd, (const uint8_t *)"\xff\xff", 2, NULL, 0, 0), 0);
    cr_assert_eq(
        wharf_control_send(client->fd, (const uint8_t *)"\0\0\0", how == 2 ? 0 : 3, &fd, 1, 0), 0);
    close(fd);
    if (how == 3)
        test_client_free(client);
    cr_assert_eq(kill(scene.wharfd.pid, SIGCONT), 0);
    if (how != 3)
        test_client_ended(client);
    test_innocent_check(&scene);
    close(listener);
}

static void send_all_lingering(void)
{
    for (unsigned how = 0; how < 4; how++)
        send_lingering(how);
}

Test(wharfd_descriptor, sockets_that_linger_hold_nobody_up)
{
    test_innocent_both_ways(&scene, send_all_lingering);
}

/* ---- sockets that hang ---------------------------------------------------------------------- */

/*
 * A client that leaves the last reference to an open file in a socket.  It is let go of when what
 * was written to that file has reached its server, which never answers: but not by the client, who
 * had it open a second time for that.
 */
static pid_t fork_leaving_client(const char *folder, unsigned number)
{
    static const char page[4096];
    char path[128];
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(path, sizeof(path), "%s/%u", folder, number);
    struct test_client *client = test_client_greeted(scene.wharfd.socket);
    cr_assert_eq(kill(scene.wharfd.pid, SIGSTOP), 0);
    int left = open(path, O_RDWR | O_CLOEXEC);
    send_fds(client, "\x08\x01\x42\x00", 4, left, 1);
    close(left);
    int kept = open(path, O_RDWR | O_CLOEXEC);
    cr_assert_eq(pwrite(kept, page, sizeof(page), 0), (ssize_t)sizeof(page));
    cr_assert_eq(kill(scene.wharfd.pid, SIGCONT), 0);
    test_client_wait_for_end(client);
    kill(getpid(), SIGSTOP);
    for (;;)
        pause();
}

/* Besides that of who asks. */
static void wait_for_connections_of_root(struct test_client *root, int n)
{
    cr_assert(TEST_WAIT(root_has(root, "wharf_connections") == n + 1));
}

/* What they took of the daemon was charged to nobody, and they kept others' sockets waiting. */
Test(wharfd_descriptor, sockets_that_hang_are_their_tenants)
{
    enum { N = 4 };
    struct test_fuse fuse;
    pid_t pids[N];

    if (test_fuse_start(&fuse) < 0)
        cr_skip_test("needs root and /dev/fuse");
    test_innocent_start(&scene, "auto");
    struct test_client *root = test_client_greeted(scene.wharfd.socket);
    for (unsigned i = 0; i < N; i++) {
        pids[i] = fork_leaving_client(fuse.folder, i + 1);
        wait_until_stopped(pids[i]);
        test_innocent_check(&scene);
        /* In time that two hang, and the others wait. */
        usleep(300000);
    }
    wait_for_connections_of_root(root, N);
    for (unsigned i = 0; i < 3; i++)
        test_client_free(test_client_start(scene.other_socket, 4, 4096));
    test_innocent_check(&scene);
    cr_assert_eq(root_has(root, "wharf_connections"), N + 1);
    test_fuse_stop(&fuse);
    for (unsigned i = 0; i < N; i++) {
        kill(pids[i], SIGKILL);
        waitpid(pids[i], NULL, 0);
    }
    wait_for_connections_of_root(root, 0);
    test_client_free(root);
    test_innocent_finish(&scene);
}

/* ---- the gate dies ------------------------------------------------------------------------- */

/* Whose packet it had is closed, others notice nothing, and there is a new one when it is needed.
 */
static void kill_gates(void)
{
    struct test_random random = {8};
    unsigned n_good = 0;

    for (unsigned i = 0; i < 60; i++) {
        struct test_client *client = test_client_start(scene.wharfd.socket, 4, 4096);
        int fd = test_memfd(4096, SEALS);
        int r = test_client_register(client, 1, fd, 4096, false);
        pid_t gate = test_wharfd_gate(&scene.wharfd);
        if (r == 0 && gate) {
            /* Before, while or after it looks at the next one. */
            if (test_random_one_in(&random, 2))
                kill(gate, SIGKILL);
            else
                kill(gate, SIGTERM);
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
    register_good_memory(scene.wharfd.socket);
}

Test(wharfd_descriptor, gates_that_are_killed_come_again)
{
    test_innocent_both_ways(&scene, kill_gates);
}
