/* SPDX-License-Identifier: Apache-2.0 */
/* wharf status: what the daemon is, and what it does for whom. */
#include "clientlib/cli/commands.h"
#include "clientlib/cli/message.h"
#include "clientlib/cli/service.h"
#include "clientlib/cli/status_json.h"
#include "clientlib/cli/tenant_table.h"

enum { OPTION_JSON = WHARF_CLI_LONG_ONLY };

static const struct option own_options[] = {
    {"json", no_argument, NULL, OPTION_JSON},
    {0},
};

static const char *take_option(void *own, int option, const char *argument)
{
    bool *is_json = own;

    (void)option;
    (void)argument;
    *is_json = true;
    return NULL;
}

static void print_text(const struct wharf_cli_service *service,
                       const struct wharf_cli_metrics *metrics)
{
    wharf_cli_daemon_summary_print(metrics, &service->info, wharf_cli_service_path(service));
    putchar('\n');
    wharf_cli_tenant_table_print(metrics, NULL, 0, 0);
}

static int print(const struct wharf_cli_service *service, const void *own)
{
    bool is_json = *(const bool *)own;
    struct wharf_cli_metrics metrics;
    int r = wharf_cli_metrics_get(service->wharf, &metrics);

    if (r < 0)
        return wharf_cli_service_say_error(service, r, wharf_error_message());
    if (is_json)
        wharf_cli_status_print_json(stdout, &metrics, &service->info,
                                    wharf_cli_service_path(service));
    else
        print_text(service, &metrics);
    wharf_cli_metrics_free(&metrics);
    return wharf_cli_end_output();
}

static int run(int argc, char **argv)
{
    bool is_json = false;

    return wharf_cli_service_run(&wharf_cli_status, argc, argv, &is_json, print);
}

const struct wharf_cli_command wharf_cli_status = {
    .name = "status",
    .summary = "print what the daemon is and does",
    .usage = "[--json] [OPTION...]",
    .help = "Prints the daemon's version, engines and work, and of each tenant (a user, or\n"
            "what the configuration makes of one) connections, memory, jobs and bytes.  Users\n"
            "see themselves, root, the daemon's own user and its observer_group everybody.\n\n"
            "      --json           one JSON object\n",
    .daemon = WHARF_CLI_DAEMON_MUST,
    .own_options = own_options,
    .take_option = take_option,
    .run = run,
};
