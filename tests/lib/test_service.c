/* SPDX-License-Identifier: Apache-2.0 */
/* test_service.c: starts a daemon as systemd does, and listens to its notifications. */
#include "tests/lib/test_service.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static _Noreturn void die(const char *what)
{
    perror(what);
    abort();
}

static int socket_at(const char *folder, const char *name, int type)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s/%s", folder, name);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        die(name);
    return fd;
}

static int listen_at(const char *folder, const char *name, int type)
{
    int fd = socket_at(folder, name, type);

    if (type != SOCK_DGRAM && listen(fd, 64) < 0)
        die("listen");
    return fd;
}

void test_service_init(struct test_service *service, const char *config)
{
    memset(service, 0, sizeof(*service));
    test_wharfd_prepare(&service->daemon, config);
    service->listen_fds[0] = listen_at(service->daemon.folder, "socket", SOCK_SEQPACKET);
    service->listen_fds[1] = -1;
    service->notify_fd = socket_at(service->daemon.folder, "notify", SOCK_DGRAM);
    service->heard = strdup("");
}

void test_service_add_socket(struct test_service *service, int type)
{
    service->listen_fds[1] = listen_at(service->daemon.folder, "socket2", type);
}

void test_service_fill(struct test_service *service)
{
    struct sockaddr_un address;
    socklen_t nbytes = sizeof(address);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || getsockname(service->notify_fd, (struct sockaddr *)&address, &nbytes) < 0)
        die("socket");
    while (sendto(fd, "", 0, MSG_DONTWAIT, (struct sockaddr *)&address, nbytes) == 0) {
    }
    close(fd);
}

static void set_number(const char *name, uint64_t value)
{
    char text[32];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    setenv(name, text, 1);
}

static void set_journal(const char *log)
{
    struct stat st;
    char stream[64];

    close(open(log, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (stat(log, &st) < 0)
        die(log);
    snprintf(stream, sizeof(stream), "%llu:%llu", (unsigned long long)st.st_dev,
             (unsigned long long)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
}

static void set_environment(const struct test_service *service)
{
    char path[128];

    unsetenv("JOURNAL_STREAM");
    if (service->is_in_journal)
        set_journal(service->daemon.log);

    snprintf(path, sizeof(path), "%s/notify", service->daemon.folder);
    setenv("NOTIFY_SOCKET", path, 1);
    setenv("RUNTIME_DIRECTORY", service->daemon.folder, 1);
    set_number("LISTEN_FDS", service->listen_fds[1] >= 0 ? 2 : 1);
    set_number("LISTEN_PID", (uint64_t)getpid());
    if (service->listen_pid)
        setenv("LISTEN_PID", service->listen_pid, 1);
    if (service->names)
        setenv("LISTEN_FDNAMES", service->names, 1);
    if (!service->watchdog_us)
        return;
    set_number("WATCHDOG_USEC", service->watchdog_us);
    set_number("WATCHDOG_PID", (uint64_t)getpid());
    if (service->watchdog_pid)
        setenv("WATCHDOG_PID", service->watchdog_pid, 1);
}

/* The inherited sockets must be descriptors 3 and 4. */
static void hand_over(const struct test_service *service)
{
    int n = service->listen_fds[1] >= 0 ? 2 : 1;
    int copies[2];

    /* Moves them out of each other's way first. */
    for (int i = 0; i < n; i++)
        copies[i] = fcntl(service->listen_fds[i], F_DUPFD, 16);
    for (int i = 0; i < n; i++)
        dup2(copies[i], 3 + i);
    for (int fd = 3 + n; fd < 64; fd++)
        close(fd);
}

void test_service_spawn(struct test_service *service)
{
    pid_t pid = fork();

    if (pid < 0)
        die("fork");
    if (pid == 0) {
        hand_over(service);
        set_environment(service);
        test_wharfd_become(&service->daemon, service->listen_pid != NULL);
    }
    service->daemon.pid = pid;
}

/* ---- notifications ------------------------------------------------------------------------- */

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Adds the next message, if one arrives before end_ms. */
static bool listen_until(struct test_service *service, uint64_t end_ms)
{
    struct pollfd notify = {.fd = service->notify_fd, .events = POLLIN};
    uint64_t now = now_ms();
    char message[1024];
    char *longer;

    if (poll(&notify, 1, now < end_ms ? (int)(end_ms - now) : 0) != 1)
        return false;
    ssize_t n = recv(service->notify_fd, message, sizeof(message) - 1, MSG_DONTWAIT);
    if (n < 0)
        die("recv");
    message[n] = 0;
    if (asprintf(&longer, "%s%s\n", service->heard, message) < 0)
        die("asprintf");
    free(service->heard);
    service->heard = longer;
    return true;
}

static unsigned count_lines(const char *text, const char *begin, bool whole)
{
    size_t n = strlen(begin);
    unsigned count = 0;

    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        count += strncmp(line, begin, n) == 0 && (!whole || line[n] == '\n');
    return count;
}

bool test_service_hears(struct test_service *service, const char *line, unsigned wait_ms)
{
    uint64_t end_ms = now_ms() + wait_ms;

    while (count_lines(service->heard, line, true) == 0)
        if (!listen_until(service, end_ms))
            return false;
    return true;
}

unsigned test_service_count(struct test_service *service, const char *begin, unsigned wait_ms)
{
    uint64_t end_ms = now_ms() + wait_ms;

    while (listen_until(service, end_ms))
        ;
    return count_lines(service->heard, begin, false);
}

void test_service_forget(struct test_service *service)
{
    test_service_count(service, "", 0);
    service->heard[0] = 0;
}

void test_service_deinit(struct test_service *service)
{
    for (unsigned i = 0; i < 2; i++)
        if (service->listen_fds[i] >= 0)
            close(service->listen_fds[i]);
    close(service->notify_fd);
    free(service->heard);
    test_wharfd_remove(&service->daemon);
}
