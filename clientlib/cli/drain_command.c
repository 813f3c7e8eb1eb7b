/* SPDX-License-Identifier: Apache-2.0 */
/* wharf drain: lets the daemon finish its jobs and end. */
#include "clientlib/cli/commands.h"
#include "clientlib/cli/message.h"
#include "clientlib/cli/service.h"

static int run(int argc, char **argv)
{
    struct wharf_cli_options options;
    struct wharf_cli_operands operands = {.n_max = 0};
    struct wharf_cli_service service;
    int status = wharf_cli_parse(&wharf_cli_drain, argc, argv, NULL, &options, &operands);
    int r;

    if (status == WHARF_CLI_GO_ON)
        status = wharf_cli_service_open_small(&options, &service);
    if (status != WHARF_CLI_GO_ON)
        return status;
    r = wharf_drain(service.wharf);
    status =
        r < 0 ? wharf_cli_service_say_error(&service, r, wharf_error_message()) : WHARF_CLI_GOOD;
    if (r == 0 && !options.quiet)
        wharf_cli_say("the daemon finishes the jobs that it has, and ends");
    wharf_cli_service_close(&service);
    return status;
}

const struct wharf_cli_command wharf_cli_drain = {
    .name = "drain",
    .summary = "let the daemon finish its jobs and end",
    .usage = "[OPTION...]",
    .help = "Asks the daemon to take no more jobs, finish those that it has, and end.  Only\n"
            "root and the daemon's own user may.  Clients go on with the next daemon.\n\n",
    .daemon = WHARF_CLI_DAEMON_MUST,
    .run = run,
};
