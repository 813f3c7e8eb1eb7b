/* SPDX-License-Identifier: Apache-2.0 */
/* wharf top: who has the daemon do how much, again and again. */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "clientlib/cli/commands.h"
#include "clientlib/cli/message.h"
#include "clientlib/cli/number.h"
#include "clientlib/cli/service.h"
#include "clientlib/cli/tenant_table.h"
#include "clientlib/now.h"

enum { MAX_SECONDS = 3600, MAX_COUNT = 1000000 };

static const struct option own_options[] = {
    {"count", required_argument, NULL, 'n'},
    {"interval", required_argument, NULL, 'i'},
    {0},
};

struct settings {
    int64_t count; /* 0: for ever */
    int64_t interval_s;
};

static const char *take_option(void *own, int option, const char *argument)
{
    struct settings *settings = own;

    if (option == 'n')
        return wharf_cli_parse_number(argument, 1, MAX_COUNT, &settings->count)
                   ? NULL
                   : "a number from 1 to 1000000";
    return wharf_cli_parse_number(argument, 1, MAX_SECONDS, &settings->interval_s)
               ? NULL
               : "a number of seconds from 1 to 3600";
}

static void sleep_s(int64_t seconds)
{
    struct timespec left = {.tv_sec = (time_t)seconds};

    while (nanosleep(&left, &left) < 0 && errno == EINTR)
        ;
}

/* A terminal is cleared for each picture; elsewhere an empty line parts them. */
static void print(const struct wharf_cli_service *service, const struct wharf_cli_metrics *now,
                  const struct wharf_cli_metrics *before, double seconds)
{
    fputs(isatty(STDOUT_FILENO) ? "\033[H\033[2J" : "", stdout);
    wharf_cli_daemon_summary_print(now, &service->info, wharf_cli_service_path(service));
    putchar('\n');
    wharf_cli_tenant_table_print(now, before, seconds);
    fputs(isatty(STDOUT_FILENO) ? "" : "\n", stdout);
}

static int watch(const struct wharf_cli_service *service, const void *own)
{
    const struct settings *settings = own;
    struct wharf_cli_metrics before, now;
    uint64_t before_ns = wharf_client_now_ns();
    int r = wharf_cli_metrics_get(service->wharf, &before);
    int status = WHARF_CLI_GOOD;

    if (r < 0)
        return wharf_cli_service_say_error(service, r, wharf_error_message());
    for (int64_t i = 0; status == WHARF_CLI_GOOD && (i < settings->count || !settings->count);
         i++) {
        sleep_s(settings->interval_s);
        uint64_t now_ns = wharf_client_now_ns();
        r = wharf_cli_metrics_get(service->wharf, &now);
        if (r < 0) {
            status = wharf_cli_service_say_error(service, r, wharf_error_message());
            break;
        }
        print(service, &now, &before, 1e-9 * (double)(now_ns - before_ns));
        status = wharf_cli_end_output();
        wharf_cli_metrics_free(&before);
        before = now;
        before_ns = now_ns;
    }
    wharf_cli_metrics_free(&before);
    return status;
}

static int run(int argc, char **argv)
{
    struct settings settings = {.count = 0, .interval_s = 1};

    return wharf_cli_service_run(&wharf_cli_top, argc, argv, &settings, watch);
}

const struct wharf_cli_command wharf_cli_top = {
    .name = "top",
    .summary = "watch what the daemon does for whom",
    .usage = "[OPTION...]",
    .help = "Shows, every second, what the daemon did for each tenant in each second.\n\n"
            "  -i, --interval N     every N seconds\n"
            "  -n, --count N        N times, then end; default: until it is interrupted\n",
    .daemon = WHARF_CLI_DAEMON_MUST,
    .own_options = own_options,
    .take_option = take_option,
    .run = run,
};
