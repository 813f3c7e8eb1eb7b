/* SPDX-License-Identifier: Apache-2.0 */
/* Files and sockets of clients whose close() hangs, or lingers: nobody else waits for it. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/test_client.h"
#include "tests/lib/test_fuse.h"
#include "tests/lib/test_innocent.h"
#include "tests/lib/test_wait.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

/* A filter that only waits for a processor is not as late. */
#define GATE_TIMEOUT "2s"

static struct test_innocent scene;

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

/* A metric of root as a tenant, by its connection: other tenants see only their own. */
static int root_has(struct test_client *root, const char *what)
{
    return (int)test_client_metric(root, what, "", "uid:0");
}

Test(wharfd_hang, files_whose_close_hangs)
{
    enum { N = 4 };
    struct test_fuse fuse;
    pid_t pids[N];

    if (test_fuse_start(&fuse) < 0)
        cr_skip_test("needs root and /dev/fuse");
    scene.gate_timeout = GATE_TIMEOUT;
    test_innocent_start(&scene, "auto");
    struct test_client *root = test_client_greeted(scene.wharfd.socket);
    for (unsigned i = 0; i < N; i++) {
        pids[i] = fork_fuse_client(fuse.folder);
        wait_until_stopped(pids[i]);
        test_innocent_check(&scene);
        cr_assert(test_innocent_can_register(scene.other_socket));
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

/* Many at once wait for the filter together.  Once each of them hung it for its time, one after the
 * other, and others waited for all of them; and when those that hung were let go, it began anew. */
Test(wharfd_hang, many_files_that_hang_hold_others_up_for_two)
{
    enum { N = 24 };
    struct test_fuse fuse;
    pid_t pids[N];

    if (test_fuse_start(&fuse) < 0)
        cr_skip_test("needs root and /dev/fuse");
    scene.gate_timeout = GATE_TIMEOUT;
    test_innocent_start(&scene, "auto");
    struct test_client *root = test_client_greeted(scene.wharfd.socket);
    for (unsigned i = 0; i < N; i++)
        pids[i] = fork_fuse_client(fuse.folder);
    wait_until_stopped(pids[0]);
    cr_assert(test_innocent_can_register(scene.other_socket));
    /* It has waited for no more: those that hung still do. */
    cr_assert_leq(root_has(root, "wharf_hung_gates"), 2);
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
Test(wharfd_hang, files_that_hang_where_none_belong)
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
            struct test_client *client = test_client_greeted(scene.wharfd.socket);
            test_client_send_fds(client, "\x08\x01\x42\x00", i % 2 ? 4 : 1, fd, 1 + 50 * i);
            test_client_wait_for_end(client);
        }
        kill(getpid(), SIGSTOP);
    }
    wait_until_stopped(pid);
    for (unsigned i = 0; i < 5; i++)
        test_innocent_check(&scene);
    cr_assert(test_innocent_can_register(scene.wharfd.socket));
    kill(pid, SIGKILL);
    test_fuse_stop(&fuse);
    waitpid(pid, NULL, 0);
    test_innocent_finish(&scene);
}

/* ---- sockets that linger ------------------------------------------------------------------- */

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
    struct test_client *client = test_client_greeted(scene.wharfd.socket);
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

Test(wharfd_hang, sockets_that_linger_hold_nobody_up)
{
    test_innocent_both_ways(&scene, send_all_lingering);
}

/* ---- who was not let in ------------------------------------------------------------------ */

static int send_null(struct test_client *client)
{
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    int r = wharf_control_send(client->fd, (const uint8_t *)"\0\0\0", 3, &fd, 1, 0);

    close(fd);
    return r;
}

/* Whether the kernel can refuse descriptors (SO_PASSRIGHTS, Linux 6.16). */
static bool can_refuse(void)
{
    int pair[2], value;
    socklen_t nbytes = sizeof(value);

    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    int r = getsockopt(pair[0], SOL_SOCKET, 83, &value, &nbytes);
    close(pair[0]);
    close(pair[1]);
    return r == 0;
}

/* Once, abandoned sockets counted beyond quotas, and many of them locked clients out. */
Test(wharfd_hang, clients_that_are_turned_away_can_leave_no_descriptors)
{
    enum { N = 20 };

    if (!can_refuse())
        cr_skip_test("needs Linux 6.16");
    test_wharfd_start(&scene.wharfd, "[quota]\nmax_connections = 2\n");
    struct test_client *root = test_client_greeted(scene.wharfd.socket);
    struct test_client *reserved[4]; /* all that operators have beyond their quota */
    struct test_client *silent = test_client_connected(scene.wharfd.socket);
    cr_assert_eq(send_null(silent), -EPERM, "its Hello was not answered");
    cr_assert_eq(test_client_ping(root), 0);
    for (unsigned i = 0; i < 4; i++)
        reserved[i] = test_client_greeted(scene.wharfd.socket);
    cr_assert_eq(kill(scene.wharfd.pid, SIGSTOP), 0);
    struct test_client *clients[N];
    for (unsigned i = 0; i < N; i++) {
        clients[i] = test_client_connected(scene.wharfd.socket);
        cr_assert_eq(send_null(clients[i]), -EPERM, "it was not even accepted");
    }
    cr_assert_eq(kill(scene.wharfd.pid, SIGCONT), 0);
    for (unsigned i = 0; i < N; i++)
        test_client_ended(clients[i]);
    cr_assert_eq(root_has(root, "wharf_connections"), 2 + 4);
    for (unsigned i = 0; i < 4; i++)
        test_client_free(reserved[i]);
    test_client_free(silent);
    cr_assert(TEST_WAIT(root_has(root, "wharf_connections") == 1));
    struct test_client *greeted = test_client_greeted(scene.wharfd.socket);
    cr_assert_eq(send_null(greeted), 0);
    test_client_ended(greeted);
    test_client_free(root);
    test_wharfd_finish(&scene.wharfd);
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
    test_client_send_fds(client, "\x08\x01\x42\x00", 4, left, 1);
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
Test(wharfd_hang, sockets_that_hang_are_their_tenants)
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
