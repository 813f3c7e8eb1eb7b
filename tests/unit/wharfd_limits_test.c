/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Daemons that are not given everything: io_uring refused by a system call filter, few open files,
 * no locked memory.  What is set for a test's own process holds for the daemon that it starts.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "encoders/wharf_codec.h"
#include "proto/wharf_result.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_wharfd.h"

static struct test_wharfd wharfd;

static void expect_service(void)
{
    struct test_client *client = test_client_start(wharfd.socket, 8, 65536);
    struct wharf_completion completion;
    struct wharf_submission s = {
        .opcode = WHARF_OP_DECODE,
        .codec = WHARF_CODEC_STORED,
        .src_nbytes = 1000,
        .dst_offset = 4096,
        .dst_nbytes = 1000,
    };

    memset(client->arena, 'x', 1000);
    for (unsigned i = 0; i < 20; i++) {
        client->arena[4096 + 999] = 0;
        cr_assert_eq(test_client_submit(client, &s), 0);
        cr_assert_eq(test_client_reap(client, &completion), 0);
        cr_assert_eq(completion.result, WHARF_OK);
        cr_assert_eq(client->arena[4096 + 999], 'x');
        cr_assert_eq(test_client_ping(client), 0);
        usleep(1000);
    }
    int fd = test_memfd(4096, F_SEAL_SHRINK | F_SEAL_GROW);
    cr_assert_eq(test_client_register(client, 1, fd, 4096, false), 0);
    close(fd);
    test_client_free(client);
}

/* ---- io_uring ------------------------------------------------------------------------------ */

/* As containers have it. */
static void refuse_io_uring(int error)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, SYS_io_uring_setup, 0, 2),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, SYS_io_uring_register, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

    cr_assert_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        cr_skip_test("this kernel has no system call filters");
    cr_assert_lt(syscall(SYS_io_uring_setup, 1, NULL), 0);
    cr_assert_eq(errno, error);
}

static void check_refused(int error)
{
    refuse_io_uring(error);
    test_wharfd_start_by(&wharfd, "auto", "");
    cr_assert(test_wharfd_says(&wharfd, "io_uring does not work here, so epoll is used"));
    cr_assert(test_wharfd_says(&wharfd, "by epoll"));
    expect_service();
    test_wharfd_finish(&wharfd);
}

Test(wharfd_limits, io_uring_that_is_forbidden_is_done_without)
{
    check_refused(EPERM);
}

Test(wharfd_limits, io_uring_that_is_not_there_is_done_without)
{
    check_refused(ENOSYS);
}

/* Who asks for it by name is told. */
Test(wharfd_limits, io_uring_that_is_wanted_and_refused_is_an_error)
{
    test_wharfd_start_by(&wharfd, "io_uring", "");
    expect_service();
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    refuse_io_uring(EPERM);
    test_wharfd_spawn(&wharfd);
    cr_assert_eq(test_wharfd_wait(&wharfd), 1);
    cr_assert(test_wharfd_says(&wharfd, "io_uring does not work here"));
    test_wharfd_remove(&wharfd);
}

/* ---- open files ---------------------------------------------------------------------------- */

static void limit(int resource, rlim_t value)
{
    struct rlimit rlimit = {value, value};

    cr_assert_eq(setrlimit(resource, &rlimit), 0);
}

static double n_connections(struct test_client *client)
{
    char tenant[32];

    snprintf(tenant, sizeof(tenant), "uid:%u", (unsigned)getuid());
    return test_client_metric(client, "wharf_connections", "", tenant);
}

/* As many connections as descriptors allow are served, the others are told, and all is well again
 * when some have gone. */
Test(wharfd_limits, few_open_files_are_few_connections)
{
    /* 64 are the daemon's, a quarter is for those that wait to be closed or let in, and eight are a
     * connection's with a queue; as much is kept for each of as many others as have room in half of
     * it. */
    enum {
        LIMIT = 168,
        ALL = LIMIT - 64 - 2 * (LIMIT / 8),
        KEPT = ALL / 2 / 8 - 1,
        ALLOWED = (ALL - 8 * KEPT) / 8,
        N = 30
    };
    struct test_client *clients[N];
    unsigned n_served = 0;
    int r;

    limit(RLIMIT_NOFILE, LIMIT);
    test_wharfd_start_by(&wharfd, "auto", "");
    for (unsigned i = 0; i < N; i++) {
        clients[i] = test_client_connected(wharfd.socket);
        r = test_client_hello(clients[i]);
        /* Those that came to see whether it serves may not have been forgotten yet. */
        for (unsigned k = 0; i == 0 && k < 10000 && n_connections(clients[0]) != 1; k++)
            usleep(1000);
        if (r == 0)
            /* Too large a queue for the places that are kept for operators. */
            r = test_client_open_with(clients[i], 64, 65536, 0, 0);
        cr_assert(r == 0 || r == -EDQUOT || r == -EPIPE, "client %u: %d", i, r);
        n_served += r == 0;
    }
    cr_assert_eq(n_served, ALLOWED);
    cr_assert_lt(test_wharfd_n_fds(&wharfd), LIMIT - 8);
    for (unsigned i = 0; i < N; i++)
        test_client_free(clients[i]);
    test_client_free(test_client_greeted_in_time(wharfd.socket));
    expect_service();
    test_wharfd_finish(&wharfd);
}

/* ---- locked memory ------------------------------------------------------------------------- */

Test(wharfd_limits, no_locked_memory_is_done_without)
{
    /* Root may lock what it likes, but for this. */
    prctl(PR_CAPBSET_DROP, CAP_IPC_LOCK, 0, 0, 0);
    limit(RLIMIT_MEMLOCK, 0);
    test_wharfd_start_by(&wharfd, "auto", "");
    expect_service();
    test_wharfd_finish(&wharfd);
}
