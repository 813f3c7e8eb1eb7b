/* SPDX-License-Identifier: Apache-2.0 */
/* wharf why: what decodes a file, how fast, and what stands in the way of more. */
#include <errno.h>
#include <stdlib.h>

#include "clientlib/cli/any_detect.h"
#include "clientlib/cli/commands.h"
#include "clientlib/cli/load.h"
#include "clientlib/cli/number.h"
#include "clientlib/cli/why.h"

enum { OPTION_JSON = WHARF_CLI_LONG_ONLY, OPTION_SECONDS };

static const struct option own_options[] = {
    {"json", no_argument, NULL, OPTION_JSON},
    {"seconds", required_argument, NULL, OPTION_SECONDS},
    {0},
};

struct settings {
    bool is_json;
    int64_t n_seconds;
};

/* A measurement's length unless --seconds says otherwise. */
#define USUAL_NS UINT64_C(300000000)

static const char *take_option(void *own, int option, const char *argument)
{
    struct settings *settings = own;

    if (option == OPTION_SECONDS)
        return wharf_cli_parse_number(argument, 0, 3600, &settings->n_seconds)
                   ? NULL
                   : "a whole number from 0 to 3600";
    settings->is_json = true;
    return NULL;
}

static int explain(struct wharf_cli_task *task, const struct settings *settings)
{
    struct wharf_cli_why why = {
        .task = task,
        .least_ns =
            settings->n_seconds < 0 ? USUAL_NS : (uint64_t)settings->n_seconds * 1000000000u,
    };
    int status = wharf_cli_why_ask(&why);

    if (status == WHARF_CLI_GOOD)
        status = wharf_cli_why_look(&why);
    if (status == WHARF_CLI_GOOD)
        status = wharf_cli_why_measure(&why);
    if (status == WHARF_CLI_GOOD) {
        wharf_cli_why_check(&why);
        wharf_cli_begin_output();
        if (settings->is_json)
            wharf_cli_why_print_json(&why);
        else
            wharf_cli_why_print_text(&why);
        status = wharf_cli_end_output();
    }
    wharf_cli_why_deinit(&why);
    return status;
}

/* The file must seek: it is read more than once, out of order.  Says so, unless it is empty. */
static int refuse(struct wharf_cli_task *task)
{
    enum wharf_source_kind kind;
    int status = wharf_cli_any_detect(task, &kind);

    if (status != WHARF_CLI_GOOD)
        return status;
    if (kind == WHARF_SOURCE_EMPTY)
        return wharf_cli_any_tell_unknown(task, kind);
    wharf_cli_say("%s: is no file: chunks here and there in it are read", task->input->name);
    return wharf_cli_tally_failure(task->tally, task->input->name, -ESPIPE, WHARF_CLI_USAGE);
}

static int explain_path(struct wharf_cli_task *task, const char *path,
                        const struct settings *settings)
{
    int status = wharf_cli_task_open_input(task, path);

    if (status != WHARF_CLI_GOOD)
        return status;
    status = task->input->is_seekable ? explain(task, settings) : refuse(task);
    wharf_cli_input_close(task->input);
    return status;
}

static int run(int argc, char **argv)
{
    struct settings settings = {.n_seconds = -1};
    struct wharf_cli_options options;
    struct wharf_cli_operands operands = {.n_max = 1};
    struct wharf_cli_service service;
    struct wharf_cli_tally tally;
    struct wharf_cli_input input;
    struct wharf_cli_output output;
    struct wharf_cli_task task = {.options = &options,
                                  .tally = &tally,
                                  .input = &input,
                                  .output = &output,
                                  .service = &service};
    int status =
        wharf_cli_parse(&wharf_cli_why_command, argc, argv, &settings, &options, &operands);

    if (status == WHARF_CLI_GO_ON && operands.n == 0)
        return wharf_cli_say_usage("why", "FILE is missing");
    if (status == WHARF_CLI_GO_ON)
        status = wharf_cli_service_open_usual(&options, NULL, false, &service);
    if (status != WHARF_CLI_GO_ON)
        return status;
    wharf_cli_tally_init(&tally);
    wharf_cli_output_open_sink(&output);
    status = explain_path(&task, argv[operands.first], &settings);
    wharf_cli_service_close(&service);
    if (options.report)
        wharf_cli_tally_report(&tally);
    return status;
}

const struct wharf_cli_command wharf_cli_why_command = {
    .name = "why",
    .summary = "say what decodes a file, how fast, and what limits it",
    .usage = "[OPTION...] FILE",
    .help = "Prints of a compressed FILE its codec and the sizes of its chunks, what decodes\n"
            "it, this process or the daemon and its engines, at what rate a sample of it\n"
            "is decoded, which limits and settings stand in the way of more, and what\n"
            "changes that.\n\n"
            "      --seconds N      repeat each measurement so long; default 0.3\n"
            "      --json           one JSON object\n",
    .own_options = own_options,
    .take_option = take_option,
    .run = run,
};
