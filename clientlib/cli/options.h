/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h: the commands, and the options that they share.
 *
 * A command's file has a table of the options that only it takes, a function that takes one of
 * them, and its help.  Everything else about the command line is here.
 */
#ifndef WHARF_CLI_OPTIONS_H
#define WHARF_CLI_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

/* What all commands take; the last four only those that write a file. */
struct wharf_cli_options {
    uint32_t engine;      /* enum wharf_engine, as it was asked for */
    unsigned n_threads;   /* that compute; 1 or more */
    const char *socket;   /* of the daemon that must be used; NULL when not given */
    uint32_t patience_ms; /* how long a daemon may be away */
    bool embedded;        /* no daemon must be used */
    bool needs_daemon;    /* the command is nothing without one */
    bool report;
    bool quiet;
    bool verbose;
    bool salvage;        /* bad data is written as far as it decodes */
    bool offers_salvage; /* the command has --salvage for some kinds of input */
    bool progress;       /* shown even if standard error is no terminal */
    const char *codec;   /* a name that wharf_cli_cpu_format_of_name knows, or NULL */
    bool to_stdout;      /* instead of a file beside the input */
    const char *output;  /* NULL when not given */
    bool force;
};

struct wharf_cli_command {
    const char *name;
    const char *summary; /* one line for `wharf --help` */
    const char *usage;   /* what stands behind the command's name */
    const char *help;    /* what it does, and the options of its own */
    bool takes_codec;    /* its help ends with the codecs that there are */
    bool writes_file;    /* takes --output and --force */
    bool decompresses;   /* takes the options of gzip -d: -d, -k, -v, -c */
    bool salvages;       /* takes --salvage */
    bool has_one_thread; /* has no use for --threads */
    enum {
        WHARF_CLI_DAEMON_MAY,   /* through a daemon, or in this process */
        WHARF_CLI_DAEMON_NEVER, /* in this process */
        WHARF_CLI_DAEMON_ASKED, /* in this process, or through a daemon that options name */
        WHARF_CLI_DAEMON_MUST,  /* about a daemon */
    } daemon;

    /* Options of its own, ended by name == NULL; each `val` is the short option's letter, or a
     * number from WHARF_CLI_LONG_ONLY. */
    const struct option *own_options;
    /* Further letters that are options without a long name; NULL: none. */
    const char *own_letters;
    /* Takes one of them.  NULL, or what its argument may be: "a number from 1 to 9". */
    const char *(*take_option)(void *own, int option, const char *argument);

    /* Parses, works, and returns the exit status (enum wharf_cli_status). */
    int (*run)(int argc, char **argv);
};

enum { WHARF_CLI_LONG_ONLY = 256 };

/* How many arguments may stand behind the options. */
struct wharf_cli_operands {
    int n_max;
    int first; /* index in argv of the first one */
    int n;
};

/* parse's answer when the command is to go on; no exit status is negative. */
enum { WHARF_CLI_GO_ON = -1 };

/*
 * Parses a command's options.  Returns WHARF_CLI_GO_ON with *ret_options and *operands filled, or
 * the exit status with which the command is to end: after --help, after something wrong (said
 * already), and for what only a daemon could do.
 */
int wharf_cli_parse(const struct wharf_cli_command *command, int argc, char **argv, void *own,
                    struct wharf_cli_options *ret_options, struct wharf_cli_operands *operands);

#endif
