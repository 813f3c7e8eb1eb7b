/* SPDX-License-Identifier: Apache-2.0 */
/* wharf unpack: a wharf container, or a part of it, into a file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/cli/commands.h"
#include "clientlib/cli/container_pipe.h"
#include "clientlib/cli/load.h"
#include "clientlib/cli/number.h"
#include "encoders/container_format.h"

static const struct option own_options[] = {
    {"range", required_argument, NULL, 'r'},
    {0},
};

struct settings {
    struct wharf_cli_range range;
    bool has_range;
};

static const char *take_option(void *own, int option, const char *argument)
{
    struct settings *settings = own;

    (void)option; /* there is only one */
    settings->has_range = true;
    if (!wharf_cli_parse_range(argument, &settings->range.offset, &settings->range.nbytes))
        return "OFFSET:LENGTH or OFFSET:, each " WHARF_CLI_SIZE_SYNTAX;
    return NULL;
}

/*
 * What the file is called if nobody says: the input's name less its suffix; standard output for
 * standard input, and for a part, which is not the file of that name.  NULL when there is no
 * suffix to take away, or no memory.
 */
static char *default_name(const char *path, bool has_range)
{
    size_t nbytes = strlen(path);
    size_t suffix_nbytes = strlen(WHARF_CONTAINER_SUFFIX);

    if (strcmp(path, "-") == 0 || has_range)
        return strdup("-");
    if (nbytes <= suffix_nbytes || path[nbytes - suffix_nbytes - 1] == '/' ||
        strcmp(path + nbytes - suffix_nbytes, WHARF_CONTAINER_SUFFIX) != 0)
        return NULL;
    return strndup(path, nbytes - suffix_nbytes);
}

static int unpack_input(struct wharf_cli_task *task, struct wharf_cli_range range)
{
    if (isatty(task->input->fd)) {
        wharf_cli_say("%s: packed data is not read from a terminal", task->input->name);
        return wharf_cli_tally_error(task->tally, task->input->name, -EINVAL);
    }
    return wharf_cli_container_pipe(task, range);
}

static int unpack(const struct wharf_cli_options *options, struct wharf_cli_range range,
                  const char *in_path, const char *out_path)
{
    struct wharf_cli_tally tally;
    struct wharf_cli_input input;
    struct wharf_cli_output output;
    struct wharf_cli_service service;
    struct wharf_cli_task task = {options, &tally, &input, &output, &service};
    int status = wharf_cli_service_open_usual(options, &service);

    if (status != WHARF_CLI_GO_ON)
        return status;
    status = wharf_cli_task_start(&task, in_path, out_path);
    if (status == WHARF_CLI_GOOD)
        status = wharf_cli_task_finish(&task, unpack_input(&task, range));
    wharf_cli_service_close(&service);
    return status;
}

static int run(int argc, char **argv)
{
    struct settings settings = {.range = {0, UINT64_MAX}};
    struct wharf_cli_options options;
    struct wharf_cli_operands operands = {.n_max = 1};
    int status = wharf_cli_parse(&wharf_cli_unpack, argc, argv, &settings, &options, &operands);
    const char *in_path = "-";
    char *name;

    if (status != WHARF_CLI_GO_ON)
        return status;
    if (operands.n)
        in_path = argv[operands.first];
    name = options.output ? strdup(options.output) : default_name(in_path, settings.has_range);
    if (!name)
        return wharf_cli_say_usage("unpack", "%s: does not end in %s; -o NAME names the output",
                                   in_path, WHARF_CONTAINER_SUFFIX);
    status = unpack(&options, settings.range, in_path, name);
    free(name);
    return status;
}

const struct wharf_cli_command wharf_cli_unpack = {
    .name = "unpack",
    .summary = "decompress a wharf container, or a part of it",
    .usage = "[OPTION...] [-o OUT] IN",
    .help = "Decompresses the container IN, checking every chunk.  Without -o the output is\n"
            "IN without its suffix " WHARF_CONTAINER_SUFFIX
            "; with --range, and if IN is - or missing\n"
            "(standard input), it is standard output.\n\n"
            "  -r, --range OFF:LEN  only LEN bytes of output from offset OFF on, reading only\n"
            "                       the chunks that hold them; OFF: goes to the end\n",
    .writes_file = true,
    .own_options = own_options,
    .take_option = take_option,
    .run = run,
};
