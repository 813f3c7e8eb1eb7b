/* SPDX-License-Identifier: Apache-2.0 */
/* The socket for metrics, and clients of it that do what they like. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/test_client.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"

static struct test_wharfd wharfd;

static const char get[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

static struct sockaddr_un metrics_address(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof(address.sun_path), "%s.metrics", wharfd.socket);
    return address;
}

/* The socket of a daemon that was killed accepts for a moment longer: only the one that runs
 * counts.  -1: it does not listen yet. */
static int try_connect(void)
{
    struct sockaddr_un address = metrics_address();
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct ucred peer;
    socklen_t nbytes = sizeof(peer);

    /* Nobody accepts at a dead one, so a connect that waits would wait for ever. */
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &nbytes) == 0 && peer.pid == wharfd.pid &&
        fcntl(fd, F_SETFL, 0) == 0)
        return fd;
    close(fd);
    return -1;
}

/* The daemon makes it a little later than the main socket. */
static int connected(void)
{
    int fd = -1;

    cr_assert(TEST_WAIT((fd = try_connect()) >= 0), "%s", strerror(errno));
    return fd;
}

static void send_text(int fd, const char *text, size_t nbytes)
{
    cr_assert_eq(send(fd, text, nbytes, MSG_NOSIGNAL), (ssize_t)nbytes);
}

/* All that comes until the daemon closes; the caller frees it. */
static char *read_all(int fd)
{
    size_t n = 0, n_room = 1 << 20;
    char *text = malloc(n_room);
    ssize_t more;

    cr_assert_not_null(text);
    while ((more = recv(fd, text + n, n_room - n - 1, 0)) > 0)
        n += (size_t)more;
    text[n] = 0;
    close(fd);
    return text;
}

static void expect_metrics(char *text)
{
    static const char end[] = "\n# EOF\n";

    cr_assert_eq(strncmp(text, "HTTP/1.0 200 OK\r\n", 17), 0, "%.100s", text);
    cr_assert(strstr(text, "\r\n\r\n# HELP wharf_up "), "%.200s", text);
    cr_assert(strstr(text, "\nwharf_up 1\n"));
    cr_assert_str_eq(text + strlen(text) - strlen(end), end);
    free(text);
}

static void scrape(void)
{
    int fd = connected();

    send_text(fd, get, strlen(get));
    expect_metrics(read_all(fd));
}

/* In one piece, byte by byte, and with the writing side closed behind it. */
Test(wharfd_scrape, request_may_come_in_any_pieces)
{
    test_wharfd_start_by(&wharfd, "auto", "");
    scrape();
    int fd = connected();
    for (size_t i = 0; i < strlen(get); i++)
        send_text(fd, get + i, 1);
    shutdown(fd, SHUT_WR);
    expect_metrics(read_all(fd));
    test_wharfd_finish(&wharfd);
}

Test(wharfd_scrape, what_is_no_request_is_not_answered)
{
    static char long_one[8192];

    test_wharfd_start_by(&wharfd, "epoll", "");
    int fd = connected();
    send_text(fd, "POST / HTTP/1.0\r\n\r\n", 19);
    char *text = read_all(fd);
    cr_assert_eq(strncmp(text, "HTTP/1.0 405 ", 13), 0, "%s", text);
    free(text);
    fd = connected();
    memset(long_one, 'G', sizeof(long_one));
    send(fd, long_one, sizeof(long_one), MSG_NOSIGNAL);
    text = read_all(fd);
    cr_assert_str_eq(text, "");
    free(text);
    fd = connected();
    shutdown(fd, SHUT_WR);
    text = read_all(fd);
    cr_assert_str_eq(text, "");
    free(text);
    scrape();
    test_wharfd_finish(&wharfd);
}

static bool is_closed(int fd)
{
    char byte;

    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

/* One that went on byte by byte kept its place for as long as one may take altogether.  The one
 * that has said nothing has come before it, and stays for longer. */
Test(wharfd_scrape, request_that_trickles_has_its_time_as_a_whole)
{
    test_wharfd_start_by(&wharfd, "auto", "");
    scrape();
    int silent = connected(), slow = connected();
    struct pollfd fds[2] = {{.fd = silent, .events = POLLIN}, {.fd = slow, .events = POLLIN}};
    send_text(slow, get, 1);
    /* Whoever goes first wakes it; what trickles does so between two looks. */
    for (size_t i = 1; poll(fds, 2, 20) == 0; i++) {
        cr_assert_lt(i, 4000u);
        send(slow, "G", 1, MSG_NOSIGNAL);
    }
    cr_expect(is_closed(slow));
    cr_expect_not(is_closed(silent));
    close(silent);
    close(slow);
    scrape();
    test_wharfd_finish(&wharfd);
}

/* They may hang whoever closes them, so the daemon does not take them.  Since Linux 6.16 they
 * cannot even be sent. */
Test(wharfd_scrape, descriptors_are_not_taken)
{
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec iov = {(void *)get, sizeof(get) - 1};
    struct msghdr header = {.msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = sizeof(control)};
    struct cmsghdr *message = CMSG_FIRSTHDR(&header);

    test_wharfd_start_by(&wharfd, "auto", "");
    scrape();
    int n_fds = test_wharfd_n_fds(&wharfd);
    int own = open("/dev/null", O_RDONLY | O_CLOEXEC);
    message->cmsg_level = SOL_SOCKET;
    message->cmsg_type = SCM_RIGHTS;
    message->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(message), &own, sizeof(own));
    for (unsigned i = 0; i < 20; i++) {
        int fd = connected();
        if (sendmsg(fd, &header, MSG_NOSIGNAL) < 0) {
            cr_assert_eq(errno, EPERM);
            close(fd);
            continue;
        }
        char *text = read_all(fd);
        cr_assert_str_eq(text, "");
        free(text);
    }
    close(own);
    scrape();
    cr_assert(TEST_WAIT(test_wharfd_n_fds(&wharfd) <= n_fds));
    test_wharfd_finish(&wharfd);
}

/* Whoever goes while the text is made, or in the middle of it, leaves nothing behind. */
Test(wharfd_scrape, clients_may_go_at_any_time)
{
    char byte;

    test_wharfd_start_by(&wharfd, "auto", "");
    scrape();
    int n_fds = test_wharfd_n_fds(&wharfd);
    for (unsigned i = 0; i < 100; i++) {
        int fd = connected();
        send_text(fd, get, strlen(get));
        if (i % 2)
            cr_assert_eq(recv(fd, &byte, 1, 0), 1);
        close(fd);
    }
    scrape();
    cr_assert(TEST_WAIT(test_wharfd_n_fds(&wharfd) <= n_fds));
    test_wharfd_finish(&wharfd);
}

/* More at a time than are served beside each other, and some that say nothing before they go. */
Test(wharfd_scrape, many_at_a_time_are_all_served)
{
    int fds[12], silent[3];

    test_wharfd_start_by(&wharfd, "auto", "");
    for (unsigned i = 0; i < 3; i++)
        silent[i] = connected();
    for (unsigned i = 0; i < 12; i++) {
        fds[i] = connected();
        send_text(fds[i], get, strlen(get));
    }
    for (unsigned i = 0; i < 12; i++)
        expect_metrics(read_all(fds[i]));
    for (unsigned i = 0; i < 3; i++)
        close(silent[i]);
    scrape();
    test_wharfd_finish(&wharfd);
}

static void become(uid_t uid, gid_t gid)
{
    cr_assert_eq(seteuid(0), 0);
    cr_assert_eq(setegid(gid), 0);
    cr_assert_eq(seteuid(uid), 0);
}

/* As many as one user may have, of which some have asked and do not read. */
enum { N_HELD = 32, N_ASKING = 8 };

static void hold_many(int fds[N_HELD])
{
    char byte;

    for (unsigned i = 0; i < N_HELD; i++) {
        fds[i] = connected();
        if (i >= N_ASKING)
            continue;
        send_text(fds[i], get, strlen(get));
        cr_assert_eq(recv(fds[i], &byte, 1, 0), 1);
    }
}

/* Whether the daemon has closed none of them by now. */
static bool all_are_open(const int fds[N_HELD])
{
    char byte;

    for (unsigned i = N_ASKING; i < N_HELD; i++)
        if (recv(fds[i], &byte, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN)
            return false;
    return true;
}

/* So many tenants that what is said of them does not fit into a socket: whoever has asked and does
 * not read is served for as long as may be. */
static void bring_tenants(void)
{
    for (uid_t i = 0; i < 200; i++) {
        become(70000 + i, 65534);
        test_client_free(test_client_greeted(wharfd.socket));
    }
    become(0, 0);
}

/* Four silent observers kept all others waiting until they had had their time.  That time can pass
 * while others read on a busy machine, so there are some tries. */
Test(wharfd_scrape, one_user_does_not_keep_others_waiting)
{
    struct group *group = getgrnam("nogroup");
    int fds[N_HELD];
    bool was_quick = false;

    if (geteuid() != 0 || !group)
        cr_skip_test("needs two users: run as root");
    test_wharfd_start_by(&wharfd, "auto", "[daemon]\nobserver_group = nogroup\n");
    cr_assert_eq(chmod(wharfd.folder, 0755), 0);
    cr_assert_eq(chmod(wharfd.socket, 0666), 0);
    bring_tenants();
    scrape();
    for (unsigned i = 0; i < 5 && !was_quick; i++) {
        become(65001, group->gr_gid);
        hold_many(fds);
        become(65002, group->gr_gid);
        scrape();
        become(0, 0);
        scrape();
        was_quick = all_are_open(fds);
        for (unsigned k = 0; k < N_HELD; k++)
            close(fds[k]);
    }
    cr_assert(was_quick);
    test_wharfd_finish(&wharfd);
}

/* What he has opened last is what he wants: the oldest one goes. */
Test(wharfd_scrape, users_with_too_many_lose_the_oldest)
{
    int fds[N_HELD + 1];
    char byte;

    test_wharfd_start_by(&wharfd, "auto", "");
    for (unsigned i = 0; i < N_HELD + 1; i++)
        fds[i] = connected();
    cr_assert_eq(recv(fds[0], &byte, 1, 0), 0);
    send_text(fds[N_HELD], get, strlen(get));
    expect_metrics(read_all(fds[N_HELD]));
    for (unsigned i = 0; i < N_HELD; i++)
        close(fds[i]);
    test_wharfd_finish(&wharfd);
}

/* The path exists while the daemon does, and the next one replaces a killed one's. */
Test(wharfd_scrape, socket_goes_with_the_daemon)
{
    char path[128];

    test_wharfd_start_by(&wharfd, "auto", "");
    snprintf(path, sizeof(path), "%s.metrics", wharfd.socket);
    test_wharfd_kill(&wharfd);
    test_wharfd_restart(&wharfd);
    scrape();
    cr_assert_eq(test_wharfd_stop(&wharfd), 0);
    cr_assert_eq(access(path, F_OK), -1);
    test_wharfd_remove(&wharfd);
    test_wharfd_start_by(&wharfd, "auto", "[daemon]\nmetrics_socket = none\n");
    snprintf(path, sizeof(path), "%s.metrics", wharfd.socket);
    cr_assert_eq(access(path, F_OK), -1);
    test_wharfd_finish(&wharfd);
}

/* A process listens and ends; this one keeps its socket open, as the kernel does for a moment after
 * a daemon was killed.  Connections to it succeed all the time. */
static int leave_socket(void)
{
    struct sockaddr_un address = metrics_address();
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int status;

    cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(listen(fd, 1) == 0 ? 0 : 1);
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_assert_eq(status, 0);
    return fd;
}

/* The next daemon had no socket for metrics for as long as it lived. */
Test(wharfd_scrape, socket_of_a_dead_daemon_is_not_in_the_way)
{
    test_wharfd_prepare(&wharfd, "[daemon]\nlog_level = debug\n");
    int left = leave_socket();
    test_wharfd_restart(&wharfd);
    cr_assert(test_wharfd_says(&wharfd, " serves with "));
    int fd = try_connect();
    cr_assert_geq(fd, 0, "the path is still the dead one's");
    send_text(fd, get, strlen(get));
    expect_metrics(read_all(fd));
    close(left);
    test_wharfd_finish(&wharfd);
}
