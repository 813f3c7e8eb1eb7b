/* SPDX-License-Identifier: Apache-2.0 */
/* test_wharfd.c: starts, observes and stops a daemon. */
#include "tests/lib/test_wharfd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "tests/lib/test_client.h"
#include "tests/lib/test_environment.h"
#include "tests/lib/test_file.h"
#include "tests/lib/test_process.h"
#include "tests/lib/test_wait.h"

static void die(const struct test_wharfd *daemon, const char *what)
{
    size_t nbytes;
    uint8_t *log = test_file_read(daemon->log, &nbytes);

    fprintf(stderr, "%s; the daemon said:\n%s", what, log ? (char *)log : "nothing\n");
    abort();
}

const char *test_wharfd_program = "wharfd";

static void program_path(char path[PATH_MAX + 32])
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);

    if (n < 0)
        abort();
    path[n] = 0;
    for (unsigned i = 0; i < 2; i++)
        *strrchr(path, '/') = 0;
    snprintf(path + strlen(path), 32, "/%s", test_wharfd_program);
}

/*
 * Suppresses reports about clients' memory.  Jobs of hostile clients may name the same memory, so
 * that decoders write there at the same time.  That is no fault, as long as the daemon depends on
 * nothing that is written there.
 */
static void tell_thread_sanitizer(const struct test_wharfd *daemon)
{
    char path[PATH_MAX], options[PATH_MAX + 32];

    snprintf(path, sizeof(path), "%s/tsan", daemon->folder);
    FILE *file = fopen(path, "we");
    if (!file ||
        fputs("race:wharf_decode_job_run\nrace:wharf_ring_copy_in\nrace:store_result\n", file) < 0)
        _exit(127);
    fclose(file);
    snprintf(options, sizeof(options), "suppressions=%s", path);
    setenv("TSAN_OPTIONS", options, 1);
}

_Noreturn void test_wharfd_become(const struct test_wharfd *daemon, int takes_path)
{
    char path[PATH_MAX + 32];
    int log = open(daemon->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    program_path(path);
    if (chdir(daemon->folder) < 0)
        _exit(127);
    dup2(log, 2);
    tell_thread_sanitizer(daemon);
    /* Ends with the test. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execl(path, "wharfd", "--config", daemon->config, takes_path ? "--socket" : (char *)NULL,
          daemon->socket, (char *)NULL);
    fprintf(stderr, "cannot run %s: %s\n", path, strerror(errno));
    _exit(127);
}

static int is_served(const struct test_wharfd *daemon)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", daemon->socket);
    int good = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
    close(fd);
    return good;
}

void test_wharfd_spawn(struct test_wharfd *daemon)
{
    daemon->pid = fork();
    if (daemon->pid == 0)
        test_wharfd_become(daemon, 1);
}

void test_wharfd_restart(struct test_wharfd *daemon)
{
    /* The socket of a killed daemon still accepts for a moment: only the new one counts. */
    unlink(daemon->socket);
    test_wharfd_spawn(daemon);
    bool is_up = false, has_ended = false;
    TEST_WAIT((is_up = is_served(daemon)) ||
              (has_ended = waitpid(daemon->pid, NULL, WNOHANG) != 0));
    if (!is_up)
        die(daemon, has_ended ? "the daemon has ended" : "the daemon does not serve");
}

/* A GPU that is simulated on the CPU may be slower than a real one ever is.  It counts as hung only
 * if a test says so. */
static const char *hang_timeout(const char *engine, const char *more)
{
    return strcmp(engine, "simt") == 0 && !strstr(more, "hang_timeout") ? "hang_timeout = 10min\n"
                                                                        : "";
}

/* On a loaded machine, a late process is neither hung nor hostile.  If a test does not say
 * otherwise, daemons are as patient as tests' handles. */
static void write_patience(FILE *file, const char *config)
{
    static const char *const settings[] = {"hello_timeout", "unread_timeout", "gate_timeout"};

    fputs("\n[daemon]\n", file);
    for (unsigned i = 0; i < sizeof(settings) / sizeof(settings[0]); i++)
        if (!strstr(config, settings[i]))
            fprintf(file, "%s = %dms\n", settings[i], TEST_PATIENCE_MS);
    if (!strstr(config, "start_timeout"))
        fprintf(file, "[gpu]\nstart_timeout = %dms\n", TEST_PATIENCE_MS);
}

void test_wharfd_prepare(struct test_wharfd *daemon, const char *config)
{
    strcpy(daemon->folder, "/tmp/wharf-test.XXXXXX");
    if (!mkdtemp(daemon->folder))
        abort();
    snprintf(daemon->socket, sizeof(daemon->socket), "%s/socket", daemon->folder);
    snprintf(daemon->config, sizeof(daemon->config), "%s/config", daemon->folder);
    snprintf(daemon->log, sizeof(daemon->log), "%s/log", daemon->folder);
    FILE *file = fopen(daemon->config, "we");
    if (!file || fputs(config, file) < 0)
        abort();
    write_patience(file, config);
    if (test_environment_gpu())
        fprintf(file, "\n[gpu]\nengine = %s\npin_after = 0\nspare = 0\n%s", test_environment_gpu(),
                hang_timeout(test_environment_gpu(), config));
    /* Tests count descriptors, features and processes, so a real GPU must not take part. */
    else if (!strstr(config, "engine ="))
        fputs("\n[gpu]\nengine = cpu\n", file);
    if (fclose(file) < 0)
        abort();
}

void test_wharfd_start(struct test_wharfd *daemon, const char *config)
{
    test_wharfd_prepare(daemon, config);
    test_wharfd_restart(daemon);
}

void test_wharfd_start_gpu(struct test_wharfd *daemon, const char *engine, const char *more)
{
    char config[1024];

    snprintf(config, sizeof(config), "[gpu]\nengine = %s\ndevice = 0\npin_after = 0\n%s%s", engine,
             hang_timeout(engine, more), more);
    test_wharfd_start(daemon, config);
}

void test_wharfd_start_by(struct test_wharfd *daemon, const char *io, const char *more)
{
    char config[1024];

    snprintf(config, sizeof(config), "[daemon]\nio = %s\nlog_level = debug\n%s", io, more);
    test_wharfd_start(daemon, config);
}

static int take_status(struct test_wharfd *daemon, int status)
{
    daemon->pid = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int test_wharfd_wait(struct test_wharfd *daemon)
{
    int status;

    if (!TEST_WAIT(waitpid(daemon->pid, &status, WNOHANG) == daemon->pid))
        die(daemon, "the daemon does not end");
    return take_status(daemon, status);
}

int test_wharfd_stop(struct test_wharfd *daemon)
{
    kill(daemon->pid, SIGTERM);
    return test_wharfd_wait(daemon);
}

/*
 * Only the kernel can keep a killed process, so its end has no time limit but run-tests'.  A
 * process with an io_uring waits for a worker of the kernel there (io_fallback_req_func), which a
 * machine whose tests go before the kernel's workers let wait for more than 100 s.
 */
void test_wharfd_kill(struct test_wharfd *daemon)
{
    int status;

    kill(daemon->pid, SIGKILL);
    while (waitpid(daemon->pid, &status, 0) != daemon->pid)
        if (errno != EINTR)
            die(daemon, "the daemon is not this process's child");
    take_status(daemon, status);
}

static void remove_folder(const char *folder)
{
    char path[PATH_MAX];
    DIR *dir = opendir(folder);

    for (struct dirent *entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir)) {
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    if (dir)
        closedir(dir);
    rmdir(folder);
}

void test_wharfd_remove(struct test_wharfd *daemon)
{
    if (daemon->pid)
        test_wharfd_kill(daemon);
    remove_folder(daemon->folder);
}

void test_wharfd_finish(struct test_wharfd *daemon)
{
    if (test_wharfd_stop(daemon) != 0)
        die(daemon, "the daemon ended badly");
    test_wharfd_remove(daemon);
}

static unsigned n_said(const struct test_wharfd *daemon, const char *text)
{
    size_t nbytes;
    uint8_t *log = test_file_read(daemon->log, &nbytes);
    unsigned n = 0;

    for (const char *at = (const char *)log; at && (at = strstr(at, text)); at++)
        n++;
    free(log);
    return n;
}

int test_wharfd_says(const struct test_wharfd *daemon, const char *text)
{
    return test_wharfd_says_times(daemon, text, 1);
}

int test_wharfd_says_now(const struct test_wharfd *daemon, const char *text)
{
    return n_said(daemon, text) >= 1;
}

int test_wharfd_says_times(const struct test_wharfd *daemon, const char *text, unsigned n)
{
    return TEST_WAIT(n_said(daemon, text) >= n);
}

static int is_called(int pid, const char *name)
{
    char path[64], found[32] = "";

    snprintf(path, sizeof(path), "/proc/%d/comm", pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    int is = fgets(found, sizeof(found), file) && strcspn(found, "\n") == strlen(name) &&
             strncmp(found, name, strlen(name)) == 0;
    fclose(file);
    return is;
}

/* The kernel's list may be incomplete while a child ends. */
static pid_t find_child(const struct test_wharfd *daemon, const char *name)
{
    char path[64];
    int pid, child = 0;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)daemon->pid, (int)daemon->pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    while (!child && fscanf(file, "%d", &pid) == 1)
        child = is_called(pid, name) ? pid : 0;
    fclose(file);
    return child;
}

pid_t test_wharfd_child(const struct test_wharfd *daemon, const char *name)
{
    pid_t child = 0;

    TEST_WAIT((child = find_child(daemon, name)) > 0);
    return child;
}

pid_t test_wharfd_fd_filter(const struct test_wharfd *daemon)
{
    return test_wharfd_child(daemon, "wharfd-filter");
}

int test_wharfd_n_fds(const struct test_wharfd *daemon)
{
    return test_process_n_fds(daemon->pid);
}

int test_wharfd_n_memfds(const struct test_wharfd *daemon)
{
    char path[64], line[512];
    int n = 0;

    snprintf(path, sizeof(path), "/proc/%d/maps", (int)daemon->pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    while (fgets(line, sizeof(line), file))
        n += strstr(line, "/memfd:") != NULL;
    fclose(file);
    return n;
}

static long status_kib(const struct test_wharfd *daemon, const char *member)
{
    char path[64], line[256];
    size_t length = strlen(member);
    long kib = -1;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)daemon->pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    while (fgets(line, sizeof(line), file))
        if (strncmp(line, member, length) == 0 && line[length] == ':')
            kib = strtol(line + length + 1, NULL, 10);
    fclose(file);
    return kib;
}

long test_wharfd_kib(const struct test_wharfd *daemon)
{
    return status_kib(daemon, "VmRSS");
}

long test_wharfd_own_kib(const struct test_wharfd *daemon)
{
    return status_kib(daemon, "RssAnon");
}

struct wharf *test_wharfd_open(const struct test_wharfd *daemon, uint32_t engine, uint32_t max_jobs,
                               size_t arena_nbytes)
{
    struct wharf_options options = WHARF_OPTIONS_INIT;
    struct wharf *wharf;

    options.flags = WHARF_OPEN_DAEMON;
    options.socket_path = daemon->socket;
    options.patience_ms = TEST_PATIENCE_MS;
    options.engine = engine;
    options.max_jobs = max_jobs;
    options.arena_nbytes = arena_nbytes;
    if (wharf_open(&options, &wharf) < 0)
        die(daemon, wharf_error_message());
    return wharf;
}

double test_wharfd_metric(const struct test_wharfd *daemon, const char *name,
                          const char *label_value)
{
    struct test_client *client = test_client_start(daemon->socket, 2, 0);
    double value = test_client_metric(client, name, "", label_value);

    test_client_free(client);
    return value;
}
