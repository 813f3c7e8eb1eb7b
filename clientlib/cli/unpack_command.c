/* SPDX-License-Identifier: Apache-2.0 */
/* wharf unpack: compressed files, or parts of them, into files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/commands.h"
#include "clientlib/cli/each_file.h"
#include "clientlib/cli/index_range.h"
#include "clientlib/cli/load.h"
#include "clientlib/cli/number.h"
#include "clientlib/cli/suffix.h"
#include "encoders/container_format.h"

enum { OPTION_SPARSE = WHARF_CLI_LONG_ONLY, OPTION_INDEX, OPTION_DIRECT };

static const struct option own_options[] = {
    {"range", required_argument, NULL, 'r'},
    {"index", required_argument, NULL, OPTION_INDEX},
    {"direct", no_argument, NULL, OPTION_DIRECT},
    {"sparse", no_argument, NULL, OPTION_SPARSE},
    {0},
};

struct settings {
    struct wharf_cli_range range;
    bool has_range;
    bool is_sparse;
};

static const char *take_option(void *own, int option, const char *argument)
{
    struct settings *settings = own;

    if (option == OPTION_SPARSE) {
        settings->is_sparse = true;
        return NULL;
    }
    if (option == OPTION_DIRECT) {
        settings->range.is_direct = true;
        return NULL;
    }
    if (option == OPTION_INDEX) {
        settings->range.index = argument;
        return *argument ? NULL : "the name of a file";
    }
    settings->has_range = true;
    if (!wharf_cli_parse_range(argument, &settings->range.offset, &settings->range.nbytes))
        return "OFFSET:LENGTH or OFFSET:, each " WHARF_CLI_SIZE_SYNTAX;
    return NULL;
}

/* What names end in, and what that becomes. */
static const struct {
    const char *suffix;
    const char *replacement;
} suffixes[] = {
    {WHARF_CONTAINER_SUFFIX, ""},
    {".gz", ""},
    {".bgz", ""},
    {".bgzf", ""},
    {".zz", ""},
    {".tgz", ".tar"},
    {".taz", ".tar"},
    {".zst", ""},
    {".tzst", ".tar"},
    {".lz4", ""},
    {".sz", ""},
    {".br", ""},
};
enum { N_SUFFIXES = sizeof(suffixes) / sizeof(suffixes[0]) };

/* The name less its suffix.  NULL where it has none, or without memory. */
static char *bare_name(const char *path, int *ret_error)
{
    for (int i = 0; i < N_SUFFIXES; i++) {
        char *name = NULL;

        if (!wharf_cli_has_suffix(path, suffixes[i].suffix))
            continue;
        if (asprintf(&name, "%.*s%s", (int)(strlen(path) - strlen(suffixes[i].suffix)), path,
                     suffixes[i].replacement) < 0)
            name = NULL;
        *ret_error = name ? 0 : -ENOMEM;
        return name;
    }
    return NULL;
}

static void say_no_name(const void *own, const char *path)
{
    (void)own;
    wharf_cli_say_usage("unpack",
                        "%s: does not end in %s, .gz, .bgz, .bgzf, .tgz, .taz, .zz, .zst, "
                        ".tzst, .lz4, .sz or .br; -o NAME names the output",
                        path, WHARF_CONTAINER_SUFFIX);
}

/* Standard output for standard input, and for a part, which is not the file of that name. */
static char *default_name(const void *own, const char *path, int *ret_error)
{
    const struct settings *settings = own;
    char *name;

    if (strcmp(path, "-") != 0 && !settings->has_range)
        return bare_name(path, ret_error);
    name = strdup("-");
    *ret_error = name ? 0 : -ENOMEM;
    return name;
}

static int unpack(struct wharf_cli_task *task, const void *own)
{
    const struct settings *settings = own;

    task->output->is_sparse = settings->is_sparse && task->output->is_file;
    return wharf_cli_index_decode(task, settings->range);
}

static int run(int argc, char **argv)
{
    struct settings settings = {.range = {0, UINT64_MAX, NULL, false}};
    struct wharf_cli_options options;
    struct wharf_cli_operands operands = {.n_max = argc};
    struct wharf_cli_service service;
    struct wharf_cli_each each = {
        &wharf_cli_unpack, &options,     &service,    WHARF_CLI_UNPACKS,
        &settings,         default_name, say_no_name, unpack,
    };
    int status = wharf_cli_parse(&wharf_cli_unpack, argc, argv, &settings, &options, &operands);

    if (status == WHARF_CLI_GO_ON && settings.range.index && operands.n > 1)
        status = wharf_cli_say_usage("unpack", "--index is of one file");
    if (status == WHARF_CLI_GO_ON)
        status = wharf_cli_service_open_usual(
            &options, operands.n > 0 ? argv[operands.first] : NULL, false, &service);
    if (status != WHARF_CLI_GO_ON)
        return status;
    status = wharf_cli_each_file(&each, argv + operands.first, operands.n);
    wharf_cli_service_close(&service);
    return status;
}

const struct wharf_cli_command wharf_cli_unpack = {
    .name = "unpack",
    .summary = "decompress files, or parts of them",
    .usage = "[OPTION...] [-o OUT] [IN...]",
    .help = "Decompresses each IN, a wharf container, gzip, BGZF, zlib or zstd file, LZ4\n"
            "frames, framed Snappy or Brotli, and verifies all of it.  IN stays.  Without -o\n"
            "the output is IN without its suffix " WHARF_CONTAINER_SUFFIX
            ", .gz, .bgz, .bgzf, .zz, .zst, .lz4,\n"
            ".sz or .br, and .tar for .tgz, .taz and .tzst; with --range, and if IN is - or\n"
            "missing (standard input), it is standard output.\n\n"
            "  -r, --range OFF:LEN  only LEN bytes of output from offset OFF on; OFF: goes to\n"
            "                       the end.  Of containers only their chunks are read; of IN\n"
            "                       with an index IN.whi (wharf index) what it says\n"
            "      --index FILE     that index, GZIDX or .gzi, and no other\n"
            "      --direct         of chunks of bdi, fpc, cpack, best and palette read only\n"
            "                       the lines of the range, which are then not verified\n"
            "      --sparse         make holes of blocks of zeros\n",
    .writes_file = true,
    .decompresses = true,
    .salvages = true,
    .own_options = own_options,
    .take_option = take_option,
    .run = run,
};
