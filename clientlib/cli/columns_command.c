/* SPDX-License-Identifier: Apache-2.0 */
/* wharf columns: integer, boolean and byte columns of ORC files, as arrays. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "clientlib/cli/columns_error.h"
#include "clientlib/cli/columns_name.h"
#include "clientlib/cli/columns_work.h"
#include "clientlib/cli/commands.h"
#include "clientlib/cli/progress.h"

enum { OPTION_LIST = WHARF_CLI_LONG_ONLY, OPTION_RAW };

static const struct option own_options[] = {
    {"force", no_argument, NULL, 'f'},
    {"list", no_argument, NULL, OPTION_LIST},
    {"output", required_argument, NULL, 'o'},
    {"raw", no_argument, NULL, OPTION_RAW},
    {0},
};

struct settings {
    bool lists;
    bool is_raw;
    bool force;
    const char *folder;
    char **names;
    int n_names;
};

/* The file, and what is to be had of it. */
struct job {
    struct wharf_cli_task *task;
    const struct settings *settings;
    struct wharf_orc_file file;
    struct wharf_cli_column *columns;
    size_t n_columns;
};

static const char *take_option(void *own, int option, const char *argument)
{
    struct settings *settings = own;

    if (option == 'o') {
        settings->folder = argument;
        return *argument ? NULL : "the name of a folder";
    }
    settings->force = settings->force || option == 'f';
    settings->lists = settings->lists || option == OPTION_LIST;
    settings->is_raw = settings->is_raw || option == OPTION_RAW;
    return NULL;
}

/* ---- columns that are wanted --------------------------------------------------------------- */

static int fail_memory(struct job *job)
{
    return wharf_cli_task_error(job->task, "cannot decode", -ENOMEM);
}

static int refuse(struct job *job, int error, int status)
{
    return wharf_cli_tally_failure(job->task->tally, job->task->input->name, error, status);
}

static bool is_there(const struct job *job, uint32_t number)
{
    for (size_t i = 0; i < job->n_columns; i++)
        if (job->columns[i].column.number == number)
            return true;
    return false;
}

/* Adds a column that can be read, and is not there yet. */
static int add(struct job *job, const struct wharf_orc_column *column)
{
    const char *suffix = job->settings->is_raw ? ".bin" : ".npy";
    struct wharf_cli_column *entry = &job->columns[job->n_columns];
    const char *folder = job->task->options->output, *file = job->task->input->name;

    entry->column = *column;
    entry->name = wharf_cli_column_name(&job->file, column->number);
    job->n_columns++;
    if (!entry->name)
        return fail_memory(job);
    entry->values_path = wharf_cli_column_path(folder, file, entry->name, suffix);
    entry->nulls_path = wharf_cli_column_path(folder, file, entry->name, WHARF_CLI_NULLS_SUFFIX);
    return entry->values_path && entry->nulls_path ? WHARF_CLI_GOOD : fail_memory(job);
}

static int add_named(struct job *job, const char *name)
{
    struct wharf_orc_column column;
    uint32_t number = 0;
    int n = wharf_cli_column_find(&job->file, name, &number);

    if (n < 0)
        return fail_memory(job);
    if (n != 1) {
        wharf_cli_say(n == 0 ? "%s: has no column '%s'; --list shows what it has"
                             : "%s: has several columns '%s': #N is the one with the number N, "
                               "which --list shows",
                      job->task->input->name, name);
        return refuse(job, -ENOENT, WHARF_CLI_USAGE);
    }
    const char *why = wharf_orc_column_find(&job->file, number, &column);
    if (!why)
        return is_there(job, number) ? WHARF_CLI_GOOD : add(job, &column);
    wharf_cli_say("%s: column '%s' (%s) %s", job->task->input->name, name,
                  wharf_orc_kind_name(job->file.types[number].kind), why);
    return refuse(job, -EOPNOTSUPP, WHARF_CLI_FAILED);
}

/* Each is a file, and takes a thousand times the memory that it has in the footer. */
#define MOST_COLUMNS (1u << 16)

static int refuse_many(struct job *job)
{
    wharf_cli_say("%s: has more than %u columns: name those that you want", job->task->input->name,
                  MOST_COLUMNS);
    return refuse(job, -E2BIG, WHARF_CLI_FAILED);
}

/* All that can be read. */
static int add_all(struct job *job)
{
    struct wharf_orc_column column;
    uint32_t n_left_out = 0;

    for (uint32_t i = 0; i < job->file.n_types; i++) {
        bool is_part = job->file.types[i].kind == WHARF_ORC_STRUCT;
        if (wharf_orc_column_find(&job->file, i, &column))
            n_left_out += !is_part;
        else if (job->n_columns == MOST_COLUMNS)
            return refuse_many(job);
        else if (add(job, &column) != WHARF_CLI_GOOD)
            return WHARF_CLI_FAILED;
    }
    if (job->n_columns == 0) {
        wharf_cli_say("%s: has no column of integers, booleans or bytes; --list shows what it has",
                      job->task->input->name);
        return refuse(job, -EOPNOTSUPP, WHARF_CLI_FAILED);
    }
    if (n_left_out && !job->task->options->quiet)
        wharf_cli_say("%s: %" PRIu32 " columns of other types are left out", job->task->input->name,
                      n_left_out);
    return WHARF_CLI_GOOD;
}

static int compare_paths(const void *a, const void *b)
{
    const struct wharf_cli_column *const *columns[] = {a, b};

    return strcmp((*columns[0])->values_path, (*columns[1])->values_path);
}

/* Two columns of one name would become one file. */
static int check_distinct(struct job *job)
{
    const struct wharf_cli_column **sorted = malloc(job->n_columns * sizeof(*sorted));
    int status = WHARF_CLI_GOOD;

    if (!sorted)
        return fail_memory(job);
    for (size_t i = 0; i < job->n_columns; i++)
        sorted[i] = &job->columns[i];
    qsort(sorted, job->n_columns, sizeof(*sorted), compare_paths);
    for (size_t i = 1; i < job->n_columns && status == WHARF_CLI_GOOD; i++)
        if (compare_paths(&sorted[i - 1], &sorted[i]) == 0) {
            wharf_cli_say("%s: columns %" PRIu32 " and %" PRIu32 " are both called '%s': name one "
                          "of them by its number, as #%" PRIu32,
                          job->task->input->name, sorted[i - 1]->column.number,
                          sorted[i]->column.number, sorted[i]->name, sorted[i]->column.number);
            status = refuse(job, -EEXIST, WHARF_CLI_USAGE);
        }
    free(sorted);
    return status;
}

static int choose(struct job *job)
{
    const struct settings *settings = job->settings;
    size_t n_types = job->file.n_types < MOST_COLUMNS ? job->file.n_types : MOST_COLUMNS;
    size_t most = settings->n_names ? (size_t)settings->n_names : n_types;
    int status = WHARF_CLI_GOOD;

    job->columns = calloc(most, sizeof(*job->columns));
    if (!job->columns)
        return fail_memory(job);
    if (settings->n_names == 0)
        status = add_all(job);
    for (int i = 0; i < settings->n_names && status == WHARF_CLI_GOOD; i++)
        status = add_named(job, settings->names[i]);
    return status == WHARF_CLI_GOOD ? check_distinct(job) : status;
}

/* ---- list ---------------------------------------------------------------------------------- */

/* Names are the file's: no control characters of theirs reach a terminal. */
static void hide_controls(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

static int list(struct job *job)
{
    struct wharf_orc_column column;

    wharf_cli_begin_output();
    printf("%" PRIu64 " rows in %" PRIu32 " stripes\n\n%6s  %-9s  %s\n", job->file.n_rows,
           job->file.n_stripes, "column", "type", "name");
    for (uint32_t i = 0; i < job->file.n_types; i++) {
        const char *why = wharf_orc_column_find(&job->file, i, &column);
        char *name = wharf_cli_column_name(&job->file, i);
        if (!name)
            return fail_memory(job);
        hide_controls(name);
        if (i > 0 || !why)
            printf("%6" PRIu32 "  %-9s  %s%s\n", i, wharf_orc_kind_name(job->file.types[i].kind),
                   name,
                   why && job->file.types[i].kind != WHARF_ORC_STRUCT ? "  (not decoded)" : "");
        free(name);
    }
    return wharf_cli_end_output();
}

/* ---- the command --------------------------------------------------------------------------- */

static int decode(struct job *job)
{
    struct wharf_cli_task *task = job->task;
    struct wharf_cli_columns columns = {.task = task, .file = &job->file};
    int status = choose(job);

    if (status != WHARF_CLI_GOOD)
        return status;
    columns.columns = job->columns;
    columns.n_columns = job->n_columns;
    columns.is_raw = job->settings->is_raw;
    wharf_cli_task_start_progress(task);
    status = wharf_cli_columns_decode(&columns);
    wharf_cli_progress_end();
    if (status == WHARF_CLI_GOOD) {
        task->tally->in_nbytes += task->input->nbytes;
        task->tally->engines |= 1u << WHARF_ENGINE_CPU;
    }
    return status;
}

static void job_deinit(struct job *job)
{
    for (size_t i = 0; i < job->n_columns; i++) {
        free(job->columns[i].name);
        free(job->columns[i].values_path);
        free(job->columns[i].nulls_path);
    }
    free(job->columns);
    wharf_orc_file_close(&job->file);
}

/* Its end tells where everything is. */
static int check_input(struct wharf_cli_task *task)
{
    if (task->input->is_seekable)
        return WHARF_CLI_GOOD;
    wharf_cli_say("%s: %s", task->input->name,
                  S_ISREG(task->input->status.st_mode)
                      ? "is empty, or of a file system that makes its files up"
                      : "is no file: an ORC file is read from its end");
    return wharf_cli_tally_error(task->tally, task->input->name, -ESPIPE);
}

static int work(struct wharf_cli_task *task, const struct settings *settings)
{
    struct job job = {.task = task, .settings = settings};
    const struct wharf_orc_source source = {wharf_cli_columns_read, task->input,
                                            task->input->nbytes};
    struct wharf_orc_error error;
    int status = check_input(task);

    if (status != WHARF_CLI_GOOD)
        return status;
    if (wharf_orc_file_open(&source, &job.file, &error) < 0)
        return wharf_cli_columns_fail(task, NULL, &error);
    status = settings->lists ? list(&job) : decode(&job);
    job_deinit(&job);
    return status;
}

static int check_folder(const struct wharf_cli_options *options)
{
    struct stat status;

    if (!options->output || (stat(options->output, &status) == 0 && S_ISDIR(status.st_mode)))
        return WHARF_CLI_GO_ON;
    return wharf_cli_say_usage("columns", "--output: '%s' is no folder", options->output);
}

static int run(int argc, char **argv)
{
    struct settings settings = {0};
    struct wharf_cli_options options;
    struct wharf_cli_operands operands = {.n_max = argc};
    struct wharf_cli_tally tally;
    struct wharf_cli_input input;
    struct wharf_cli_output sink;
    struct wharf_cli_task task = {.options = &options,
                                  .tally = &tally,
                                  .input = &input,
                                  .output = &sink,
                                  .counts_input = true};
    int status = wharf_cli_parse(&wharf_cli_columns, argc, argv, &settings, &options, &operands);

    if (status != WHARF_CLI_GO_ON)
        return status;
    if (operands.n == 0)
        return wharf_cli_say_usage("columns", "name a FILE");
    options.output = settings.folder;
    options.force = settings.force;
    status = check_folder(&options);
    if (status != WHARF_CLI_GO_ON)
        return status;
    settings.names = argv + operands.first + 1;
    settings.n_names = operands.n - 1;
    wharf_cli_tally_init(&tally);
    wharf_cli_output_open_sink(&sink);
    status = wharf_cli_task_open_input(&task, argv[operands.first]);
    if (status == WHARF_CLI_GOOD) {
        status = work(&task, &settings);
        wharf_cli_input_close(&input);
    }
    if (options.report)
        wharf_cli_tally_report(&tally);
    return status;
}

const struct wharf_cli_command wharf_cli_columns = {
    .name = "columns",
    .summary = "decode columns of ORC files to arrays",
    .usage = "[OPTION...] FILE [NAME...]",
    .help = "Decodes columns of integers, booleans and bytes, all or those that are named,\n"
            "to FILE.NAME.npy, which numpy.load reads.  A column with nulls has 0 in their\n"
            "places, and a second file, FILE.NAME.nulls: true for each row that is null.\n"
            "Of a column in a structure NAME is `a.b`; `#7` is the column number 7.\n\n"
            "      --list           only show the columns of FILE\n"
            "      --raw            values alone, little-endian, to FILE.NAME.bin\n"
            "  -o, --output DIR     write to DIR/NAME.npy, in a folder that is there\n"
            "  -f, --force          replace existing files\n",
    .daemon = WHARF_CLI_DAEMON_NEVER,
    .own_options = own_options,
    .take_option = take_option,
    .run = run,
};
