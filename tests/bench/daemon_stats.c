/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon_stats.c: requests of one client while another one reads all statistics again and again, of
 * thousands of tenants.  Needs root, to be as many users.  Where root may not raise the limit of
 * open files, the daemon is told a higher one than it has (files_limit.c): what it has open then,
 * one descriptor for each of these connections, is far below both.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/bench/daemon_parts.h"
#include "tests/lib/test_file.h"

/* Tenants that have come, that are connected, and of these that have had a job. */
enum { N_SEEN = 100000, N_ALIVE = 5000, N_BUSY = 200, FIRST_UID = 1000000 };

/* How many may wait for the daemon to find out who they are; of more some would be nobody. */
enum { MOST_AT_ONCE = 256 };

/* The daemon counts with up to eight for each connection, and keeps a quarter of them all for the
 * first tenants; of an idle connection one is open, beside what everybody else has. */
enum { MOST_FDS = 131072, LEAST_FDS = N_ALIVE + 2000 };

/* Longer than the daemon watches a ring: it has to be rung for. */
enum { PAUSE_US = 500 };

/* ---- tenants ------------------------------------------------------------------------------- */

static void become(uid_t uid)
{
    if (seteuid(0) < 0 || seteuid(uid) < 0)
        bench_die("cannot be another user");
}

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    strncpy(address.sun_path, path, sizeof(address.sun_path) - 1);
    /* If the daemon is behind, this waits for it. */
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        bench_die("cannot connect");
    return fd;
}

static void do_a_job(struct wharf *wharf)
{
    struct wharf_completion completion;

    if (wharf_submit_noop(wharf, 0) < 0 || wharf_wait(wharf, &completion, 1, 1, -1) != 1)
        bench_die("a job failed");
}

/* A chunk, by an engine: so the tenant has samples of it. */
static void decode_one(const struct daemon_bench *bench)
{
    const struct bench_source *source = &bench->sources[0];
    struct wharf *wharf = bench_open(bench->wharfd.socket, 0, 1);
    struct wharf_completion completion;
    void *in = bench_alloc(wharf, source->packed_nbytes[0]);

    memcpy(in, source->packed[0], source->packed_nbytes[0]);
    struct wharf_job job = bench_job(source, 0, in, bench_alloc(wharf, BENCH_CHUNK));
    if (wharf_submit(wharf, &job, 1) != 1 || wharf_wait(wharf, &completion, 1, 1, -1) != 1)
        bench_die("a job failed");
    wharf_close(wharf);
}

/* They come one after another; the last of them stay for as long as the process. */
static void bring_tenants(const struct daemon_bench *bench)
{
    for (unsigned i = 0; i < N_SEEN; i++) {
        become(FIRST_UID + i);
        int fd = connect_to(bench->wharfd.socket);
        if (i >= N_SEEN - N_BUSY)
            decode_one(bench);
        else if (i % MOST_AT_ONCE == 0)
            wharf_close(bench_open(bench->wharfd.socket, 0, 1));
        if (i < N_SEEN - N_ALIVE)
            close(fd);
    }
    become(0);
}

static void find_beside(const char *name, char path[PATH_MAX])
{
    char own[PATH_MAX] = "";

    if (readlink("/proc/self/exe", own, sizeof(own) - 1) < 0 ||
        snprintf(path, PATH_MAX, "%s/%s", dirname(own), name) >= PATH_MAX || access(path, R_OK) < 0)
        bench_die(name);
}

/* The daemon's limits are those of who starts it. */
static void raise_limit(void)
{
    struct rlimit limit = {MOST_FDS, MOST_FDS};
    char path[PATH_MAX], number[16];

    if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
        return;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    if (limit.rlim_max < LEAST_FDS || setrlimit(RLIMIT_NOFILE, &limit) < 0)
        bench_die("the limit of open files is too low");
    find_beside("files_limit.so", path);
    snprintf(number, sizeof(number), "%d", MOST_FDS);
    setenv("LD_PRELOAD", path, 1);
    setenv("WHARF_BENCH_FILES", number, 1);
}

/* Tenants with settings of their own are never dropped. */
static int write_config(FILE *file)
{
    int r = fputs("[daemon]\nsocket_mode = 0666\nhello_timeout = 60min\n", file);

    for (unsigned i = N_SEEN - N_ALIVE; i < N_SEEN && r >= 0; i++)
        r = fprintf(file, "[tenant uid:%u]\nweight = 1\n", FIRST_UID + i);
    return r;
}

/* A daemon of its own, which others can reach, and which waits for no Hello. */
static void restart_for_all(struct daemon_bench *bench)
{
    FILE *file = fopen(bench->wharfd.config, "we");
    if (!file || write_config(file) < 0 || fclose(file) < 0)
        bench_die("cannot write the configuration");
    test_wharfd_stop(&bench->wharfd);
    test_wharfd_restart(&bench->wharfd);
    if (chmod(bench->wharfd.folder, 0755) < 0 || chmod(bench->wharfd.socket, 0666) < 0)
        bench_die("cannot open the socket to all");
}

/* ---- who reads statistics ------------------------------------------------------------------ */

static void run_once(const struct daemon_bench *bench, const char *program, const char *out)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int fd = open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        dup2(fd, STDOUT_FILENO);
        execl(program, program, "stats", "--prometheus", "--socket", bench->wharfd.socket, NULL);
        _exit(127);
    }
    if (waitpid(pid, &status, 0) != pid || status != 0)
        bench_die("wharf stats fails");
}

static pid_t start_reader(const struct daemon_bench *bench, const char *program)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;)
        run_once(bench, program, "/dev/null");
}

static void stop_reader(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

struct scrape {
    double ms;
    long long nbytes;
    /* As the daemon counts them; those who read and measure are one tenant more. */
    long long n_seen, n_tenants, n_connected;
};

/* The value of a family that has one, without labels. */
static long long find_value(const char *text, const char *family)
{
    size_t length = strlen(family);

    while (text) {
        if (strncmp(text, family, length) == 0 && text[length] == ' ')
            return (long long)atof(text + length);
        text = strchr(text, '\n');
        text += text != NULL;
    }
    bench_die(family);
}

static void read_values(const char *path, struct scrape *scrape)
{
    size_t nbytes;
    uint8_t *contents = test_file_read(path, &nbytes);
    char *text = contents ? strndup((const char *)contents, nbytes) : NULL;

    if (!text)
        bench_die("there are no statistics");
    scrape->nbytes = (long long)nbytes;
    scrape->n_seen = find_value(text, "wharf_tenants_seen_total");
    scrape->n_tenants = find_value(text, "wharf_tenants");
    scrape->n_connected = find_value(text, "wharf_all_connections");
    free(text);
    free(contents);
}

static struct scrape scrape(const struct daemon_bench *bench, const char *program)
{
    struct scrape result;
    char out[128];

    snprintf(out, sizeof(out), "%s/scrape", bench->wharfd.folder);
    double start = bench_now_us();
    run_once(bench, program, out);
    result.ms = (bench_now_us() - start) / 1000;
    read_values(out, &result);
    unlink(out);
    return result;
}

/* ---- requests ------------------------------------------------------------------------------ */

typedef void request(struct wharf *wharf);

static void ping(struct wharf *wharf)
{
    if (wharf_ping(wharf) < 0)
        bench_die("a ping failed");
}

static void sample(struct wharf *wharf, request *ask, struct bench_samples *samples, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        usleep(PAUSE_US);
        double start = bench_now_us();
        ask(wharf);
        bench_samples_add(samples, bench_now_us() - start);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sorted by its spread already, or not: it makes no difference. */
static double p999_us(struct bench_samples *samples)
{
    qsort(samples->us, samples->n, sizeof(samples->us[0]), compare);
    return samples->us[samples->n * 999 / 1000];
}

static void run_case(const struct daemon_bench *bench, const char *program, const char *what,
                     request *ask)
{
    enum { TURNS = 10 };
    unsigned n = bench->n_samples;
    struct bench_samples stormed = bench_samples_new((size_t)n * TURNS);
    struct bench_samples quiet = bench_samples_new((size_t)n * TURNS);
    struct wharf *wharf = bench_open(bench->wharfd.socket, WHARF_SPIN_NEVER, 1);
    struct bench_latency_row row = {.what = what, .n_samples = (size_t)n * TURNS, .peer = "quiet"};
    char more[256];

    for (unsigned turn = 0; turn < TURNS; turn++) {
        sample(wharf, ask, &quiet, n);
        pid_t reader = start_reader(bench, program);
        sample(wharf, ask, &stormed, n);
        stop_reader(reader);
    }
    struct scrape taken = scrape(bench, program);
    row.times = bench_samples_spread(&stormed);
    row.peer_times = bench_samples_spread(&quiet);
    double limit_us = p999_us(&quiet) + 5000;
    snprintf(more, sizeof(more),
             ", \"p999_us\": %.2f, \"peer_p999_us\": %.2f, \"limited\": \"p999_us\", "
             "\"limit_us\": %.2f, \"tenants_seen\": %lld, \"tenants\": %lld, \"connected\": %lld, "
             "\"scrape_ms\": %.1f, \"scrape_nbytes\": %lld",
             p999_us(&stormed), p999_us(&quiet), limit_us, taken.n_seen, taken.n_tenants,
             taken.n_connected, taken.ms, taken.nbytes);
    row.more = more;
    bench_print_latency_row(stdout, &row);
    wharf_close(wharf);
    bench_samples_free(&stormed);
    bench_samples_free(&quiet);
}

void bench_stats(struct daemon_bench *bench)
{
    char program[PATH_MAX];

    if (geteuid() != 0)
        bench_die("stats needs root, to be many users");
    find_beside("../wharf", program);
    raise_limit();
    restart_for_all(bench);
    unsetenv("LD_PRELOAD");
    bring_tenants(bench);
    run_case(bench, program, "no-op beside wharf stats --prometheus", do_a_job);
    run_case(bench, program, "ping beside wharf stats --prometheus", ping);
}
