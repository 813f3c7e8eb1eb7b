/* SPDX-License-Identifier: Apache-2.0 */
/* each_file.c: makes one output file of each input (each_file.h). */
#include "clientlib/cli/each_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clientlib/cli/any_detect.h"
#include "clientlib/cli/number.h"
#include "clientlib/now.h"

/* A file, by where it is and not by how it is called. */
struct identity {
    dev_t device;
    ino_t inode;
};

/* An input, and its output's name; NULL where there is none. */
struct pair {
    const char *in_path;
    char *out_path;
    struct identity in;     /* or zeros */
    struct identity folder; /* where the output's name is to be, or zeros */
};

/* ---- names ------------------------------------------------------------------------------- */

static char *output_name(const struct wharf_cli_each *each, const char *in_path, int *ret_error)
{
    const char *given = each->options->output;
    char *name;

    if (!given && each->options->to_stdout)
        given = "-";
    if (!given)
        return each->default_name(each->own, in_path, ret_error);
    name = strdup(given);
    *ret_error = name ? 0 : -ENOMEM;
    return name;
}

static struct identity identity_of(const char *path)
{
    struct stat status;

    if (stat(path, &status) < 0)
        return (struct identity){0};
    return (struct identity){status.st_dev, status.st_ino};
}

static int compare_identities(const struct identity *a, const struct identity *b)
{
    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return (a->inode > b->inode) - (a->inode < b->inode);
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static struct identity folder_of(const char *path)
{
    char *folder = strndup(path, (size_t)(last_part(path) - path));
    struct identity identity = {0};

    if (folder)
        identity = identity_of(*folder ? folder : ".");
    free(folder);
    return identity;
}

/* By name and folder, however the folder is called.  Those without an output come first. */
static int compare_outputs(const void *a, const void *b)
{
    const struct pair *pairs[] = {a, b};
    int order;

    if (!pairs[0]->out_path || !pairs[1]->out_path)
        return (pairs[0]->out_path != NULL) - (pairs[1]->out_path != NULL);
    order = strcmp(last_part(pairs[0]->out_path), last_part(pairs[1]->out_path));
    return order ? order : compare_identities(&pairs[0]->folder, &pairs[1]->folder);
}

static int compare_inputs(const void *a, const void *b)
{
    return compare_identities(&((const struct pair *)a)->in, &((const struct pair *)b)->in);
}

/* Looks for two that would overwrite each other. */
static int check_outputs(const struct wharf_cli_each *each, struct pair *sorted, int n)
{
    qsort(sorted, (size_t)n, sizeof(*sorted), compare_outputs);
    for (int i = 1; i < n; i++)
        if (sorted[i].out_path && strcmp(sorted[i].out_path, "-") != 0 &&
            compare_outputs(&sorted[i - 1], &sorted[i]) == 0)
            return wharf_cli_say_usage(each->command->name, "%s and %s would both become %s",
                                       sorted[i - 1].in_path, sorted[i].in_path,
                                       sorted[i].out_path);
    return WHARF_CLI_GO_ON;
}

/* Looks for an output that would overwrite another one's input.  Its own is the task's matter. */
static int check_inputs(const struct wharf_cli_each *each, const struct pair *pairs,
                        struct pair *sorted, int n)
{
    qsort(sorted, (size_t)n, sizeof(*sorted), compare_inputs);
    for (int i = 0; i < n; i++) {
        struct pair wanted;
        const struct pair *found;

        if (!pairs[i].out_path || strcmp(pairs[i].out_path, "-") == 0)
            continue;
        wanted.in = identity_of(pairs[i].out_path);
        found = bsearch(&wanted, sorted, (size_t)n, sizeof(*sorted), compare_inputs);
        if (wanted.in.inode && found && found->out_path && compare_inputs(&pairs[i], &wanted) != 0)
            return wharf_cli_say_usage(each->command->name,
                                       "%s would become %s, which is an input too",
                                       pairs[i].in_path, pairs[i].out_path);
    }
    return WHARF_CLI_GO_ON;
}

/* Looks for files that would be lost, in an array of its own.  Nothing is replaced unless that is
 * asked for. */
static int check_distinct(const struct wharf_cli_each *each, const struct pair *pairs, int n)
{
    struct pair *sorted;
    int status;

    if (n < 2)
        return WHARF_CLI_GO_ON;
    sorted = malloc((size_t)n * sizeof(*sorted));
    if (!sorted) {
        wharf_cli_say("out of memory");
        return WHARF_CLI_FAILED;
    }
    memcpy(sorted, pairs, (size_t)n * sizeof(*sorted));
    status = check_outputs(each, sorted, n);
    if (status == WHARF_CLI_GO_ON && each->options->force)
        status = check_inputs(each, pairs, sorted, n);
    free(sorted);
    return status;
}

/* Names all outputs. */
static int name_outputs(const struct wharf_cli_each *each, struct pair *pairs, int n)
{
    for (int i = 0; i < n; i++) {
        int error = 0;

        pairs[i].out_path = output_name(each, pairs[i].in_path, &error);
        if (error == -ENOMEM) {
            wharf_cli_say("out of memory");
            return WHARF_CLI_FAILED;
        }
        if (!pairs[i].out_path)
            continue;
        pairs[i].in = identity_of(pairs[i].in_path);
        pairs[i].folder = folder_of(pairs[i].out_path);
    }
    return check_distinct(each, pairs, n);
}

/* ---- work -------------------------------------------------------------------------------- */

/* What was done, for somebody who waited for it. */
static void say_done(const struct wharf_cli_each *each, const struct wharf_cli_task *task,
                     uint64_t in_nbytes, uint64_t start_ns)
{
    char in_text[WHARF_CLI_SIZE_TEXT];
    char out_text[WHARF_CLI_SIZE_TEXT];
    double seconds = (double)(wharf_client_now_ns() - start_ns) / 1e9;
    uint64_t out_nbytes = task->output->nbytes;
    uint64_t unpacked = each->does == WHARF_CLI_UNPACKS ? out_nbytes : in_nbytes;
    uint64_t packed = each->does == WHARF_CLI_UNPACKS ? in_nbytes : out_nbytes;
    char ratio[32] = "";

    /* Nobody else draws on the terminal, see shows_progress. */
    if (!task->options->verbose &&
        (task->options->quiet || task->output->is_watched || !isatty(STDERR_FILENO)))
        return;
    if (in_nbytes && out_nbytes && each->does != WHARF_CLI_INDEXES)
        snprintf(ratio, sizeof(ratio), " (%.2f : 1)", (double)unpacked / (double)packed);
    wharf_cli_say("%s -> %s: %s -> %s%s, %.2f s, %.0f MB/s", task->input->name, task->output->name,
                  wharf_cli_size_text(in_nbytes, in_text),
                  wharf_cli_size_text(out_nbytes, out_text), ratio, seconds,
                  seconds > 0 ? (double)unpacked / seconds / 1e6 : 0.0);
}

static void work_on(const struct wharf_cli_each *each, const struct pair *pair,
                    struct wharf_cli_tally *tally)
{
    struct wharf_cli_input input;
    struct wharf_cli_output output;
    struct wharf_cli_task task = {
        .options = each->options,
        .tally = tally,
        .input = &input,
        .output = &output,
        .service = each->service,
        .counts_input = each->does != WHARF_CLI_UNPACKS,
    };
    uint64_t in_nbytes = tally->in_nbytes;
    uint64_t start_ns = wharf_client_now_ns();

    if (wharf_cli_task_begin(&task, pair->in_path, pair->out_path) != WHARF_CLI_GOOD)
        return;
    if (wharf_cli_task_end(&task, each->work(&task, each->own)) == WHARF_CLI_GOOD)
        say_done(each, &task, tally->in_nbytes - in_nbytes, start_ns);
}

/* Whether a look at it cannot wait for somebody, as with a pipe. */
static bool is_quick(const char *path)
{
    struct stat status;

    return strcmp(path, "-") != 0 &&
           (stat(path, &status) < 0 || S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
}

/* Whether there is more to say of an input to unpack than that its output has no name: it is
 * missing, or another program's. */
static bool tell_input(const struct wharf_cli_each *each, const char *path,
                       struct wharf_cli_tally *tally)
{
    struct wharf_cli_input input;
    struct wharf_cli_output output;
    struct wharf_cli_task task = {
        .options = each->options, .tally = tally, .input = &input, .output = &output};
    bool is_foreign;

    if (each->does != WHARF_CLI_UNPACKS || !is_quick(path))
        return false;
    if (wharf_cli_task_open_input(&task, path) != WHARF_CLI_GOOD)
        return true;
    wharf_cli_output_open_sink(&output);
    is_foreign = wharf_cli_any_is_foreign(&task);
    if (is_foreign)
        wharf_cli_any_tell_unknown(&task, WHARF_SOURCE_OTHER);
    wharf_cli_input_close(&input);
    return is_foreign;
}

/* An input whose output has no name is a failure like any other. */
static void refuse(const struct wharf_cli_each *each, const char *path,
                   struct wharf_cli_tally *tally)
{
    if (tell_input(each, path, tally))
        return;
    each->say_no_name(each->own, path);
    wharf_cli_tally_failure(tally, path, -EINVAL, WHARF_CLI_USAGE);
}

static int work_on_all(const struct wharf_cli_each *each, struct pair *pairs, int n)
{
    struct wharf_cli_tally tally;
    int status;

    wharf_cli_tally_init(&tally);
    status = name_outputs(each, pairs, n);
    if (status != WHARF_CLI_GO_ON)
        return status;
    for (int i = 0; i < n; i++)
        if (pairs[i].out_path)
            work_on(each, &pairs[i], &tally);
        else
            refuse(each, pairs[i].in_path, &tally);
    if (each->options->report)
        wharf_cli_tally_report(&tally);
    return tally.status;
}

int wharf_cli_each_file(const struct wharf_cli_each *each, char **paths, int n_paths)
{
    int n = n_paths ? n_paths : 1;
    struct pair *pairs;
    int status;

    if (each->options->output && each->options->to_stdout)
        return wharf_cli_say_usage(each->command->name, "--output and --stdout exclude each other");
    if (each->options->output && n > 1 && strcmp(each->options->output, "-") != 0)
        return wharf_cli_say_usage(each->command->name,
                                   "--output names one file, and there are %d inputs", n);
    pairs = calloc((size_t)n, sizeof(*pairs));
    if (!pairs) {
        wharf_cli_say("out of memory");
        return WHARF_CLI_FAILED;
    }
    for (int i = 0; i < n; i++)
        pairs[i].in_path = n_paths ? paths[i] : "-";
    status = work_on_all(each, pairs, n);
    for (int i = 0; i < n; i++)
        free(pairs[i].out_path);
    free(pairs);
    return status;
}
