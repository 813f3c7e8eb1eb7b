/* SPDX-License-Identifier: Apache-2.0 */
/* wharf status: what the daemon is, and what it does for whom. */
#include "clientlib/cli/commands.h"
#include "clientlib/cli/message.h"
#include "clientlib/cli/service.h"
#include "clientlib/cli/tenant_table.h"

static int print(const struct wharf_cli_service *service, const void *own)
{
    struct wharf_cli_metrics metrics;
    int r = wharf_cli_metrics_get(service->wharf, &metrics);

    (void)own;
    if (r < 0)
        return wharf_cli_service_say_error(service, r, wharf_error_message());
    wharf_cli_daemon_summary_print(&metrics, &service->info, wharf_cli_service_path(service));
    putchar('\n');
    wharf_cli_tenant_table_print(&metrics, NULL, 0);
    wharf_cli_metrics_free(&metrics);
    return wharf_cli_end_output();
}

static int run(int argc, char **argv)
{
    return wharf_cli_service_run(&wharf_cli_status, argc, argv, NULL, print);
}

const struct wharf_cli_command wharf_cli_status = {
    .name = "status",
    .summary = "print what the daemon is and does",
    .usage = "[OPTION...]",
    .help = "Prints the daemon's version, engines and work, and of each tenant (a user, or\n"
            "what the configuration makes of one) connections, memory, jobs and bytes.  Users\n"
            "see themselves, root and the daemon's own user everybody.\n\n",
    .daemon = WHARF_CLI_DAEMON_MUST,
    .run = run,
};
