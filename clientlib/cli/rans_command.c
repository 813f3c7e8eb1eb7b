/* SPDX-License-Identifier: Apache-2.0 */
/* wharf rans: streams of rans, wharf's own and those of the paper's program. */
#include <stdio.h>
#include <string.h>

#include "clientlib/cli/commands.h"
#include "clientlib/cli/number.h"
#include "clientlib/cli/rans_work.h"
#include "clientlib/cli/suggest.h"
#include "clientlib/wharf.h"
#include "encoders/rans/rans_format.h"

enum {
    OPTION_CDF = WHARF_CLI_LONG_ONLY,
    OPTION_INDEXES,
    OPTION_JSON,
    OPTION_MODEL,
    OPTION_SPLITS,
    OPTION_SYMBOLS,
};

static const char *take_option(void *own, int option, const char *argument)
{
    struct wharf_cli_rans_settings *settings = own;

    switch (option) {
    case OPTION_CDF:
        settings->cdf = argument;
        return *argument ? NULL : "the name of a file";
    case OPTION_INDEXES:
        settings->indexes = argument;
        return *argument ? NULL : "the name of a file";
    case OPTION_MODEL:
        settings->model = argument;
        return *argument ? NULL : "the name of a file";
    case OPTION_SPLITS:
        return wharf_cli_parse_number(argument, 1, WHARF_RANS_MAX_SPLITS, &settings->n_splits)
                   ? NULL
                   : "a number of splits from 1 to 65535";
    case OPTION_SYMBOLS:
        settings->symbol_nbytes = strcmp(argument, "u16") == 0 ? 2 : 1;
        return settings->symbol_nbytes == 2 || strcmp(argument, "u8") == 0 ? NULL : "u8 or u16";
    case OPTION_JSON:
        settings->json = true;
        return NULL;
    default:
        return wharf_cli_parse_number(argument, WHARF_RANS_MIN_NBITS, WHARF_RANS_MAX_NBITS,
                                      &settings->n_bits)
                   ? NULL
                   : "a number of bits from 8 to 16";
    }
}

/* ---- the subcommands --------------------------------------------------------------------- */

static const struct option decode_options[] = {
    {"cdf", required_argument, NULL, OPTION_CDF},
    {"indexes", required_argument, NULL, OPTION_INDEXES},
    {"bits", required_argument, NULL, 'n'},
    {"symbols", required_argument, NULL, OPTION_SYMBOLS},
    {0},
};
static const struct option import_options[] = {
    {"cdf", required_argument, NULL, OPTION_CDF},
    {"indexes", required_argument, NULL, OPTION_INDEXES},
    {"bits", required_argument, NULL, 'n'},
    {"symbols", required_argument, NULL, OPTION_SYMBOLS},
    {"model", required_argument, NULL, OPTION_MODEL},
    {0},
};
static const struct option thin_options[] = {
    {"splits", required_argument, NULL, OPTION_SPLITS},
    {0},
};
static const struct option info_options[] = {
    {"json", no_argument, NULL, OPTION_JSON},
    {0},
};
static const struct option encode_options[] = {
    {"cdf", required_argument, NULL, OPTION_CDF},
    {"bits", required_argument, NULL, 'n'},
    {"splits", required_argument, NULL, OPTION_SPLITS},
    {"symbols", required_argument, NULL, OPTION_SYMBOLS},
    {0},
};

#define COMPANIONS_HELP                                                                            \
    "      --cdf FILE       the model: sums of frequencies up to 2^n - 1, of 16 bits\n"            \
    "  -n, --bits N         n, 8 to 16\n"                                                          \
    "      --symbols T      u8 (the default) or u16\n"                                             \
    "      --indexes FILE   a byte for each symbol: which of several distributions\n"

static const struct wharf_cli_command decode_command = {
    .name = "rans decode",
    .usage = "--cdf FILE -n N [OPTION...] [STREAM]",
    .help = "Decodes a stream of Recoil's program, whose model is another file, to standard\n"
            "output or to -o OUT.\n\n" COMPANIONS_HELP,
    .writes_file = true,
    .has_one_thread = true,
    .own_options = decode_options,
    .take_option = take_option,
};
static const struct wharf_cli_command import_command = {
    .name = "rans import",
    .usage = "--cdf FILE -n N [OPTION...] [STREAM]",
    .help = "Makes a stream of codec rans, which brings its model with it, of a stream of\n"
            "Recoil's program.  Splits that overlap are left out.\n\n" COMPANIONS_HELP
            "      --model FILE     leave the model out of the stream, and write it to FILE,\n"
            "                       for `wharf decode --model FILE` and programs to register\n",
    .writes_file = true,
    .has_one_thread = true,
    .daemon = WHARF_CLI_DAEMON_NEVER,
    .own_options = import_options,
    .take_option = take_option,
};
static const struct wharf_cli_command thin_command = {
    .name = "rans thin",
    .usage = "--splits M [OPTION...] [STREAM]",
    .help = "Drops splits until M are left, for a decoder that has no use for more; what is\n"
            "decoded stays the same.  Takes streams of codec rans and of Recoil's program.\n\n"
            "      --splits M       1 to 65535\n",
    .writes_file = true,
    .has_one_thread = true,
    .daemon = WHARF_CLI_DAEMON_NEVER,
    .own_options = thin_options,
    .take_option = take_option,
};
static const struct wharf_cli_command info_command = {
    .name = "rans info",
    .usage = "[--json] [STREAM]",
    .help = "Says what a stream of codec rans or of Recoil's program is made of.\n\n"
            "      --json           one JSON object\n",
    .writes_file = true,
    .has_one_thread = true,
    .daemon = WHARF_CLI_DAEMON_NEVER,
    .own_options = info_options,
    .take_option = take_option,
};
static const struct wharf_cli_command encode_command = {
    .name = "rans encode",
    .usage = "[OPTION...] [IN]",
    .help = "Makes one stream of codec rans of all of IN; with --cdf one of Recoil's program,\n"
            "and its model in FILE.\n\n"
            "  -n, --bits N         bits of a frequency, 8 to 16; default 11\n"
            "      --splits M       places where decoders can begin, at most; default 1\n"
            "      --symbols T      u8 (the default) or u16\n"
            "      --cdf FILE       write what Recoil's program reads; of bytes, n at least 9\n",
    .writes_file = true,
    .has_one_thread = true,
    .daemon = WHARF_CLI_DAEMON_NEVER,
    .own_options = encode_options,
    .take_option = take_option,
};

static const struct {
    const struct wharf_cli_command *command;
    wharf_cli_rans_work_fn *work;
} subcommands[] = {
    {&decode_command, wharf_cli_rans_decode}, {&import_command, wharf_cli_rans_import},
    {&thin_command, wharf_cli_rans_thin},     {&info_command, wharf_cli_rans_info},
    {&encode_command, wharf_cli_rans_encode},
};
enum { N_SUBCOMMANDS = sizeof(subcommands) / sizeof(subcommands[0]) };

/* What a subcommand cannot do without, or with. */
static int check_settings(const struct wharf_cli_command *command,
                          const struct wharf_cli_rans_settings *settings)
{
    bool needs_model = command == &decode_command || command == &import_command;

    if (needs_model && !settings->cdf)
        return wharf_cli_say_usage(command->name, "--cdf is missing: the model's file");
    if (needs_model && !settings->n_bits)
        return wharf_cli_say_usage(command->name, "-n is missing: the bits of a frequency");
    if (command == &thin_command && !settings->n_splits)
        return wharf_cli_say_usage(command->name, "--splits is missing: how many are to be left");
    if (command == &encode_command && settings->cdf &&
        (settings->symbol_nbytes != 1 || settings->n_bits == WHARF_RANS_MIN_NBITS))
        return wharf_cli_say_usage(command->name, "--cdf goes with bytes and -n 9 to 16: each byte "
                                                  "has a frequency there");
    return WHARF_CLI_GO_ON;
}

/* The model first: without it nobody reads the stream.  If the stream fails then, it goes again. */
static int finish(struct wharf_cli_task *task, struct wharf_cli_rans_beside *beside, int status)
{
    int rc;

    if (!beside->is_open)
        return wharf_cli_task_finish(task, status);
    if (status != WHARF_CLI_GOOD) {
        wharf_cli_output_discard(&beside->output);
        return wharf_cli_task_finish(task, status);
    }
    rc = wharf_cli_output_commit(&beside->output, NULL);
    if (rc < 0)
        status = wharf_cli_tally_error(task->tally, beside->output.name, rc);
    status = wharf_cli_task_finish(task, status);
    if (rc == 0 && status != WHARF_CLI_GOOD)
        wharf_cli_output_take_back(&beside->output);
    return status;
}

static int run_work(struct wharf_cli_task *task, wharf_cli_rans_work_fn *work,
                    const struct wharf_cli_rans_settings *settings, const char *in_path)
{
    const struct wharf_cli_options *options = task->options;
    struct wharf_cli_rans_bytes bytes = {0};
    int status = wharf_cli_task_start(task, in_path, options->output ? options->output : "-");

    if (status != WHARF_CLI_GOOD)
        return status;
    status = wharf_cli_rans_read_input(task, &bytes);
    if (status == WHARF_CLI_GOOD)
        status = work(task, settings, &bytes);
    wharf_cli_rans_bytes_deinit(&bytes);
    return finish(task, settings->beside, status);
}

static int run_subcommand(const struct wharf_cli_command *command, wharf_cli_rans_work_fn *work,
                          int argc, char **argv)
{
    struct wharf_cli_rans_beside beside = {.is_open = false};
    struct wharf_cli_rans_settings settings = {.symbol_nbytes = 1, .beside = &beside};
    struct wharf_cli_options options;
    struct wharf_cli_operands operands = {.n_max = 1};
    struct wharf_cli_tally tally;
    struct wharf_cli_input input;
    struct wharf_cli_output output;
    struct wharf_cli_service service = {.options = &options};
    struct wharf_cli_task task = {.options = &options,
                                  .tally = &tally,
                                  .input = &input,
                                  .output = &output,
                                  .service = &service};
    int status = wharf_cli_parse(command, argc, argv, &settings, &options, &operands);

    if (status == WHARF_CLI_GO_ON)
        status = check_settings(command, &settings);
    if (status == WHARF_CLI_GO_ON && command->daemon == WHARF_CLI_DAEMON_MAY)
        status = wharf_cli_service_open_small(&options, &service);
    if (status != WHARF_CLI_GO_ON)
        return status;
    status = run_work(&task, work, &settings, operands.n ? argv[operands.first] : "-");
    wharf_cli_service_close(&service);
    return status;
}

static int print_help(void)
{
    wharf_cli_begin_output();
    printf("usage: wharf rans SUBCOMMAND [OPTION...] [FILE]\n\n%s\n", wharf_cli_rans.help);
    for (int i = 0; i < N_SUBCOMMANDS; i++)
        printf("  wharf %s %s\n", subcommands[i].command->name, subcommands[i].command->usage);
    return wharf_cli_end_output();
}

static int run(int argc, char **argv)
{
    const char *names[N_SUBCOMMANDS];

    if (argc < 2)
        return wharf_cli_say_usage("rans", "a subcommand is missing: decode, import, thin, info "
                                           "or encode");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_help();
    for (int i = 0; i < N_SUBCOMMANDS; i++) {
        names[i] = subcommands[i].command->name + strlen("rans ");
        if (strcmp(argv[1], names[i]) == 0)
            return run_subcommand(subcommands[i].command, subcommands[i].work, argc - 1, argv + 1);
    }
    return wharf_cli_say_usage("rans", "there is no subcommand '%s'%s", argv[1],
                               wharf_cli_suggest(argv[1], names, N_SUBCOMMANDS));
}

const struct wharf_cli_command wharf_cli_rans = {
    .name = "rans",
    .summary = "decode, import, thin, describe or make a stream of rans",
    .usage = "SUBCOMMAND [OPTION...] [FILE]",
    .help = "Streams of codec rans, and those of the program that belongs to the paper on\n"
            "Recoil, whose models are files of their own.\n",
    .daemon = WHARF_CLI_DAEMON_NEVER,
    .run = run,
};
