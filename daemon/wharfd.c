/* SPDX-License-Identifier: Apache-2.0 */
/* wharfd.c: the daemon's main function: options, signals, systemd. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/config.h"
#include "daemon/base/config_report.h"
#include "daemon/base/list.h"
#include "daemon/base/log.h"
#include "daemon/base/log_level.h"
#include "daemon/base/loop.h"
#include "daemon/base/notify.h"
#include "daemon/control/fd_filter.h"
#include "daemon/control/server.h"
#include "daemon/dispatch/core_lock.h"
#include "daemon/disposable/closer_process.h"
#include "daemon/disposable/fd_filter_protocol.h"
#include "daemon/disposable/file_main.h"
#include "daemon/disposable/owner_lookup.h"
#include "daemon/wharfd_check.h"
#include "daemon/wharfd_options.h"
#include "daemon/wharfd_reload.h"
#include "daemon/wharfd_show.h"

/* The command line or the configuration is wrong. */
#define EXIT_USAGE 2

/* How often systemd is told what the daemon does. */
#define STATUS_NS (5 * (uint64_t)WHARF_NS_PER_S)

struct daemon {
    struct wharf_server server;
    struct wharf_options_line options;
    struct wharf_reloader reloader;
    struct wharf_source signals;
    struct wharf_timer watchdog;
    struct wharf_timer status;
    bool has_started;
    uint64_t n_told; /* connections, as last told */
};

/* ---- systemd ------------------------------------------------------------------------------- */

static void describe(const struct daemon *daemon, char *text, size_t nbytes)
{
    snprintf(text, nbytes, "Serving %" PRIu64 " connections", daemon->server.n_connections);
}

static void on_status(struct wharf_timer *timer)
{
    struct daemon *daemon = WHARF_LIST_ENTRY(timer, struct daemon, status);
    char text[64];

    if (daemon->n_told != daemon->server.n_connections && daemon->server.is_promised &&
        !daemon->server.is_draining) {
        daemon->n_told = daemon->server.n_connections;
        describe(daemon, text, sizeof(text));
        wharf_notify_status(text);
    }
    wharf_timer_set(daemon->server.loop, timer, wharf_now_ns() + STATUS_NS, on_status);
}

static uint64_t busy_since(const struct wharf_core *core)
{
    uint64_t first_ns = core->backend->ops->busy_since(core->backend);

    for (uint32_t i = 0; i < core->fleet.n_gpus; i++) {
        uint64_t gpu_ns = core->fleet.gpus[i].busy_since_ns;
        first_ns = gpu_ns < first_ns ? gpu_ns : first_ns;
    }
    return first_ns;
}

/* The loop turns, the core lock can be had, and no worker hangs: the daemon is alive. */
static void on_watchdog(struct wharf_timer *timer)
{
    struct daemon *daemon = WHARF_LIST_ENTRY(timer, struct daemon, watchdog);
    struct wharf_server *server = &daemon->server;
    uint64_t now_ns = wharf_now_ns();

    wharf_core_enter(&server->core);
    uint64_t since_ns = busy_since(&server->core);
    wharf_core_leave(&server->core);
    if (since_ns == WHARF_NEVER || now_ns < since_ns ||
        now_ns - since_ns < server->config.stuck_timeout_ns)
        wharf_notify_alive();
    else
        wharf_log(WHARF_LOG_ERROR, NULL, "a worker has been decoding one piece for %" PRIu64 " s",
                  (now_ns - since_ns) / WHARF_NS_PER_S);
    wharf_timer_set(server->loop, timer, now_ns + wharf_notify_watchdog_ns() / 3, on_watchdog);
}

/* Not while something is left of an earlier daemon: no client would be answered. */
static void tell_ready(struct daemon *daemon)
{
    char text[64];

    if (!daemon->server.is_promised) {
        wharf_notify_status("Waiting for what is left of an earlier daemon to end");
        return;
    }
    daemon->n_told = daemon->server.n_connections;
    describe(daemon, text, sizeof(text));
    wharf_notify_ready(text);
}

static void on_promised(struct wharf_server *server)
{
    tell_ready(WHARF_LIST_ENTRY(server, struct daemon, server));
}

/* ---- signals ------------------------------------------------------------------------------- */

static void log_problem(bool is_error, const char *text)
{
    wharf_log(is_error ? WHARF_LOG_ERROR : WHARF_LOG_WARNING, NULL, "%s", text);
}

static void on_loaded(struct wharf_reloader *reloader, struct wharf_config *next,
                      const struct wharf_config_report *report)
{
    struct daemon *daemon = WHARF_LIST_ENTRY(reloader, struct daemon, reloader);
    char message[512];
    bool is_good = false;

    wharf_config_report_list(report, log_problem);
    if (wharf_config_report_is_bad(report))
        wharf_log(WHARF_LOG_ERROR, NULL, "the configuration stays as it was");
    else if (wharf_server_reload(&daemon->server, next, message, sizeof(message)) < 0)
        wharf_log(WHARF_LOG_ERROR, NULL, "the configuration stays as it was: %s", message);
    else
        is_good = true;
    if (is_good)
        wharf_log(WHARF_LOG_NOTICE, NULL, "read the configuration again");
    wharf_server_note_reload(&daemon->server, is_good);
    if (!wharf_reloader_is_busy(reloader))
        tell_ready(daemon);
}

static void reload(struct daemon *daemon)
{
    wharf_notify_reloading();
    int r = wharf_reloader_begin(&daemon->reloader);
    if (r == 0)
        return;
    wharf_server_note_reload(&daemon->server, false);
    wharf_log(WHARF_LOG_ERROR, &(struct wharf_log_fields){.error = -r},
              "the configuration stays as it was");
    tell_ready(daemon);
}

static void on_signal(struct wharf_source *source, uint32_t ready)
{
    struct daemon *daemon = WHARF_LIST_ENTRY(source, struct daemon, signals);
    struct signalfd_siginfo info;

    (void)ready;
    while (read(source->fd, &info, sizeof(info)) == sizeof(info)) {
        if (info.ssi_signo == SIGHUP) {
            reload(daemon);
            continue;
        }
        wharf_log(WHARF_LOG_NOTICE, NULL, "SIG%s: %s", sigabbrev_np((int)info.ssi_signo),
                  daemon->server.is_draining ? "ending at once" : "finishing jobs");
        wharf_server_drain(&daemon->server);
    }
}

/* Before any thread is made: all of them inherit the mask. */
static int block_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* memfds are files too: EFBIG instead, here and in what is started */
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        return -errno;
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return fd < 0 ? -errno : fd;
}

/* ---- main ---------------------------------------------------------------------------------- */

static int run(struct daemon *daemon, struct wharf_config *config)
{
    struct wharf_server *server = &daemon->server;
    int signals = block_signals();
    int r = signals < 0 ? signals : wharf_log_start();

    if (r == 0)
        r = wharf_server_init(server, config);
    if (r == 0)
        r = wharf_loop_add(server->loop, &daemon->signals, signals, POLLIN, on_signal);
    if (r == 0)
        r = wharf_reloader_init(&daemon->reloader, server->loop, &daemon->options, on_loaded);
    if (r < 0)
        return r;
    daemon->has_started = true;
    wharf_log_use_fields();
    wharf_notify_use_loop(server->loop);
    if (wharf_notify_watchdog_ns() != WHARF_NEVER)
        on_watchdog(&daemon->watchdog);
    if (getenv("NOTIFY_SOCKET"))
        on_status(&daemon->status);
    wharf_log(WHARF_LOG_NOTICE, NULL, "wharfd %s serves with %u CPU workers, by %s", WHARF_VERSION,
              (unsigned)server->core.workers.n_workers,
              wharf_loop_kind(server->loop) == WHARF_LOOP_URING ? "io_uring" : "epoll");
    server->on_promised = on_promised;
    tell_ready(daemon);
    r = wharf_server_run(server);
    wharf_notify_use_loop(NULL);
    if (r == 0 && server->n_connections > 0) {
        /* Jobs that are left undone are not waited for. */
        wharf_log_stop();
        _exit(EXIT_SUCCESS);
    }
    wharf_reloader_deinit(&daemon->reloader);
    wharf_loop_remove(server->loop, &daemon->signals);
    close(signals);
    wharf_timer_clear(server->loop, &daemon->watchdog);
    wharf_timer_clear(server->loop, &daemon->status);
    return r;
}

static int serve(struct daemon *daemon, struct wharf_config *config,
                 const struct wharf_config_report *report)
{
    wharf_config_report_list(report, log_problem);
    if (wharf_config_report_is_bad(report)) {
        wharf_notify_status(report->n_problems ? report->problems[0].text : "out of memory");
        return EXIT_USAGE;
    }
    int r = run(daemon, config);
    wharf_server_deinit(&daemon->server);
    if (r < 0 && !daemon->has_started)
        wharf_notify_status("Could not start; the journal says why");
    wharf_log_stop();
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void print_problem(bool is_error, const char *text)
{
    fprintf(stderr, "wharfd: %s: %s\n", is_error ? "error" : "warning", text);
}

static int check(const struct wharf_config *config, struct wharf_config_report *report)
{
    /* Also where lines are wrong: whoever mends those wants to know of the others. */
    wharf_check_machine(config, report);
    wharf_config_report_list(report, print_problem);
    return wharf_config_report_is_bad(report) ? EXIT_USAGE : EXIT_SUCCESS;
}

/* Of a configuration that has a form; whatever else is wrong with it is said too. */
static int show(const struct wharf_config *config, struct wharf_config_report *report)
{
    bool has_form = !wharf_config_report_is_bad(report);
    int status = check(config, report);

    if (has_form)
        wharf_show_config(stdout, config, report);
    return status;
}

/* All that has to do with a configuration. */
static int use_config(const struct wharf_options_line *options)
{
    static struct daemon daemon;
    struct wharf_config config;
    struct wharf_config_report report;
    int status;

    daemon.options = *options;
    wharf_log_init();
    wharf_notify_init();
    wharf_config_report_init(&report);
    wharf_options_load(options, &config, &report);
    if (options->checks_config)
        status = check(&config, &report);
    else if (options->shows_config)
        status = show(&config, &report);
    else
        status = serve(&daemon, &config, &report);
    wharf_config_deinit(&config);
    wharf_config_report_deinit(&report);
    return status;
}

int main(int argc, char **argv)
{
    struct wharf_options_line options;

    /* How the daemon calls itself; nobody else has a reason to. */
    if (argc == 4 && strcmp(argv[1], "--fd-filter") == 0)
        return wharf_fd_filter_main(atoi(argv[2]), (pid_t)atoi(argv[3]));
    if (argc == 4 && strcmp(argv[1], "--io") == 0)
        return wharf_file_main(atoi(argv[2]), (pid_t)atoi(argv[3]));
    if (argc == 4 && strcmp(argv[1], "--closer") == 0)
        return wharf_closer_main(atoi(argv[2]), atoi(argv[3]));
    if (argc == 4 && strcmp(argv[1], "--owners") == 0)
        return wharf_owner_main(atoi(argv[2]), (pid_t)atoi(argv[3]));
    if (wharf_options_parse(argc, argv, &options) < 0)
        return EXIT_USAGE;
    if (options.prints_help)
        wharf_options_print_help();
    else if (options.prints_version)
        printf("wharfd %s\n", WHARF_VERSION);
    else if (options.prints_config)
        wharf_config_print(stdout);
    else
        return use_config(&options);
    return EXIT_SUCCESS;
}
