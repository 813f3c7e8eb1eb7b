/* SPDX-License-Identifier: Apache-2.0 */
/* test_daemon.c: the watcher, which starts daemons and notices their deaths. */
#include "tests/lib/test_daemon.h"
#include "daemon/base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/test_serve.h"

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "test_daemon: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void sleep_us(uint32_t us)
{
    struct timespec time = {us / 1000000, us % 1000000 * 1000L};

    nanosleep(&time, NULL);
}

struct test_daemon *test_daemon_new(void)
{
    struct test_daemon *daemon =
        mmap(NULL, sizeof(*daemon), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (daemon == MAP_FAILED)
        die("mmap");
    strcpy(daemon->folder, "/tmp/wharf-test-XXXXXX");
    if (!mkdtemp(daemon->folder))
        die("mkdtemp");
    snprintf(daemon->path, sizeof(daemon->path), "%s/socket", daemon->folder);
    daemon->listen_fd = -1;
    daemon->takes_at_once = 16;
    daemon->max_entries = 32768;
    daemon->max_arena_nbytes = (uint64_t)1 << 30;
    daemon->max_job_nbytes = (uint64_t)1 << 28;
    daemon->seed = 1;
    return daemon;
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    strcpy(address.sun_path, path);
    unlink(path);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, 64) < 0)
        die(path);
    return fd;
}

static pid_t fork_with_parent(void)
{
    pid_t pid = fork();

    if (pid < 0)
        die("fork");
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    return pid;
}

static void begin_life(struct test_daemon *daemon)
{
    int listen_fd;

    daemon->n_steps = 0;
    listen_fd = daemon->listen_fd >= 0 ? daemon->listen_fd : listen_at(daemon->path);
    sleep_us(daemon->start_us);
    /* Stores its id itself, so that a test can kill this life before the watcher runs again. */
    __atomic_store_n(&daemon->daemon, getpid(), __ATOMIC_RELEASE);
    __atomic_add_fetch(&daemon->n_lives, 1, __ATOMIC_RELEASE);
    test_daemon_serve(daemon, listen_fd);
}

static int is_set(const uint32_t *knob)
{
    return (int)__atomic_load_n(knob, __ATOMIC_ACQUIRE);
}

static _Noreturn void watch(struct test_daemon *daemon)
{
    if (daemon->keeps_socket)
        daemon->listen_fd = listen_at(daemon->path);
    while (!is_set(&daemon->stops)) {
        if (is_set(&daemon->stays_dead)) {
            sleep_us(1000);
            continue;
        }
        pid_t pid = fork_with_parent();
        if (pid == 0)
            begin_life(daemon);
        __atomic_store_n(&daemon->daemon, pid, __ATOMIC_RELEASE);
        waitpid(pid, NULL, 0);
        __atomic_store_n(&daemon->daemon, 0, __ATOMIC_RELEASE);
        daemon->died_ns = wharf_now_ns();
        while (wharf_now_ns() - daemon->died_ns < daemon->restart_us * UINT64_C(1000) &&
               !is_set(&daemon->stops))
            sleep_us(daemon->restart_us < 1000 ? daemon->restart_us : 1000);
    }
    _exit(0);
}

void test_daemon_start(struct test_daemon *daemon)
{
    uint32_t n_lives = daemon->n_lives;

    daemon->stops = 0;
    fflush(NULL);
    pid_t pid = fork_with_parent();
    if (pid == 0)
        watch(daemon);
    daemon->watcher = pid;
    while (__atomic_load_n(&daemon->n_lives, __ATOMIC_ACQUIRE) == n_lives)
        sleep_us(200);
}

void test_daemon_kill(struct test_daemon *daemon)
{
    pid_t pid = __atomic_load_n(&daemon->daemon, __ATOMIC_ACQUIRE);

    if (pid)
        kill(pid, SIGKILL);
}

void test_daemon_stop(struct test_daemon *daemon)
{
    if (!daemon->watcher)
        return;
    __atomic_store_n(&daemon->stops, 1, __ATOMIC_RELEASE);
    while (waitpid(daemon->watcher, NULL, WNOHANG) == 0) {
        test_daemon_kill(daemon);
        sleep_us(200);
    }
    daemon->watcher = 0;
    unlink(daemon->path);
}

void test_daemon_free(struct test_daemon *daemon)
{
    if (!daemon)
        return;
    test_daemon_stop(daemon);
    rmdir(daemon->folder);
    munmap(daemon, sizeof(*daemon));
}
