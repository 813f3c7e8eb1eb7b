/* SPDX-License-Identifier: Apache-2.0 */
/* wharf index: makes indexes of gzip, BGZF and zlib files, which it verifies. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/any_detect.h"
#include "clientlib/cli/commands.h"
#include "clientlib/cli/each_file.h"
#include "clientlib/cli/index_file.h"
#include "clientlib/cli/index_make.h"
#include "clientlib/cli/number.h"

enum { OPTION_FORMAT = WHARF_CLI_LONG_ONLY, OPTION_SPACING };

/* More is no index, and less is more of it than of the file. */
#define MIN_SPACING_NBYTES (64ull << 10)
#define MAX_SPACING_NBYTES (1ull << 40)
#define DEFAULT_SPACING_NBYTES (2ull << 20)

static const struct option own_options[] = {
    {"format", required_argument, NULL, OPTION_FORMAT},
    {"spacing", required_argument, NULL, OPTION_SPACING},
    {0},
};

/* By enum wharf_cli_index_format. */
static const char *const format_names[] = {"whi", "gzidx", "gzi"};
enum { N_FORMATS = sizeof(format_names) / sizeof(format_names[0]) };

struct settings {
    unsigned format;
    uint64_t spacing_nbytes;
};

static const char *take_option(void *own, int option, const char *argument)
{
    struct settings *settings = own;

    if (option == OPTION_SPACING)
        return wharf_cli_parse_size(argument, &settings->spacing_nbytes) &&
                       settings->spacing_nbytes >= MIN_SPACING_NBYTES &&
                       settings->spacing_nbytes <= MAX_SPACING_NBYTES
                   ? NULL
                   : "64K or more, " WHARF_CLI_SIZE_SYNTAX;
    for (unsigned i = 0; i < N_FORMATS; i++) {
        if (strcmp(argument, format_names[i]) == 0) {
            settings->format = i;
            return NULL;
        }
    }
    return "whi, gzidx or gzi";
}

static char *default_name(const void *own, const char *path, int *ret_error)
{
    const struct settings *settings = own;
    char *name = NULL;

    if (strcmp(path, "-") == 0)
        return NULL;
    *ret_error = asprintf(&name, "%s.%s", path, format_names[settings->format]) < 0 ? -ENOMEM : 0;
    return *ret_error ? NULL : name;
}

static void say_no_name(const void *own, const char *path)
{
    (void)own, (void)path;
    wharf_cli_say_usage("index", "standard input cannot have an index: name a FILE");
}

static int write_index(struct wharf_cli_task *task, const struct wharf_gzip_index *index,
                       unsigned format)
{
    uint8_t *bytes = NULL;
    size_t nbytes = 0;
    int r;

    if (format == WHARF_CLI_INDEX_GZIDX)
        r = wharf_gzip_index_write_gzidx(index, &bytes, &nbytes);
    else if (format == WHARF_CLI_INDEX_GZI)
        r = wharf_gzip_index_write_gzi(index, &bytes, &nbytes);
    else
        r = wharf_gzip_index_write(index, &bytes, &nbytes);
    if (r < 0)
        return wharf_cli_task_error(task, "cannot make an index", r);
    r = wharf_cli_task_write(task, task->input->nbytes, bytes, nbytes);
    free(bytes);
    return r;
}

static int refuse(struct wharf_cli_task *task, const char *why)
{
    wharf_cli_say("%s: %s", task->input->name, why);
    return wharf_cli_tally_error(task->tally, task->input->name, -EINVAL);
}

static int work(struct wharf_cli_task *task, const void *own)
{
    const struct settings *settings = own;
    struct wharf_gzip_index index = {.format = WHARF_INFLATE_GZIP};
    enum wharf_source_kind kind;
    int status = wharf_cli_any_detect(task, &kind);

    if (status != WHARF_CLI_GOOD)
        return status;
    if (kind != WHARF_SOURCE_GZIP && kind != WHARF_SOURCE_BGZF && kind != WHARF_SOURCE_ZLIB)
        return refuse(task, "is no gzip, BGZF or zlib file: others have no use for an index");
    if (!wharf_cli_index_is_for(task->input))
        return refuse(task, "an index is of files alone");
    if (settings->format == WHARF_CLI_INDEX_GZI && kind != WHARF_SOURCE_BGZF)
        return refuse(task, "is not BGZF: a .gzi is of BGZF alone");
    if (settings->format == WHARF_CLI_INDEX_GZIDX && kind == WHARF_SOURCE_ZLIB)
        return refuse(task, "is not gzip: a GZIDX is of gzip alone");
    if (kind == WHARF_SOURCE_ZLIB)
        index.format = WHARF_INFLATE_ZLIB;
    status = settings->format == WHARF_CLI_INDEX_GZI
                 ? wharf_cli_index_make_gzi(task, &index)
                 : wharf_cli_index_make(task, settings->spacing_nbytes,
                                        settings->format == WHARF_CLI_INDEX_GZIDX, &index);
    if (status == WHARF_CLI_GOOD)
        status = write_index(task, &index, settings->format);
    wharf_gzip_index_deinit(&index);
    return status;
}

static int run(int argc, char **argv)
{
    struct settings settings = {.spacing_nbytes = DEFAULT_SPACING_NBYTES};
    struct wharf_cli_options options;
    struct wharf_cli_operands operands = {.n_max = argc};
    struct wharf_cli_each each = {
        &wharf_cli_index, &options,     NULL,        WHARF_CLI_INDEXES,
        &settings,        default_name, say_no_name, work,
    };
    int status = wharf_cli_parse(&wharf_cli_index, argc, argv, &settings, &options, &operands);

    if (status != WHARF_CLI_GO_ON)
        return status;
    return wharf_cli_each_file(&each, argv + operands.first, operands.n);
}

const struct wharf_cli_command wharf_cli_index = {
    .name = "index",
    .summary = "index gzip files, so that parts of them are read at once",
    .usage = "[OPTION...] [-o OUT] FILE...",
    .help = "Decodes and verifies each FILE, gzip, BGZF or zlib, and writes an index of it to\n"
            "FILE.whi, or to FILE.gzidx or FILE.gzi.  With it `wharf cat -r` decodes only\n"
            "what is near the range, and verifies that.\n\n"
            "      --format F       whi, wharf's own; gzidx, that of indexed_gzip and\n"
            "                       rapidgzip; or gzi, bgzip's.  Both have no checksums\n"
            "      --spacing SIZE   output between two points, about; default 2M\n",
    .writes_file = true,
    .daemon = WHARF_CLI_DAEMON_NEVER,
    .own_options = own_options,
    .take_option = take_option,
    .run = run,
};
