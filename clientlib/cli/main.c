/* SPDX-License-Identifier: Apache-2.0 */
/* wharf: the command.  wharf(1) describes it; filter.c is what it does without a command. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/cli/commands.h"
#include "clientlib/cli/message.h"
#include "clientlib/cli/suggest.h"
#include "clientlib/wharf.h"

static const struct wharf_cli_command help_command;
static const struct wharf_cli_command version_command;

static const struct wharf_cli_command *const commands[] = {
    &wharf_cli_pack,   &wharf_cli_unpack,         &wharf_cli_cat,     &wharf_cli_test,
    &wharf_cli_list,   &wharf_cli_index,          &wharf_cli_columns, &wharf_cli_decode,
    &wharf_cli_bench,  &wharf_cli_why_command,    &wharf_cli_rans,    &wharf_cli_run,
    &wharf_cli_status, &wharf_cli_stats,          &wharf_cli_top,     &wharf_cli_ping,
    &wharf_cli_drain,  &wharf_cli_doctor_command, &wharf_cli_cdi,     &help_command,
    &version_command,
};
enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

/*
 * A closed standard descriptor would be given to the first file that is opened, and messages or
 * output would end up in it.  So each gets a place-holder that fails as the closed one would:
 * reads from what is open for writing only, and the other way round, give EBADF.
 */
static void occupy_closed_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

static int print_help(void)
{
    wharf_cli_begin_output();
    printf("usage: wharf COMMAND [OPTION...] [FILE...]\n"
           "       wharf [-d] [OPTION...] < IN > OUT\n\n"
           "Compresses and decompresses in parallel, and checks what it reads.  Without a\n"
           "command it packs, and with -d it unpacks.\n\nCommands:\n");
    for (int i = 0; i < N_COMMANDS; i++)
        printf("  wharf %-8s %s\n", commands[i]->name, commands[i]->summary);
    printf("\nCodecs:\n");
    for (uint32_t codec = 0; wharf_codec_name(codec); codec++)
        printf("  %-14s %s\n", wharf_codec_name(codec), wharf_codec_summary(codec));
    printf("\n`wharf COMMAND --help` describes a command; wharf(1) all of them.\n");
    return wharf_cli_end_output();
}

static int print_version(void)
{
    wharf_cli_begin_output();
    printf("wharf %s\n", wharf_version());
    return wharf_cli_end_output();
}

static int run_command(int argc, char **argv)
{
    const char *names[N_COMMANDS];

    for (int i = 0; i < N_COMMANDS; i++) {
        names[i] = commands[i]->name;
        if (strcmp(argv[0], names[i]) == 0)
            return commands[i]->run(argc, argv);
    }
    const char *suggestion = wharf_cli_suggest(argv[0], names, N_COMMANDS);
    if (!*suggestion && access(argv[0], F_OK) == 0)
        return wharf_cli_say_usage(
            NULL, "'%s' is a file and no command: `wharf pack` packs it, `wharf unpack` unpacks it",
            argv[0]);
    return wharf_cli_say_usage(NULL, "there is no command '%s'%s", argv[0], suggestion);
}

/* ---- help and version --------------------------------------------------------------------- */

/* `wharf help rans decode` is `wharf rans decode --help`. */
static int run_help(int argc, char **argv)
{
    enum { MAX_WORDS = 3 };
    char *words[MAX_WORDS + 2];
    static char option[] = "--help";

    if (argc < 2)
        return print_help();
    if (argc > MAX_WORDS)
        return wharf_cli_say_usage("help", "'%s' is one argument too many", argv[MAX_WORDS]);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        wharf_cli_begin_output();
        printf("usage: wharf help [COMMAND]\n\nDescribes a command, or lists them all.\n");
        return wharf_cli_end_output();
    }
    memcpy(words, argv + 1, (size_t)(argc - 1) * sizeof(*words));
    words[argc - 1] = option;
    words[argc] = NULL;
    return run_command(argc, words);
}

static int run_version(int argc, char **argv)
{
    if (argc < 2)
        return print_version();
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        wharf_cli_begin_output();
        printf("usage: wharf version\n\nPrints the version.\n");
        return wharf_cli_end_output();
    }
    return wharf_cli_say_usage("version", "'%s' is one argument too many", argv[1]);
}

static const struct wharf_cli_command help_command = {
    .name = "help",
    .summary = "describe a command",
    .run = run_help,
};

static const struct wharf_cli_command version_command = {
    .name = "version",
    .summary = "print the version",
    .run = run_version,
};

int main(int argc, char **argv)
{
    /* A program that takes this process's place has them as they were. */
    if (argc > 1 && strcmp(argv[1], wharf_cli_run.name) == 0)
        return run_command(argc - 1, argv + 1);
    occupy_closed_descriptors();
    signal(SIGPIPE, SIG_IGN); /* output_file.c ends the process itself */
    signal(SIGXFSZ, SIG_IGN); /* a file over the limit is an error like a full disk */
    if (argc < 2 && (isatty(STDIN_FILENO) || isatty(STDOUT_FILENO)))
        return print_help();
    if (argc < 2)
        return wharf_cli_run_filter(argc, argv);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_help();
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return print_version();
    if (argv[1][0] == '-')
        return wharf_cli_run_filter(argc, argv);
    return run_command(argc - 1, argv + 1);
}
