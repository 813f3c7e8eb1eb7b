/* SPDX-License-Identifier: Apache-2.0 */
/* wharf: the command.  wharf(1) describes it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/cli/commands.h"
#include "clientlib/cli/message.h"
#include "clientlib/wharf.h"

static const struct wharf_cli_command *const commands[] = {
    &wharf_cli_pack,  &wharf_cli_unpack, &wharf_cli_cat,    &wharf_cli_decode,
    &wharf_cli_bench, &wharf_cli_rans,   &wharf_cli_status, &wharf_cli_stats,
    &wharf_cli_top,   &wharf_cli_ping,   &wharf_cli_drain,
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
    printf("usage: wharf COMMAND [OPTION...] [FILE...]\n"
           "       wharf --version\n\n"
           "Compresses and decompresses in parallel, and checks what it reads.\n\nCommands:\n");
    for (int i = 0; i < N_COMMANDS; i++)
        printf("  wharf %-8s %s\n", commands[i]->name, commands[i]->summary);
    printf("\nCodecs:\n");
    for (uint32_t codec = 0; wharf_codec_name(codec); codec++)
        printf("  %-14s %s\n", wharf_codec_name(codec), wharf_codec_summary(codec));
    printf("\n`wharf COMMAND --help` describes a command; wharf(1) all of them.\n");
    return fflush(stdout) ? WHARF_CLI_FAILED : WHARF_CLI_GOOD;
}

static int print_version(void)
{
    printf("wharf %s\n", wharf_version());
    return fflush(stdout) ? WHARF_CLI_FAILED : WHARF_CLI_GOOD;
}

static int run_command(int argc, char **argv)
{
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(argv[0], commands[i]->name) == 0)
            return commands[i]->run(argc, argv);
    return wharf_cli_say_usage(NULL, "there is no command '%s'", argv[0]);
}

int main(int argc, char **argv)
{
    occupy_closed_descriptors();
    signal(SIGPIPE, SIG_IGN); /* output_file.c ends the process itself */
    signal(SIGXFSZ, SIG_IGN); /* a file over the limit is an error like a full disk */
    if (argc < 2)
        return wharf_cli_say_usage(NULL, "a command is missing");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return print_help();
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
        return print_version();
    return run_command(argc - 1, argv + 1);
}
