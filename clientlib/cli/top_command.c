/* SPDX-License-Identifier: Apache-2.0 */
/* wharf top: who has the daemon do how much, again and again. */
#include "clientlib/cli/commands.h"
#include "clientlib/cli/message.h"
#include "clientlib/cli/number.h"
#include "clientlib/cli/screen.h"
#include "clientlib/cli/service.h"
#include "clientlib/cli/tenant_table.h"
#include "clientlib/now.h"

enum { MAX_COUNT = 1000000 };

#define NS_PER_S UINT64_C(1000000000)
#define MIN_NS (NS_PER_S / 10)
#define MAX_NS (3600 * NS_PER_S)

static const struct option own_options[] = {
    {"count", required_argument, NULL, 'n'},
    {"interval", required_argument, NULL, 'i'},
    {0},
};

struct settings {
    int64_t count; /* 0: for ever */
    uint64_t interval_ns;
};

static const char *take_option(void *own, int option, const char *argument)
{
    struct settings *settings = own;

    if (option == 'n')
        return wharf_cli_parse_number(argument, 1, MAX_COUNT, &settings->count)
                   ? NULL
                   : "a number from 1 to 1000000";
    return wharf_cli_parse_seconds(argument, MIN_NS, MAX_NS, &settings->interval_ns)
               ? NULL
               : "a number of seconds from 0.1 to 3600";
}

/* A copy of the statistics, and when it was taken. */
struct copy {
    struct wharf_cli_metrics metrics;
    uint64_t taken_ns;
};

/* Each picture has a screen for itself; where there is none an empty line parts them.  Before the
 * first interval is over there are no rates. */
static void print(const struct wharf_cli_service *service, const struct copy *now,
                  const struct copy *before)
{
    bool is_screen = wharf_cli_screen_clear();
    unsigned n_rows = wharf_cli_screen_rows();
    unsigned n_taken;

    if (!before && !is_screen)
        return;
    /* And an empty line, and the one that the cursor is in at the end. */
    n_taken = 2 + wharf_cli_daemon_summary_print(&now->metrics, &service->info,
                                                 wharf_cli_service_path(service));
    putchar('\n');
    if (before)
        wharf_cli_tenant_table_print(&now->metrics, &before->metrics,
                                     1e-9 * (double)(now->taken_ns - before->taken_ns),
                                     n_rows > n_taken ? n_rows - n_taken : n_rows != 0);
    if (!is_screen)
        putchar('\n');
}

/* 0 or -errno. */
static int take_copy(const struct wharf_cli_service *service, struct copy *ret_copy)
{
    ret_copy->taken_ns = wharf_client_now_ns();
    return wharf_cli_metrics_get(service->wharf, &ret_copy->metrics);
}

/* Until it was enough, the user has it, standard output takes no more (*ret_status), or the daemon
 * is gone, -errno.  Replaces *copy. */
static int watch_on(const struct wharf_cli_service *service, const struct settings *settings,
                    struct copy *copy, int *ret_status)
{
    for (int64_t i = 0; *ret_status == WHARF_CLI_GOOD && (i < settings->count || !settings->count);
         i++) {
        struct copy now;
        if (wharf_cli_screen_rest(copy->taken_ns + settings->interval_ns))
            return 0;
        int r = take_copy(service, &now);
        if (r < 0)
            return r;
        print(service, &now, copy);
        *ret_status = wharf_cli_end_output();
        wharf_cli_metrics_free(&copy->metrics);
        *copy = now;
    }
    return 0;
}

static int watch(const struct wharf_cli_service *service, const void *own)
{
    int status = WHARF_CLI_GOOD;
    struct copy copy;
    int r = take_copy(service, &copy);

    if (r == 0) {
        wharf_cli_screen_enter();
        print(service, &copy, NULL);
        status = wharf_cli_end_output();
        r = watch_on(service, own, &copy, &status);
        wharf_cli_screen_leave();
        wharf_cli_metrics_free(&copy.metrics);
    }
    return r < 0 ? wharf_cli_service_say_error(service, r, wharf_error_message()) : status;
}

static int run(int argc, char **argv)
{
    struct settings settings = {.count = 0, .interval_ns = NS_PER_S};

    return wharf_cli_service_run(&wharf_cli_top, argc, argv, &settings, watch);
}

const struct wharf_cli_command wharf_cli_top = {
    .name = "top",
    .summary = "watch what the daemon does for whom",
    .usage = "[OPTION...]",
    .help = "Shows, every second, what the daemon did for each tenant in each second.\n"
            "The key q ends it.\n\n"
            "  -i, --interval N     every N seconds, 0.1 to 3600\n"
            "  -n, --count N        N times, then end; default: until it is interrupted\n",
    .daemon = WHARF_CLI_DAEMON_MUST,
    .own_options = own_options,
    .take_option = take_option,
    .run = run,
};
