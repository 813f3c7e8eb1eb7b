/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who closes the sockets of clients: what hangs in closing them is its tenant's, and keeps nobody
 * else's waiting.  The processes are played by children that end when the test says so.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/base/config.h"
#include "daemon/base/loop.h"
#include "daemon/base/spawn.h"
#include "daemon/core/core.h"
#include "daemon/core/tenant.h"
#include "daemon/disposable/closer_process.h"
#include "tests/lib/test_wait.h"

enum { MOST = WHARF_CLOSER_MOST_PROCESSES + 1 };

static struct wharf_config config;
static struct wharf_core core;
static struct wharf_loop *loop;
static struct wharf_closer_process *closer_process;
static struct wharf_tenant *hostile, *innocent;

/* What was started. */
static struct {
    pid_t pid;
    unsigned n_sockets;
} started[MOST];
static unsigned n_started;
static int start_error;

/* The daemon's own would run this program again.  The child keeps nothing open that the runner of
 * tests waits for, and does not outlive it. */
int wharf_spawn_self(const char *role, int fd, const int *kept, unsigned n_kept, pid_t *ret_pid)
{
    cr_assert_str_eq(role, "--closer");
    for (unsigned i = 0; i < n_kept; i++)
        cr_assert_geq(fcntl(kept[i], F_GETFD), 0);
    if (start_error)
        return start_error;
    cr_assert_lt(n_started, (unsigned)MOST);
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close_range(0, ~0U, 0);
        for (;;)
            pause();
    }
    cr_assert_gt(pid, 0);
    started[n_started].pid = pid;
    started[n_started++].n_sockets = n_kept;
    *ret_pid = pid;
    (void)fd;
    return 0;
}

static void set_up(void)
{
    wharf_config_init(&config);
    cr_assert_eq(wharf_loop_new(WHARF_LOOP_EPOLL, &loop), 0);
    cr_assert_eq(wharf_core_init(&core, &config, loop), 0);
    cr_assert_eq(wharf_closer_process_new(loop, &core, &closer_process), 0);
    hostile = wharf_tenants_get(&core.tenants, "uid:1", &config);
    innocent = wharf_tenants_get(&core.tenants, "uid:2", &config);
}

static void tear_down(void)
{
    for (unsigned i = 0; i < n_started; i++)
        kill(started[i].pid, SIGKILL);
    wharf_closer_process_free(closer_process);
    wharf_core_deinit(&core);
    wharf_loop_free(loop);
    wharf_config_deinit(&config);
}

static void charge(struct wharf_tenant *tenant, const struct wharf_use *use)
{
    cr_assert_eq(wharf_tenant_charge(tenant, use, NULL), 0);
}

/* The daemon's end of a client that has gone, with `n_plain` packets unread and then, if it is
 * hostile, one with a descriptor. */
static int socket_of_client(unsigned n_plain, bool is_hostile)
{
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec iov = {(void *)"abc", 3};
    struct msghdr header = {.msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = sizeof(control)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    int pair[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    for (unsigned i = 0; i < n_plain; i++)
        cr_assert_eq(send(pair[1], "x", 1, 0), 1);
    *rights = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(rights), &pair[1], sizeof(int));
    if (is_hostile)
        cr_assert_eq(sendmsg(pair[1], &header, 0), 3);
    close(pair[1]);
    return pair[0];
}

/* One whose client has sent a packet of no bytes, with a descriptor or before one. */
static int socket_with_empty_packet(bool is_behind)
{
    _Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec iov = {(void *)"abc", is_behind ? 3 : 0};
    struct msghdr header = {.msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = sizeof(control)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    int pair[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    if (is_behind)
        cr_assert_eq(send(pair[1], "", 0, 0), 0);
    *rights = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(rights), &pair[1], sizeof(int));
    cr_assert_eq(sendmsg(pair[1], &header, 0), is_behind ? 3 : 0);
    close(pair[1]);
    return pair[0];
}

static const struct wharf_use one = {.n_connections = 1, .n_descriptors = 4};

static void take(struct wharf_tenant *tenant, bool is_hostile)
{
    charge(tenant, &one);
    wharf_closer_process_take(closer_process, socket_of_client(3, is_hostile), tenant, &one);
}

static void turn_until_started(unsigned n)
{
    while (n_started < n)
        cr_assert_geq(wharf_loop_turn(loop), 0);
}

static void turn_until_used(const struct wharf_tenant *tenant, uint64_t n_connections)
{
    while (tenant->used.n_connections != n_connections)
        cr_assert_geq(wharf_loop_turn(loop), 0);
}

/* Timers of a lot that has to wait come again and again; each turn of the loop is one. */
static void expect_no_start(void)
{
    unsigned n_before = n_started;

    for (unsigned i = 0; i < 5; i++)
        cr_assert_geq(wharf_loop_turn(loop), 0);
    cr_assert_eq(n_started, n_before);
}

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

/* What has gone in the ordinary way, with wake-ups that nobody has read: it takes no process. */
Test(wharfd_closer, socket_without_descriptors_is_not_charged, .init = set_up, .fini = tear_down,
     .timeout = 600)
{
    int fd = socket_of_client(3, false);

    charge(innocent, &one);
    wharf_closer_process_take(closer_process, fd, innocent, &one);
    cr_assert_eq(innocent->used.n_connections, 0);
    cr_assert_eq(innocent->used.n_descriptors, 0);
    cr_assert(TEST_WAIT(!is_open(fd)));
    cr_assert_eq(n_started, 0);
}

/* An empty packet looked like the end, whatever came behind it or with it. */
Test(wharfd_closer, descriptors_behind_an_empty_packet_are_found, .init = set_up, .fini = tear_down,
     .timeout = 600)
{
    for (unsigned i = 0; i < 2; i++) {
        int fd = socket_with_empty_packet(i);
        charge(hostile, &one);
        wharf_closer_process_take(closer_process, fd, hostile, &one);
        cr_assert_eq(hostile->used.n_connections, i + 1);
    }
    turn_until_started(1);
    cr_assert_eq(started[0].n_sockets, 2);
}

Test(wharfd_closer, empty_packets_alone_are_not_charged, .init = set_up, .fini = tear_down,
     .timeout = 600)
{
    int pair[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    for (unsigned i = 0; i < 5; i++)
        cr_assert_eq(send(pair[1], "", i % 2, 0), (ssize_t)(i % 2));
    close(pair[1]);
    charge(innocent, &one);
    wharf_closer_process_take(closer_process, pair[0], innocent, &one);
    cr_assert_eq(innocent->used.n_connections, 0);
    cr_assert(TEST_WAIT(!is_open(pair[0])));
}

/* The thread that closes them cannot keep up: they are closed all the same. */
Test(wharfd_closer, any_number_of_plain_sockets_is_closed, .init = set_up, .fini = tear_down,
     .timeout = 600)
{
    enum { N = 2000 };

    for (unsigned i = 0; i < N; i++) {
        int fd = socket_of_client(1, false);
        wharf_closer_process_take(closer_process, fd, innocent, NULL);
    }
    int fd = socket_of_client(0, false);
    wharf_closer_process_take(closer_process, fd, innocent, NULL);
    cr_assert(TEST_WAIT(!is_open(fd)));
    cr_assert_eq(n_started, 0);
}

/* Nobody paid for what hung there. */
Test(wharfd_closer, doubtful_socket_is_charged_until_it_is_closed, .init = set_up,
     .fini = tear_down, .timeout = 600)
{
    int fd = socket_of_client(3, true);

    charge(hostile, &one);
    wharf_closer_process_take(closer_process, fd, hostile, &one);
    cr_assert_eq(hostile->used.n_connections, 1);
    turn_until_started(1);
    cr_assert(!is_open(fd), "the core must not be the last to let go");
    cr_assert_eq(hostile->used.n_connections, 1);
    cr_assert_eq(hostile->used.n_descriptors, 4);
    kill(started[0].pid, SIGKILL);
    turn_until_used(hostile, 0);
    cr_assert_eq(hostile->used.n_descriptors, 0);
}

/* Who is not let in is as good a place to hang as who was. */
Test(wharfd_closer, who_was_turned_away_pays_beyond_the_quota, .init = set_up, .fini = tear_down,
     .timeout = 600)
{
    hostile->quota.max_connections = 0;
    wharf_closer_process_take(closer_process, socket_of_client(0, false), hostile, NULL);
    cr_assert_eq(hostile->used.n_connections, 0);
    wharf_closer_process_take(closer_process, socket_of_client(0, true), hostile, NULL);
    cr_assert_eq(hostile->used.n_connections, 1);
    turn_until_started(1);
    kill(started[0].pid, SIGKILL);
    turn_until_used(hostile, 0);
}

/* All sockets were in one queue, and those of one tenant in one process with those of another. */
Test(wharfd_closer, sockets_that_hang_keep_only_their_tenants_waiting, .init = set_up,
     .fini = tear_down, .timeout = 600)
{
    for (unsigned i = 1; i <= WHARF_CLOSER_MOST_HUNG; i++) {
        take(hostile, true);
        turn_until_started(i);
    }
    take(hostile, true);
    expect_no_start();
    cr_assert_eq(hostile->used.n_connections, WHARF_CLOSER_MOST_HUNG + 1);
    /* The hostile one's own plain sockets go the way of all others. */
    take(innocent, true);
    take(innocent, false);
    take(hostile, false);
    turn_until_started(WHARF_CLOSER_MOST_HUNG + 1);
    for (unsigned i = 0; i < n_started; i++)
        cr_assert_eq(started[i].n_sockets, 1);
    expect_no_start();
    kill(started[0].pid, SIGKILL);
    turn_until_started(WHARF_CLOSER_MOST_HUNG + 2);
}

/* A tenant that hangs more and more of them does not fill the daemon's table of descriptors. */
Test(wharfd_closer, so_many_that_wait_get_a_process_in_any_case, .init = set_up, .fini = tear_down,
     .timeout = 600)
{
    unsigned n;

    hostile->quota.max_connections = 2 * WHARF_CLOSER_MOST_SOCKETS;
    hostile->quota.max_descriptors = 8 * WHARF_CLOSER_MOST_SOCKETS;
    for (n = 0; n < WHARF_CLOSER_MOST_HUNG * WHARF_CLOSER_N_SOCKETS; n++)
        take(hostile, true);
    cr_assert_eq(n_started, WHARF_CLOSER_MOST_HUNG);
    cr_assert_eq(started[0].n_sockets, WHARF_CLOSER_N_SOCKETS);
    for (n = 1; n < WHARF_CLOSER_MOST_SOCKETS; n++)
        take(hostile, true);
    cr_assert_eq(n_started, WHARF_CLOSER_MOST_HUNG);
    take(hostile, true);
    cr_assert_eq(n_started, WHARF_CLOSER_MOST_HUNG + 1);
    cr_assert_eq(started[WHARF_CLOSER_MOST_HUNG].n_sockets, WHARF_CLOSER_MOST_SOCKETS);
}

static void set_quota(struct wharf_tenant *tenant, uint64_t n)
{
    tenant->quota.max_connections = n;
    tenant->quota.max_descriptors = 4 * n;
}

/* One tenant could have all processes, and no other one's sockets were closed. */
Test(wharfd_closer, tenant_has_half_of_all_processes_at_most, .init = set_up, .fini = tear_down,
     .timeout = 600)
{
    enum {
        FIRST = WHARF_CLOSER_MOST_HUNG * WHARF_CLOSER_N_SOCKETS,
        REST = (WHARF_CLOSER_MOST_OF_TENANT - WHARF_CLOSER_MOST_HUNG) * WHARF_CLOSER_MOST_SOCKETS,
        MORE = 2000,
    };

    set_quota(hostile, FIRST + REST + MORE);
    for (unsigned n = 0; n < FIRST + REST + MORE; n++) {
        take(hostile, true);
        if (n == 0)
            turn_until_started(1);
    }
    expect_no_start();
    cr_assert_eq(n_started, (unsigned)WHARF_CLOSER_MOST_OF_TENANT);
    cr_assert_eq(hostile->used.n_connections, (uint64_t)(FIRST + REST + MORE));
    cr_assert(!wharf_closer_process_is_full(closer_process), "these are within a quota");
    take(innocent, true);
    turn_until_started(WHARF_CLOSER_MOST_OF_TENANT + 1);
    cr_assert_eq(started[n_started - 1].n_sockets, 1);
    /* One that ends makes room for one, which takes no more than it may at once. */
    kill(started[0].pid, SIGKILL);
    turn_until_started(WHARF_CLOSER_MOST_OF_TENANT + 2);
    cr_assert_eq(started[n_started - 1].n_sockets, 1024);
    expect_no_start();
}

/* They wait, and no others are let in for ever. */
Test(wharfd_closer, sockets_wait_where_no_process_can_be_started, .init = set_up, .fini = tear_down,
     .timeout = 600)
{
    unsigned n = 0;

    start_error = -EAGAIN;
    while (!wharf_closer_process_is_full(closer_process) && n < 10000) {
        wharf_closer_process_take(closer_process, socket_of_client(0, true), hostile, NULL);
        n++;
    }
    cr_assert_eq(n, 1024);
    start_error = 0;
    turn_until_started(1);
    cr_assert_eq(started[0].n_sockets, 1024);
    cr_assert(!wharf_closer_process_is_full(closer_process));
}

/* What is within the quota of one fills nothing that others need. */
Test(wharfd_closer, sockets_of_clients_that_were_let_in_keep_nobody_out, .init = set_up,
     .fini = tear_down, .timeout = 600)
{
    enum { N = 3000 };

    start_error = -EAGAIN;
    set_quota(hostile, N);
    for (unsigned i = 0; i < N; i++)
        take(hostile, true);
    cr_assert(!wharf_closer_process_is_full(closer_process));
    start_error = 0;
    turn_until_started(1);
    cr_assert_eq(started[0].n_sockets, 1024);
    kill(started[0].pid, SIGKILL);
    turn_until_used(hostile, N - 1024);
}
