/* SPDX-License-Identifier: Apache-2.0 */
/* wharf drain: lets the daemon finish its jobs and end. */
#include "clientlib/cli/commands.h"
#include "clientlib/cli/message.h"
#include "clientlib/cli/service.h"

static int drain(const struct wharf_cli_service *service, const void *own)
{
    int r = wharf_drain(service->wharf);

    (void)own;
    if (r < 0)
        return wharf_cli_service_say_error(service, r, wharf_error_message());
    if (!service->options->quiet)
        wharf_cli_say("the daemon finishes the jobs that it has, and ends");
    return WHARF_CLI_GOOD;
}

static int run(int argc, char **argv)
{
    return wharf_cli_service_run(&wharf_cli_drain, argc, argv, NULL, drain);
}

const struct wharf_cli_command wharf_cli_drain = {
    .name = "drain",
    .summary = "let the daemon finish its jobs and end",
    .usage = "[OPTION...]",
    .help = "Asks the daemon to take no more jobs, finish those that it has, and end.  Only\n"
            "root and the daemon's own user may.  Clients go on with the next daemon.\n\n"
            "  -q, --quiet          do not say that it does\n",
    .daemon = WHARF_CLI_DAEMON_MUST,
    .run = run,
};
