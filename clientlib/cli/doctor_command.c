/* SPDX-License-Identifier: Apache-2.0 */
/* wharf doctor: looks at all that wharf needs, and says what is missing and what mends it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/commands.h"
#include "clientlib/cli/doctor.h"
#include "clientlib/cli/message.h"
#include "clientlib/cli/service.h"

enum { OPTION_JSON = WHARF_CLI_LONG_ONLY, OPTION_ROOT };

struct doctor_options {
    bool is_json;
    const char *root;
};

static const struct option own_options[] = {
    {"json", no_argument, NULL, OPTION_JSON},
    {"root", required_argument, NULL, OPTION_ROOT},
    {0},
};

static const char *take_option(void *own, int option, const char *argument)
{
    struct doctor_options *options = own;

    if (option == OPTION_JSON) {
        options->is_json = true;
        return NULL;
    }
    options->root = argument;
    return *argument == '/' ? NULL : "the absolute path of a folder";
}

/* Without a daemon that can be used: that says most of all. */
static int status_of(const struct wharf_cli_doctor *doctor)
{
    int status = WHARF_CLI_GOOD;

    for (unsigned i = 0; i < doctor->n_findings; i++) {
        const struct wharf_cli_finding *finding = &doctor->findings[i];
        if (finding->health != WHARF_CLI_HEALTH_MISSING)
            continue;
        if (strcmp(finding->check, "daemon") == 0)
            return WHARF_CLI_NO_DAEMON;
        status = WHARF_CLI_FAILED;
    }
    return status;
}

static int examine(const struct wharf_cli_options *options, const struct doctor_options *own)
{
    struct wharf_cli_doctor *doctor = calloc(1, sizeof(*doctor));
    int status;

    if (!doctor) {
        wharf_cli_say("out of memory");
        return WHARF_CLI_FAILED;
    }
    doctor->options = options;
    doctor->root = own->root;
    doctor->path = wharf_cli_service_path(&(struct wharf_cli_service){.options = options});
    wharf_cli_doctor_look_at_daemon(doctor);
    wharf_cli_doctor_look_at_gpus(doctor);
    wharf_cli_doctor_look_at_limits(doctor);
    wharf_cli_doctor_look_at_kernel(doctor);
    wharf_cli_doctor_look_at_callers(doctor);
    wharf_cli_begin_output();
    if (own->is_json)
        wharf_cli_doctor_print_json(doctor);
    else
        wharf_cli_doctor_print_text(doctor, options->quiet);
    status = wharf_cli_end_output();
    if (status == WHARF_CLI_GOOD)
        status = status_of(doctor);
    wharf_cli_metrics_free(&doctor->metrics);
    wharf_close(doctor->wharf);
    free(doctor);
    return status;
}

static int run(int argc, char **argv)
{
    struct doctor_options own = {.root = ""};
    struct wharf_cli_options options;
    struct wharf_cli_operands operands = {.n_max = 0};
    int status = wharf_cli_parse(&wharf_cli_doctor_command, argc, argv, &own, &options, &operands);

    return status == WHARF_CLI_GO_ON ? examine(&options, &own) : status;
}

const struct wharf_cli_command wharf_cli_doctor_command = {
    .name = "doctor",
    .summary = "find what is missing here, and what mends it",
    .usage = "[-q] [--json] [OPTION...]",
    .help = "Looks at the daemon and who may use it, GPUs, limits, the kernel, and what\n"
            "serves other programs.  Of each it says whether that is ok, works at a cost\n"
            "(warning) or does not work (missing), what it costs, and one command that\n"
            "mends it.  Exit status: 0 if nothing is missing, 3 if no daemon can be used,\n"
            "4 if anything else is missing.\n\n"
            "      --json           one JSON object\n"
            "      --root DIR       look for the system's files below DIR: of an image\n"
            "  -q, --quiet          only what is not ok\n",
    .daemon = WHARF_CLI_DAEMON_MUST,
    .own_options = own_options,
    .take_option = take_option,
    .run = run,
};
