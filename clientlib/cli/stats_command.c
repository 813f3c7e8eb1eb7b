/* SPDX-License-Identifier: Apache-2.0 */
/* wharf stats: all that a daemon counts. */
#include <stdio.h>

#include "clientlib/cli/commands.h"
#include "clientlib/cli/message.h"
#include "clientlib/cli/metrics.h"
#include "clientlib/cli/metrics_scrape.h"
#include "clientlib/cli/service.h"

enum { OPTION_JSON = WHARF_CLI_LONG_ONLY, OPTION_PROMETHEUS, OPTION_SCRAPE };

static const struct option own_options[] = {
    {"json", no_argument, NULL, OPTION_JSON},
    {"prometheus", no_argument, NULL, OPTION_PROMETHEUS},
    {"scrape", optional_argument, NULL, OPTION_SCRAPE},
    {0},
};

struct settings {
    int form;
    const char *metrics_socket;
};

static const char *take_option(void *own, int option, const char *argument)
{
    struct settings *settings = own;

    settings->form = option;
    if (option == OPTION_SCRAPE)
        settings->metrics_socket = argument ? argument : WHARF_CLI_METRICS_SOCKET;
    return NULL;
}

static int print(const struct wharf_cli_service *service, const void *own)
{
    int form = ((const struct settings *)own)->form;
    struct wharf_cli_metrics metrics;
    int r = wharf_cli_metrics_get(service->wharf, &metrics);

    if (r < 0)
        return wharf_cli_service_say_error(service, r, wharf_error_message());
    if (form == OPTION_JSON)
        wharf_cli_metrics_print_json(stdout, &metrics);
    else if (form == OPTION_PROMETHEUS)
        wharf_cli_metrics_print_prometheus(stdout, &metrics);
    else
        wharf_cli_metrics_print_text(stdout, &metrics);
    wharf_cli_metrics_free(&metrics);
    return wharf_cli_end_output();
}

static int run(int argc, char **argv)
{
    struct settings settings = {.form = 0};
    struct wharf_cli_options options;
    struct wharf_cli_operands operands = {.n_max = 0};
    struct wharf_cli_service service;
    int status = wharf_cli_parse(&wharf_cli_stats, argc, argv, &settings, &options, &operands);

    if (status != WHARF_CLI_GO_ON)
        return status;
    if (settings.metrics_socket && options.socket)
        return wharf_cli_say_usage("stats", "--scrape and --socket exclude each other");
    if (settings.metrics_socket)
        return wharf_cli_scrape(settings.metrics_socket);
    status = wharf_cli_service_open_small(&options, &service);
    if (status != WHARF_CLI_GO_ON)
        return status;
    wharf_cli_begin_output();
    status = print(&service, &settings);
    wharf_cli_service_close(&service);
    return status;
}

const struct wharf_cli_command wharf_cli_stats = {
    .name = "stats",
    .summary = "print what the daemon counts",
    .usage = "[--json | --prometheus | --scrape[=PATH]] [OPTION...]",
    .help = "Prints all counters of the daemon: the user's own, or for root, the daemon's own\n"
            "user and its observer_group everybody's.\n\n"
            "      --json           one JSON object\n"
            "      --prometheus     the text format of Prometheus\n"
            "      --scrape[=PATH]  likewise, from the daemon's socket for metrics; starts no\n"
            "                       daemon, and prints wharf_up 0 where none answers; default\n"
            "                       " WHARF_CLI_METRICS_SOCKET "\n",
    .daemon = WHARF_CLI_DAEMON_MUST,
    .own_options = own_options,
    .take_option = take_option,
    .run = run,
};
