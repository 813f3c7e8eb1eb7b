/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections that the daemon does not read from at present.  A client that is gone, but whose
 * socket is kept open by what it has sent, is forgotten all the same; one that was only stopped
 * loses nothing.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "encoders/wharf_codec.h"
#include "proto/wharf_result.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_rans.h"
#include "tests/lib/test_unread.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"
#include "tests/lib/test_worker.h"

#define MiB ((uint64_t)1 << 20)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define SHORT "[daemon]\nunread_timeout = 200ms\n"

static struct test_wharfd wharfd;
static int n_fds_at_first; /* with one client */

static void start(const char *io, const char *more)
{
    test_wharfd_start_by(&wharfd, io, more);
    struct test_client *client = test_client_greeted(wharfd.socket);
    n_fds_at_first = test_wharfd_n_fds(&wharfd);
    test_client_free(client);
}

/* Nothing of all that clients had is there any more; and the daemon ends well. */
static void expect_forgotten(void)
{
    struct test_client *client = test_client_greeted_in_time(wharfd.socket);
    char tenant[32];

    snprintf(tenant, sizeof(tenant), "uid:%u", (unsigned)geteuid());
    cr_assert(TEST_WAIT(test_client_metric(client, "wharf_connections", "", tenant) == 1),
              "connections of clients that are gone are kept");
    cr_assert(TEST_WAIT(test_client_metric(client, "wharf_memory_bytes", "", tenant) == 0),
              "memory of clients that are gone is charged");
    cr_assert(TEST_WAIT(test_wharfd_n_fds(&wharfd) <= n_fds_at_first), "descriptors: %d, %d before",
              test_wharfd_n_fds(&wharfd), n_fds_at_first);
    test_client_free(client);
    test_wharfd_finish(&wharfd);
}

/* ---- states in which nothing is read ------------------------------------------------------- */

static struct test_client *client_with_unread_replies(void)
{
    struct test_client *client = test_client_start(wharfd.socket, 16, 64 * MiB);

    test_unread_fill(client);
    return client;
}

/* Its request's descriptor is looked at by a process that was stopped. */
static void send_to_fd_filter(struct test_client *client)
{
    Wharf__RegisterMemoryRequest memory = WHARF__REGISTER_MEMORY_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    int fd = test_memfd(4096, SEALS);

    memory.region = 1;
    memory.kind = WHARF__MEMORY_KIND__MEMORY_KIND_MEMFD;
    memory.nbytes = 4096;
    request.body_case = WHARF__REQUEST__BODY_REGISTER_MEMORY;
    request.register_memory = &memory;
    cr_assert_eq(test_client_send(client, &request, &fd, 1), 0);
    close(fd);
}

/* ---- clients that keep themselves ---------------------------------------------------------- */

static void send_fd(struct test_client *client, int fd)
{
    test_client_send_fds(client, "own", 3, fd, 1);
}

static void expect_all_forgotten(const char *io)
{
    start(io, SHORT);
    test_unread_keep_itself(wharfd.socket, 64 * MiB);
    test_unread_keep_each_other(wharfd.socket, 64 * MiB);
    test_unread_keep_in_another(wharfd.socket, 64 * MiB);
    expect_forgotten();
}

/* Such a client was charged for ever: nothing of it was read, and its end did not show. */
Test(wharfd_unread, clients_that_keep_themselves_are_forgotten)
{
    expect_all_forgotten("auto");
    expect_all_forgotten("epoll");
}

/* A ring of io_uring whose registered file is the client's socket.  Newer kernels do not let it be
 * sent. */
Test(wharfd_unread, ring_that_keeps_a_client)
{
    struct io_uring ring;
    struct iovec iov = {(void *)"own", 3};
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))] = {0};
    struct msghdr header = {.msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = sizeof(control)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);

    if (io_uring_queue_init(4, &ring, 0) < 0)
        cr_skip_test("no io_uring here");
    start("auto", SHORT);
    struct test_client *client = client_with_unread_replies();
    cr_assert_eq(io_uring_register_files(&ring, &client->fd, 1), 0);
    *rights = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(rights), &ring.ring_fd, sizeof(int));
    ssize_t n = sendmsg(client->fd, &header, MSG_NOSIGNAL);
    cr_assert(n == 3 || (n < 0 && errno == EINVAL), "%zd: %s", n, strerror(errno));
    test_client_free(client);
    io_uring_queue_exit(&ring);
    expect_forgotten();
}

static void die_behind_fd_filter(const char *io)
{
    start(io, SHORT);
    struct test_client *client = test_client_start(wharfd.socket, 16, 64 * MiB);
    pid_t filter = test_wharfd_fd_filter(&wharfd);
    test_process_stop(filter);
    send_to_fd_filter(client);
    send_fd(client, client->fd);
    test_client_free(client);
    expect_forgotten();
    kill(filter, SIGKILL);
}

Test(wharfd_unread, client_behind_a_descriptor_that_is_looked_at_is_forgotten)
{
    die_behind_fd_filter("auto");
    die_behind_fd_filter("epoll");
}

/* A daemon that may not answer yet reads nothing at all. */
static void die_before_hello(const char *io)
{
    char path[128];

    start(io, SHORT);
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    snprintf(path, sizeof(path), "%s.lock", wharfd.socket);
    int lock = open(path, O_RDWR | O_CLOEXEC);
    cr_assert_eq(flock(lock, LOCK_EX), 0);
    test_wharfd_restart(&wharfd);
    cr_assert(TEST_WAIT(test_wharfd_n_fds(&wharfd) <= n_fds_at_first), "descriptors are kept");
    struct test_client *witness = test_client_connected(wharfd.socket);
    for (unsigned i = 0; i < 8; i++) {
        struct test_client *client = test_client_connected(wharfd.socket);
        send_fd(client, client->fd);
        test_client_free(client);
    }
    /* Who lives is told to come again; the others were there as long. */
    cr_assert_eq(test_client_hello(witness), -ESHUTDOWN, "a daemon that may not answer keeps it");
    test_client_free(witness);
    cr_assert(TEST_WAIT(test_wharfd_n_fds(&wharfd) <= n_fds_at_first), "descriptors are kept");
    close(lock);
    expect_forgotten();
}

Test(wharfd_unread, clients_of_a_daemon_that_may_not_answer_are_forgotten)
{
    die_before_hello("auto");
    die_before_hello("epoll");
}

Test(wharfd_unread, client_whose_gpu_memory_is_not_imported_is_forgotten)
{
    Wharf__RegisterMemoryRequest memory = WHARF__REGISTER_MEMORY_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    int fd = test_memfd(4096, SEALS);

    test_wharfd_start_gpu(&wharfd, "simt", SHORT);
    n_fds_at_first = INT32_MAX;
    struct test_client *client = test_client_connected(wharfd.socket);
    client->optional_features = 1u << WHARF__FEATURE__FEATURE_GPU_MEMORY;
    cr_assert_eq(test_client_hello(client), 0);
    cr_assert_eq(test_client_open_with(client, 16, 64 * MiB, 0, 0), 0);
    memory.region = 1;
    memory.kind = WHARF__MEMORY_KIND__MEMORY_KIND_GPU;
    memory.nbytes = 4096;
    request.body_case = WHARF__REQUEST__BODY_REGISTER_MEMORY;
    request.register_memory = &memory;
    pid_t worker = test_worker_pid(wharfd.pid);
    test_process_stop(worker);
    cr_assert_eq(test_client_send(client, &request, &fd, 1), 0);
    send_fd(client, client->fd);
    test_client_free(client);
    close(fd);
    client = test_client_greeted(wharfd.socket);
    cr_assert(TEST_WAIT(test_client_metric(client, "wharf_connections", "", NULL) == 1),
              "a client whose import is not answered is kept");
    test_client_free(client);
    /* What the worker has is charged until it lets go of it. */
    kill(worker, SIGCONT);
    expect_forgotten();
}

/* ---- clients that live --------------------------------------------------------------------- */

Test(wharfd_unread, client_whose_model_takes_too_long_may_come_again)
{
    static const struct test_rans_plan largest = {16, 2, 256, 20000, 12, 3000, 1};
    struct test_rans rans = test_rans_new_registered(&largest);
    Wharf__RegisterModelRequest model = WHARF__REGISTER_MODEL_REQUEST__INIT;
    Wharf__Request request = WHARF__REQUEST__INIT;
    const Wharf__Reply *reply;
    int fd = memfd_create("model", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    cr_assert_eq(write(fd, rans.model, rans.model_nbytes), (ssize_t)rans.model_nbytes);
    cr_assert_eq(fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_WRITE), 0);
    start("auto", "[daemon]\nunread_timeout = 1ms\n");
    struct test_client *client = test_client_connected(wharfd.socket);
    client->optional_features = 1u << WHARF__FEATURE__FEATURE_MODELS;
    cr_assert_eq(test_client_hello(client), 0);
    cr_assert_eq(test_client_open_with(client, 16, MiB, 0, 0), 0);
    model.model = 256;
    model.codec = WHARF_CODEC_RANS;
    model.nbytes = rans.model_nbytes;
    request.body_case = WHARF__REQUEST__BODY_REGISTER_MODEL;
    request.register_model = &model;
    cr_assert_eq(test_client_call(client, &request, &fd, 1, &reply), -ESHUTDOWN);
    cr_assert_eq(wharf_ring_load_flags(&client->d->flags) & WHARF_RING_FORFEITED, 0);
    test_client_ended(client);
    close(fd);
    test_rans_free(&rans);
    expect_forgotten();
}

enum { N_JOBS = 16, CHUNK = 4096 };

/* Copies a chunk of the arena to behind all sources. */
static struct wharf_submission job(unsigned i)
{
    return (struct wharf_submission){
        .opcode = WHARF_OP_DECODE,
        .codec = WHARF_CODEC_STORED,
        .user_data = i,
        .src_offset = (uint64_t)i * CHUNK,
        .src_nbytes = CHUNK,
        .dst_offset = (uint64_t)(N_JOBS + i) * CHUNK,
        .dst_nbytes = CHUNK,
    };
}

static void reap_all(struct test_client *client, bool is_done[N_JOBS])
{
    struct wharf_completion completion;

    while (wharf_ring_reap(&client->ring, &completion) == 1)
        is_done[completion.user_data] = completion.result == WHARF_OK;
}

/* As PROTOCOL.md has it. */
static struct test_client *come_again(struct test_client *before, bool is_done[N_JOBS])
{
    Wharf__OpenQueueRequest open = WHARF__OPEN_QUEUE_REQUEST__INIT;
    struct test_client *client = test_client_greeted_in_time(wharfd.socket);

    open.n_entries = 2 * N_JOBS;
    open.arena_nbytes = before->arena_nbytes;
    open.bring_arena = true;
    if (test_client_open(client, &open, before->arena_fd) < 0)
        _exit(5);
    for (unsigned i = 0; i < N_JOBS; i++) {
        struct wharf_completion completion;
        struct wharf_submission s = job(i);
        if (is_done[i])
            continue;
        if (test_client_submit(client, &s) < 0 || test_client_reap(client, &completion) < 0)
            _exit(6);
        is_done[completion.user_data] = completion.result == WHARF_OK;
    }
    return client;
}

/* Some jobs are submitted before the daemon stops reading, some where it does not hear of them. */
static _Noreturn void be_stopped(void)
{
    struct test_client *client = test_client_start(wharfd.socket, 2 * N_JOBS, MiB);
    bool is_done[N_JOBS] = {false};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 0; i < N_JOBS; i++)
        memset(client->arena + (size_t)i * CHUNK, 'a' + (int)i, CHUNK);
    for (unsigned i = 0; i < N_JOBS; i++) {
        struct wharf_submission s = job(i);
        if (i == N_JOBS / 2)
            test_unread_fill(client);
        wharf_ring_submit(&client->ring, &s);
        if (i < N_JOBS / 2)
            test_client_publish(client);
        else
            wharf_ring_publish_submissions(&client->ring);
    }
    raise(SIGSTOP);
    if (test_client_wait_for_end(client) < 0)
        _exit(2);
    if (wharf_ring_load_flags(&client->d->flags) & WHARF_RING_FORFEITED)
        _exit(3);
    reap_all(client, is_done);
    struct test_client *again = come_again(client, is_done);
    for (unsigned i = 0; i < N_JOBS; i++)
        if (!is_done[i] || again->arena[(size_t)i * CHUNK] != 'a' + (int)i ||
            memcmp(again->arena + (size_t)i * CHUNK, again->arena + (size_t)(N_JOBS + i) * CHUNK,
                   CHUNK) != 0)
            _exit(4);
    _exit(0);
}

static void stop_client(const char *io)
{
    int status;

    start(io, SHORT);
    pid_t pid = fork();
    if (pid == 0)
        be_stopped();
    cr_assert_gt(pid, 0);
    cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
    cr_assert(WIFSTOPPED(status), "%x", (unsigned)status);
    cr_assert(TEST_WAIT(test_wharfd_says_now(&wharfd,
                                             "has read no reply for longer than unread_timeout")),
              "a client that reads no reply is kept");
    kill(pid, SIGCONT);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", (unsigned)status);
    expect_forgotten();
}

Test(wharfd_unread, client_that_was_stopped_loses_nothing)
{
    stop_client("auto");
    stop_client("epoll");
}
