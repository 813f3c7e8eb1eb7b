/* SPDX-License-Identifier: Apache-2.0 */
/* wharf cat and wharf test: whatever compressed files there are, one after another, to one output
 * or to none. */
#include <errno.h>
#include <stddef.h>

#include "clientlib/cli/commands.h"
#include "clientlib/cli/index_range.h"
#include "clientlib/cli/load.h"
#include "clientlib/cli/number.h"
#include "clientlib/cli/progress.h"

enum { OPTION_INDEX = WHARF_CLI_LONG_ONLY, OPTION_DIRECT };

static const struct option own_options[] = {
    {"range", required_argument, NULL, 'r'},
    {"index", required_argument, NULL, OPTION_INDEX},
    {"direct", no_argument, NULL, OPTION_DIRECT},
    {0},
};

/* What a command does with each file. */
struct settings {
    struct wharf_cli_range range;
    bool is_test;
};

static const char *take_option(void *own, int option, const char *argument)
{
    struct settings *settings = own;

    if (option == OPTION_DIRECT) {
        settings->range.is_direct = true;
        return NULL;
    }
    if (option == OPTION_INDEX) {
        settings->range.index = argument;
        return *argument ? NULL : "the name of a file";
    }
    if (!wharf_cli_parse_range(argument, &settings->range.offset, &settings->range.nbytes))
        return "OFFSET:LENGTH or OFFSET:, each " WHARF_CLI_SIZE_SYNTAX;
    return NULL;
}

/* One file whose input is open. */
static int work_on(struct wharf_cli_task *task, const struct settings *settings)
{
    uint64_t before = task->output->nbytes;
    char text[WHARF_CLI_SIZE_TEXT];
    int status;

    if (wharf_cli_output_is_input(task->output, &task->input->status)) {
        task->output->failed = task->output->is_file; /* not even what others gave replaces it */
        return wharf_cli_tally_error(task->tally, task->input->name, -EINVAL);
    }
    wharf_cli_task_start_progress(task);
    status = wharf_cli_index_decode(task, settings->range);
    wharf_cli_progress_end();
    if (status == WHARF_CLI_GOOD && settings->is_test && task->options->verbose)
        wharf_cli_say("%s: good, %s", task->input->name,
                      wharf_cli_size_text(task->output->nbytes - before, text));
    return status;
}

/* One file.  Failures are in the tally: the next file follows all the same. */
static void open_and_work(struct wharf_cli_task *task, const char *path,
                          const struct settings *settings)
{
    if (wharf_cli_task_open_input(task, path) != WHARF_CLI_GOOD)
        return;
    work_on(task, settings);
    wharf_cli_input_close(task->input);
}

/* A file that would not hold all that was asked for does not get its name. */
static void close_output(struct wharf_cli_task *task)
{
    int r;

    if (task->output->is_file && task->tally->status != WHARF_CLI_GOOD &&
        !wharf_cli_task_keeps(task)) {
        wharf_cli_output_discard(task->output);
        return;
    }
    r = task->output->failed ? 0 : wharf_cli_output_commit(task->output, NULL);
    if (r < 0)
        wharf_cli_task_write_error(task, r);
}

/* Whether the next file is still worth looking at. */
static bool goes_on(const struct wharf_cli_task *task)
{
    return !task->output->failed && (!task->output->is_file || task->options->salvage ||
                                     task->tally->status == WHARF_CLI_GOOD);
}

static int open_output(const struct wharf_cli_options *options, bool is_test,
                       struct wharf_cli_output *output)
{
    int r;

    if (is_test) {
        wharf_cli_output_open_sink(output);
        return 0;
    }
    r = wharf_cli_output_open(output, options->output ? options->output : "-", options->force);
    if (r == 0)
        wharf_cli_output_use_threads(output, options->n_threads);
    return r;
}

static int work_on_all(const struct wharf_cli_options *options, struct wharf_cli_service *service,
                       char **paths, int n_paths, const struct settings *settings)
{
    struct wharf_cli_tally tally;
    struct wharf_cli_input input;
    struct wharf_cli_output output;
    struct wharf_cli_task task = {.options = options,
                                  .tally = &tally,
                                  .input = &input,
                                  .output = &output,
                                  .service = service};
    int r;

    wharf_cli_tally_init(&tally);
    r = open_output(options, settings->is_test, &output);
    if (r < 0)
        wharf_cli_tally_error(&tally, options->output ? options->output : "standard output", r);
    for (int i = 0; r == 0 && i < n_paths && goes_on(&task); i++)
        open_and_work(&task, paths[i], settings);
    if (r == 0 && n_paths == 0)
        open_and_work(&task, "-", settings);
    if (r == 0)
        close_output(&task);
    if (options->report)
        wharf_cli_tally_report(&tally);
    return tally.status;
}

static int run_command(const struct wharf_cli_command *command, int argc, char **argv)
{
    struct wharf_cli_options options;
    struct wharf_cli_operands operands = {.n_max = argc};
    struct wharf_cli_service service;
    struct settings settings = {{0, UINT64_MAX, NULL, false}, command == &wharf_cli_test};
    int status = wharf_cli_parse(command, argc, argv, &settings, &options, &operands);

    if (status == WHARF_CLI_GO_ON && settings.range.index && operands.n > 1)
        status = wharf_cli_say_usage(command->name, "--index is of one file");

    if (status == WHARF_CLI_GO_ON)
        status = wharf_cli_service_open_usual(
            &options, operands.n > 0 ? argv[operands.first] : NULL, settings.is_test, &service);
    if (status != WHARF_CLI_GO_ON)
        return status;
    status = work_on_all(&options, &service, argv + operands.first, operands.n, &settings);
    wharf_cli_service_close(&service);
    return status;
}

static int run_cat(int argc, char **argv)
{
    return run_command(&wharf_cli_cat, argc, argv);
}

static int run_test(int argc, char **argv)
{
    return run_command(&wharf_cli_test, argc, argv);
}

const struct wharf_cli_command wharf_cli_cat = {
    .name = "cat",
    .summary = "decompress files to standard output, as zcat does",
    .usage = "[OPTION...] [FILE...]",
    .help = "Decompresses gzip (all members), BGZF, zlib, zstd, LZ4 frames, framed Snappy,\n"
            "Brotli and wharf containers to standard output, one FILE after another; without\n"
            "FILE, or for -, standard input.\n"
            "gzip, BGZF, zlib and containers are decoded by all cores; BGZF and containers\n"
            "by a daemon, too.\n"
            "With -o there is one file of all, and none if any FILE is bad.\n\n"
            "  -r, --range OFF:LEN  of each FILE only LEN bytes of output from offset OFF on;\n"
            "                       OFF: goes to the end.  Of containers chunks are read;\n"
            "                       of FILE with an index FILE.whi (wharf index) what it says\n"
            "      --index INDEX    that index, GZIDX or .gzi, and no other\n"
            "      --direct         of chunks of bdi, fpc, cpack, best and palette read only\n"
            "                       the lines of the range, which are then not verified\n",
    .writes_file = true,
    .decompresses = true,
    .salvages = true,
    .own_options = own_options,
    .take_option = take_option,
    .run = run_cat,
};

const struct wharf_cli_command wharf_cli_test = {
    .name = "test",
    .summary = "decompress files and verify them, without writing anything",
    .usage = "[OPTION...] [FILE...]",
    .help = "Decompresses and verifies gzip (all members), BGZF, zlib, zstd, LZ4 frames,\n"
            "framed Snappy, Brotli and wharf containers, and says what is wrong with them;\n"
            "without FILE, or for -, standard input.\n\n",
    .decompresses = true,
    .run = run_test,
};
