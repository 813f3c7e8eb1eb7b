/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wharf run: starts a program with libwharf-preload in front of its libraries.
 *
 * The program takes this process's place, so its exit status, signals and descriptors are its own.
 * It always runs: where the library does not reach it, that is said, and what the program starts
 * may be reached all the same.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/cli/commands.h"
#include "clientlib/cli/message.h"
#include "clientlib/cli/preload_library.h"
#include "clientlib/cli/reach.h"

/* As the shell, env and nohup have them. */
enum { NOT_REACHED = 1, CANNOT_RUN = 126, NOT_FOUND = 127 };

struct run_options {
    bool counts;
    bool asks_daemon;
    bool quiet;
    bool only_checks;
    int first; /* the program's name in argv */
};

/* ---- the library --------------------------------------------------------------------------- */

/* Before what is there already: the first definition counts. */
static int preload(const char *library)
{
    const char *others = getenv("LD_PRELOAD");
    char *value;
    int r = 0;

    if (!others || !*others)
        return setenv("LD_PRELOAD", library, 1) < 0 ? -errno : 0;
    if (asprintf(&value, "%s:%s", library, others) < 0)
        return -ENOMEM;
    if (setenv("LD_PRELOAD", value, 1) < 0)
        r = -errno;
    free(value);
    return r;
}

/* ---- the program --------------------------------------------------------------------------- */

static int prepare(const struct run_options *options, const struct wharf_cli_reach *reach)
{
    char library[PATH_MAX];
    int r = wharf_cli_find_preload_library(library);

    if (r == -ENOENT) {
        wharf_cli_say("libwharf-preload.so is neither beside this command nor installed with it: "
                      "`wharf doctor` says what mends it");
        return r;
    }
    if (r == 0 && strpbrk(library, ": \t")) {
        wharf_cli_say("%s: the linker takes no path with blanks or colons", library);
        return -EINVAL;
    }
    if (r == 0 && !reach->is_foreign)
        r = preload(library);
    if (r == 0 && options->counts && setenv("WHARF_PRELOAD_STATS", "1", 1) < 0)
        r = -errno;
    if (r == 0 && options->asks_daemon && setenv("WHARF_PRELOAD_DAEMON", "1", 1) < 0)
        r = -errno;
    if (r < 0)
        wharf_cli_say("cannot set up the environment: %s", wharf_cli_error_text(-r));
    return r;
}

static int start(const struct run_options *options, char **argv)
{
    struct wharf_cli_reach reach;
    char path[PATH_MAX];
    int r = wharf_cli_reach_find(argv[0], path);

    if (r == 0)
        r = wharf_cli_reach_look(path, &reach);
    if (r < 0) {
        wharf_cli_say("%s: %s", argv[0], wharf_cli_error_text(-r));
        return r == -ENOENT ? NOT_FOUND : CANNOT_RUN;
    }
    if (reach.obstacle && !options->quiet)
        wharf_cli_say("%s: not reached: %s", reach.program, reach.obstacle);
    if (options->only_checks)
        return reach.obstacle ? NOT_REACHED : WHARF_CLI_GOOD;
    if (prepare(options, &reach) < 0)
        return WHARF_CLI_FAILED;
    execv(path, argv);
    r = errno;
    wharf_cli_say("%s: cannot be started: %s", argv[0], wharf_cli_error_text(r));
    return CANNOT_RUN;
}

/* ---- the command line ---------------------------------------------------------------------- */

static int print_help(void)
{
    wharf_cli_begin_output();
    printf("usage: wharf run %s\n\n%s\n", wharf_cli_run.usage, wharf_cli_run.help);
    return wharf_cli_end_output();
}

/* Options end before the program: what is behind it is the program's. */
static int parse(int argc, char **argv, struct run_options *ret_options)
{
    int i;

    for (i = 1; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return print_help();
        if (strcmp(argv[i], "--stats") == 0)
            ret_options->counts = true;
        else if (strcmp(argv[i], "--daemon") == 0)
            ret_options->asks_daemon = true;
        else if (strcmp(argv[i], "--check") == 0)
            ret_options->only_checks = true;
        else if (strcmp(argv[i], "--quiet") == 0 || strcmp(argv[i], "-q") == 0)
            ret_options->quiet = true;
        else
            return wharf_cli_say_usage("run", "there is no option '%s'", argv[i]);
    }
    ret_options->first = i;
    return i < argc ? WHARF_CLI_GO_ON : wharf_cli_say_usage("run", "a program is missing");
}

static int run(int argc, char **argv)
{
    struct run_options options = {0};
    int status = parse(argc, argv, &options);

    return status == WHARF_CLI_GO_ON ? start(&options, argv + options.first) : status;
}

const struct wharf_cli_command wharf_cli_run = {
    .name = "run",
    .summary = "run a program with wharf's decoders in its libraries' place",
    .usage = "[OPTION...] PROGRAM [ARGUMENT...]",
    .help = "Starts PROGRAM with libwharf-preload, which decompresses in place of zlib and\n"
            "libdeflate, for it and what it starts; with --daemon also of libzstd and\n"
            "liblz4.  Says when it cannot reach PROGRAM, and runs it anyway.\n"
            "Exit status: PROGRAM's; 127 if there is none, 126 if it cannot be started.\n\n"
            "      --check          only look: exit status 0 if PROGRAM is reached, 1 if not\n"
            "      --daemon         streams of 1 MiB and more may go to wharfd\n"
            "      --stats          at its end each process says what was taken and why not\n"
            "  -q, --quiet          do not say that PROGRAM is not reached\n"
            "  -h, --help           this text",
    .run = run,
};
