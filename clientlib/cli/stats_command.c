/* SPDX-License-Identifier: Apache-2.0 */
/* wharf stats: all that a daemon counts. */
#include <stdio.h>

#include "clientlib/cli/commands.h"
#include "clientlib/cli/message.h"
#include "clientlib/cli/metrics.h"
#include "clientlib/cli/service.h"

enum { OPTION_JSON = WHARF_CLI_LONG_ONLY, OPTION_PROMETHEUS };

static const struct option own_options[] = {
    {"json", no_argument, NULL, OPTION_JSON},
    {"prometheus", no_argument, NULL, OPTION_PROMETHEUS},
    {0},
};

static const char *take_option(void *own, int option, const char *argument)
{
    int *form = own;

    (void)argument;
    *form = option;
    return NULL;
}

static int print(const struct wharf_cli_service *service, const void *own)
{
    int form = *(const int *)own;
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
    int form = 0;

    return wharf_cli_service_run(&wharf_cli_stats, argc, argv, &form, print);
}

const struct wharf_cli_command wharf_cli_stats = {
    .name = "stats",
    .summary = "print what the daemon counts",
    .usage = "[--json | --prometheus] [OPTION...]",
    .help = "Prints all counters of the daemon: the user's own, or for root and the daemon's\n"
            "own user everybody's.\n\n"
            "      --json           one JSON object\n"
            "      --prometheus     the text format of Prometheus\n",
    .daemon = WHARF_CLI_DAEMON_MUST,
    .own_options = own_options,
    .take_option = take_option,
    .run = run,
};
