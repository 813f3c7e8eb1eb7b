/* SPDX-License-Identifier: Apache-2.0 */
/* Drain, stop, and daemons that follow each other. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "encoders/codec.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"
#include "tests/lib/test_worker.h"

#define MiB ((uint64_t)1 << 20)

static struct test_wharfd wharfd;

/* ---- drain, stop --------------------------------------------------------------------------- */

static void submit_long(struct test_client *client, unsigned n, uint64_t nbytes)
{
    for (unsigned i = 0; i < n; i++) {
        struct wharf_submission s = {
            .opcode = WHARF_OP_DECODE,
            .codec = WHARF_CODEC_STORED,
            .src_nbytes = nbytes,
            .dst_offset = 64 * MiB,
            .dst_nbytes = nbytes,
            .user_data = i,
        };
        wharf_ring_submit(&client->ring, &s);
    }
    cr_assert_eq(test_client_publish(client), 0);
    cr_assert(TEST_WAIT(wharf_ring_load_sq_head(&client->d->sq_head) == n), "not all were taken");
}

/* What was taken is completed, what was not is not, and the sum is what was submitted. */
static void check_drained(struct test_client *client, unsigned n_submitted)
{
    struct wharf_completion completion;
    uint32_t n_taken;
    unsigned n = 0;

    cr_assert_eq(test_client_wait_for_end(client), 0);
    n_taken = wharf_ring_load_sq_head(&client->d->sq_head);
    cr_assert_leq(n_taken, n_submitted);
    while (wharf_ring_reap(&client->ring, &completion) == 1) {
        cr_assert_eq(completion.result, WHARF_OK);
        n++;
    }
    cr_assert_eq(n, n_taken);
    cr_assert(wharf_ring_load_flags(&client->d->flags) & WHARF_RING_DRAINING);
}

static void check_stop(bool by_request)
{
    test_wharfd_start_by(&wharfd, "auto", "[daemon]\ndrain_timeout = 60s\n");
    struct test_client *client = test_client_start(wharfd.socket, 64, 128 * MiB);
    struct test_client *idle = test_client_greeted(wharfd.socket);
    int arena_fd = dup(client->arena_fd);
    struct stat st;

    client->arena[0] = 'x';
    submit_long(client, 3, 16 * MiB);
    if (by_request)
        cr_assert_eq(test_client_drain(idle), 0);
    else
        kill(wharfd.pid, SIGTERM);
    cr_assert_eq(test_client_wait_for_end(idle), 0);
    check_drained(client, 3);
    cr_assert_eq(client->arena[64 * MiB], 'x', "its arena is left to the client");
    cr_assert_eq(fstat(arena_fd, &st), 0);
    cr_assert_gt(st.st_blocks, 0);
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    cr_assert_neq(access(wharfd.socket, F_OK), 0);
    test_client_free(client);
    test_client_free(idle);
    close(arena_fd);
    test_wharfd_remove(&wharfd);
}

Test(wharfd_stop, sigterm_finishes_jobs)
{
    check_stop(false);
}

Test(wharfd_stop, drain_request_finishes_jobs)
{
    check_stop(true);
}

Test(wharfd_stop, drain_ends_after_its_timeout)
{
    test_wharfd_start_by(&wharfd, "auto", "[daemon]\ndrain_timeout = 1ms\n[cpu]\nworkers = 1\n");
    struct test_client *client = test_client_start(wharfd.socket, 64, TEST_CLIENT_ENDLESS_NBYTES);

    test_client_begin_endless(client, 1, 0);
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    cr_assert_eq(test_client_wait_for_end(client), 0);
    cr_assert(test_wharfd_says(&wharfd, "jobs are left undone"));
    test_client_free(client);
    test_wharfd_remove(&wharfd);
}

Test(wharfd_stop, second_signal_ends_at_once)
{
    test_wharfd_start_by(&wharfd, "auto", "[daemon]\ndrain_timeout = 10min\n[cpu]\nworkers = 1\n");
    struct test_client *client = test_client_start(wharfd.socket, 64, TEST_CLIENT_ENDLESS_NBYTES);

    test_client_begin_endless(client, 1, 0);
    kill(wharfd.pid, SIGINT);
    cr_assert(test_wharfd_says(&wharfd, "finishing jobs"));
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    test_client_free(client);
    test_wharfd_remove(&wharfd);
}

Test(wharfd_stop, only_root_and_its_own_user_may_drain)
{
    if (geteuid() != 0)
        cr_skip_test("needs another user's process: run as root");
    test_wharfd_start_by(&wharfd, "auto", "[daemon]\nsocket_mode = 0666\n");
    cr_assert_eq(chmod(wharfd.folder, 0755), 0);
    cr_assert_eq(chmod(wharfd.socket, 0666), 0);
    struct test_client *mine = test_client_greeted(wharfd.socket);
    cr_assert_eq(seteuid(65534), 0);
    struct test_client *client = test_client_greeted(wharfd.socket);
    cr_assert_eq(test_client_drain(client), -EPERM);
    /* Nor may it see others' numbers. */
    cr_assert_eq(test_client_metric(client, "wharf_connections", "", "uid:65534"), 1);
    cr_assert_eq(test_client_metric(client, "wharf_connections", "", "uid:0"), -1);
    cr_assert_eq(seteuid(0), 0);
    cr_assert_eq(test_client_metric(mine, "wharf_connections", "", "uid:65534"), 1);
    test_client_free(client);
    test_client_free(mine);
    test_wharfd_finish(&wharfd);
}

/* ---- several daemons ----------------------------------------------------------------------- */

Test(wharfd_stop, second_daemon_on_the_same_socket_is_refused)
{
    test_wharfd_start_by(&wharfd, "auto", "");
    struct test_wharfd second = wharfd;

    snprintf(second.log, sizeof(second.log), "%s/log2", wharfd.folder);
    test_wharfd_spawn(&second);
    cr_assert_eq(test_wharfd_wait(&second), 1);
    cr_assert(test_wharfd_says(&second, "is served by another daemon"));
    struct test_client *client = test_client_greeted(wharfd.socket);
    test_client_free(client);
    test_wharfd_finish(&wharfd);
}

/* What a cleaner of temporary files leaves: the first daemon has locks of files that are gone, and
 * the second one others.  It took the path away. */
Test(wharfd_stop, second_daemon_is_refused_when_the_locks_were_removed)
{
    char path[128];

    test_wharfd_start_by(&wharfd, "auto", "");
    struct test_wharfd second = wharfd;
    snprintf(path, sizeof(path), "%s.lock", wharfd.socket);
    cr_assert_eq(unlink(path), 0);
    snprintf(path, sizeof(path), "%s.listen", wharfd.socket);
    cr_assert_eq(unlink(path), 0);
    snprintf(second.log, sizeof(second.log), "%s/log2", wharfd.folder);
    test_wharfd_spawn(&second);
    cr_assert_eq(test_wharfd_wait(&second), 1);
    struct test_client *client = test_client_greeted(wharfd.socket);
    test_client_free(client);
    test_wharfd_finish(&wharfd);
}

/* The process that ends next is one of these. */
static void expect_end_of_one(struct test_wharfd *daemons, unsigned n)
{
    pid_t pid = waitpid(-1, NULL, 0);

    for (unsigned i = 0; i < n; i++)
        if (daemons[i].pid == pid)
            daemons[i].pid = 0;
}

static void expect_hello(void)
{
    struct test_client *client = test_client_new();

    cr_assert(TEST_WAIT(test_client_connect(client, wharfd.socket) == 0));
    cr_assert_eq(test_client_hello(client), 0);
    test_client_free(client);
}

/* All three stayed, each having removed the socket of the one before, and the one whose socket
 * remained waited for the lock of another. */
Test(wharfd_stop, one_of_those_that_start_together_serves, .timeout = 600)
{
    struct test_wharfd daemons[3];

    test_wharfd_prepare(&wharfd, "");
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < 3; i++) {
            daemons[i] = wharfd;
            test_wharfd_spawn(&daemons[i]);
        }
        for (unsigned i = 0; i < 2; i++)
            expect_end_of_one(daemons, 3);
        expect_hello();
        for (unsigned i = 0; i < 3; i++)
            if (daemons[i].pid)
                test_wharfd_kill(&daemons[i]);
    }
    test_wharfd_remove(&wharfd);
}

/* A client whose Hello is not answered within that. */
static struct test_client *client_without_answer(unsigned ms)
{
    struct test_client *client = test_client_new();
    Wharf__HelloRequest hello = WHARF__HELLO_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    char byte;

    cr_assert(TEST_WAIT(test_client_connect(client, wharfd.socket) == 0));
    hello.version = hello.min_version = 1;
    request.body_case = WHARF__REQUEST__BODY_HELLO;
    request.hello = &hello;
    cr_assert_eq(test_client_send(client, &request, NULL, 0), 0);
    usleep(ms * 1000);
    cr_assert_lt(recv(client->fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK), 0);
    cr_assert_eq(errno, EAGAIN);
    return client;
}

static void expect_answer(struct test_client *client)
{
    const Wharf__Reply *reply;

    cr_assert_eq(test_client_receive(client, &reply), 0);
    cr_assert_eq(reply->body_case, WHARF__REPLY__BODY_HELLO);
    test_client_free(client);
}

/* Something of an earlier daemon lives on, as long as what is returned is open. */
static int start_too_early(const char *config)
{
    char path[128];

    test_wharfd_start_by(&wharfd, "auto", config);
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    snprintf(path, sizeof(path), "%s.lock", wharfd.socket);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    cr_assert_eq(flock(fd, LOCK_EX), 0);
    test_wharfd_restart(&wharfd);
    return fd;
}

Test(wharfd_stop, hello_is_not_answered_while_an_earlier_daemon_lives)
{
    /* Far above what is between connecting and Hello where a machine does much else. */
    int fd = start_too_early("[daemon]\nhello_timeout = 3s\n");
    struct test_client *client = client_without_answer(3500);

    close(fd);
    expect_answer(client);
    test_wharfd_finish(&wharfd);
}

/* Clients that had gone meanwhile kept their places in max_connections until then; as who looks
 * whether the daemon is up did, who has one of two. */
Test(wharfd_stop, client_that_goes_is_noticed_while_an_earlier_daemon_lives)
{
    int fd = start_too_early("[total]\nmax_connections = 2\n");
    struct test_client *client = client_without_answer(300);

    cr_assert_eq(shutdown(client->fd, SHUT_WR), 0);
    test_client_ended(client);
    client = client_without_answer(300);
    close(fd);
    expect_answer(client);
    test_wharfd_finish(&wharfd);
}

/* Who drains cannot see to it later: it made the next daemon's promise a lie. */
Test(wharfd_stop, lock_that_was_removed_is_made_again_by_who_drains)
{
    struct test_wharfd first;
    char path[128];

    test_wharfd_start_by(&wharfd, "auto", "[daemon]\ndrain_timeout = 10min\n");
    struct test_client *client = test_client_start(wharfd.socket, 64, TEST_CLIENT_ENDLESS_NBYTES);
    test_client_begin_endless(client, 1, 0);
    snprintf(path, sizeof(path), "%s.lock", wharfd.socket);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(kill(wharfd.pid, SIGTERM), 0);
    while (!(wharf_ring_load_flags(&client->d->flags) & WHARF_RING_DRAINING))
        usleep(100);
    test_process_stop(wharfd.pid);
    cr_assert_eq(access(path, F_OK), 0);
    first = wharfd;
    snprintf(wharfd.log, sizeof(wharfd.log), "%s/log2", wharfd.folder);
    test_wharfd_spawn(&wharfd);
    struct test_client *next = client_without_answer(300);
    cr_assert_eq(kill(first.pid, SIGCONT), 0);
    /* Who wanted that much goes. */
    test_client_free(client);
    cr_assert_eq(test_wharfd_wait(&first), 0);
    expect_answer(next);
    test_wharfd_finish(&wharfd);
}
