/* SPDX-License-Identifier: Apache-2.0 */
/* options.c: parses the command line, for all commands (options.h). */
#include "clientlib/cli/options.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "clientlib/cli/cpu_format.h"
#include "clientlib/cli/message.h"
#include "clientlib/cli/number.h"
#include "clientlib/cli/suggest.h"
#include "clientlib/wharf.h"

enum {
    OPTION_CODEC = WHARF_CLI_LONG_ONLY + 1000,
    OPTION_EMBEDDED,
    OPTION_ENGINE,
    OPTION_PATIENCE,
    OPTION_PROGRESS,
    OPTION_REPORT,
    OPTION_SALVAGE,
    OPTION_SOCKET,

    MAX_OPTIONS = 32, /* a command's, all together */
    MAX_OPTION_NBYTES = 32,
    MAX_LETTERS = 16,     /* of them without a long name */
    MAX_CPUS = 64 * 1024, /* for the mask of allowed ones */
};

/* More is a slip of the finger. */
#define MAX_THREADS 1024
#define MAX_PATIENCE_S 3600
#define TEXT_OF(number) TEXT_OF_IT(number)
#define TEXT_OF_IT(number) #number

static const struct option common_options[] = {
    {"embedded", no_argument, NULL, OPTION_EMBEDDED},
    {"engine", required_argument, NULL, OPTION_ENGINE},
    {"help", no_argument, NULL, 'h'},
    {"patience", required_argument, NULL, OPTION_PATIENCE},
    {"quiet", no_argument, NULL, 'q'},
    {"socket", required_argument, NULL, OPTION_SOCKET},
    {0},
};

/* Of commands that work on data. */
static const struct option work_options[] = {
    {"progress", no_argument, NULL, OPTION_PROGRESS},
    {"report", no_argument, NULL, OPTION_REPORT},
    {"threads", required_argument, NULL, 'T'},
    {0},
};

/* Options of gzip: the command decompresses anyway, and keeps its input. */
static const struct option decompress_options[] = {
    {"codec", required_argument, NULL, OPTION_CODEC},
    {"decompress", no_argument, NULL, 'd'},
    {"keep", no_argument, NULL, 'k'},
    {"stdout", no_argument, NULL, 'c'},
    {"verbose", no_argument, NULL, 'v'},
    {0},
};

static const struct option salvage_options[] = {
    {"salvage", no_argument, NULL, OPTION_SALVAGE},
    {0},
};

static const struct option file_options[] = {
    {"force", no_argument, NULL, 'f'},
    {"output", required_argument, NULL, 'o'},
    {0},
};

static const char threads_help[] =
    "  -T, --threads N      threads that compute; default, and 0: one for each core\n";

static const char work_help[] =
    "      --report         print one line of JSON on standard error at the end\n"
    "      --progress       show progress wherever standard error and output go\n";

static const char decompress_help[] =
    "      --codec brotli   the input is Brotli; a name in .br says so by itself\n"
    "  -c, --stdout         write to standard output\n"
    "  -v, --verbose        say what was done\n"
    "  -d, --decompress     no effect, as -1 to -9: for users of gzip\n"
    "  -k, --keep           no effect: the input stays anyway\n";

static const char salvage_help[] =
    "      --salvage        of bad data write all that decodes, say what is in doubt,\n"
    "                       and exit 1\n";

static const char embedded_help[] = "      --embedded       never through a daemon\n";

static const char engine_help[] =
    "      --engine E       auto, cpu, reference (slow, to settle doubts); gpu and\n"
    "                       simt are a daemon's\n";

static const char daemon_help[] =
    "      --socket PATH    through the daemon at PATH or not at all\n"
    "      --patience N     wait N seconds for a daemon that is away; default 10\n";

static const char asked_daemon_help[] =
    "      --socket PATH    through the daemon at PATH; without it in this process\n"
    "      --engine E       gpu, simt: by a daemon's GPU alone; or auto, cpu\n"
    "      --patience N     wait N seconds for a daemon that is away; default 10\n";

static const char quiet_help[] =
    "  -q, --quiet          no progress on the terminal, and no remarks\n";

static const char file_help[] = "  -o, --output OUT     write to OUT; - is standard output\n"
                                "  -f, --force          replace an existing OUT\n";

static unsigned count_usable_cores(void)
{
    /* The call fails with EINVAL while the mask is shorter than the kernel's. */
    for (int n = CPU_SETSIZE; n <= MAX_CPUS; n *= 2) {
        cpu_set_t *set = CPU_ALLOC(n);
        size_t nbytes = CPU_ALLOC_SIZE(n);
        int n_usable = 0;

        if (set && sched_getaffinity(0, nbytes, set) == 0)
            n_usable = CPU_COUNT_S(nbytes, set);
        CPU_FREE(set);
        if (n_usable > 0)
            return n_usable < MAX_THREADS ? (unsigned)n_usable : MAX_THREADS;
        if (!set || errno != EINVAL)
            break;
    }
    return 1;
}

static void append_options(struct option *all, int *n, const struct option *more)
{
    for (; more && more->name && *n < MAX_OPTIONS - 1; more++)
        all[(*n)++] = *more;
    all[*n] = (struct option){0};
}

/* getopt's string of short options, made from the long ones. */
static void make_short_options(const struct option *all, char *text)
{
    *text++ = ':'; /* tells a missing argument from an unknown option */
    for (; all->name; all++) {
        if (all->val >= WHARF_CLI_LONG_ONLY)
            continue;
        *text++ = (char)all->val;
        if (all->has_arg == required_argument)
            *text++ = ':';
    }
    *text = 0;
}

static void print_codecs(void)
{
    printf("\ncodecs:\n");
    for (uint32_t i = 0; wharf_codec_name(i); i++)
        printf("  %-9s %s\n", wharf_codec_name(i), wharf_codec_summary(i));
}

/* What makes a difference to the command: some more are taken from everybody. */
static int print_help(const struct wharf_cli_command *command)
{
    bool works = command->daemon != WHARF_CLI_DAEMON_MUST;

    wharf_cli_begin_output();
    printf("usage: wharf %s %s\n\n%s%s%s%s%s%s%s%s%s%s  -h, --help           this text\n",
           command->name, command->usage, command->help, command->salvages ? salvage_help : "",
           command->writes_file ? file_help : "", command->decompresses ? decompress_help : "",
           works && !command->has_one_thread ? threads_help : "", works ? work_help : "",
           command->daemon == WHARF_CLI_DAEMON_MAY ? embedded_help : "",
           command->daemon == WHARF_CLI_DAEMON_MAY ? engine_help : "",
           command->daemon == WHARF_CLI_DAEMON_NEVER   ? ""
           : command->daemon == WHARF_CLI_DAEMON_ASKED ? asked_daemon_help
                                                       : daemon_help,
           works ? quiet_help : "");
    if (command->takes_codec)
        print_codecs();
    return wharf_cli_end_output();
}

/* Options that have an argument.  NULL, or what it may be. */
static const char *take_value(int option, const char *argument, struct wharf_cli_options *options)
{
    int64_t number;
    int engine;

    switch (option) {
    case 'o':
        options->output = argument;
        return *argument ? NULL : "the name of a file, or - for standard output";
    case OPTION_CODEC:
        options->codec = argument;
        return wharf_cli_cpu_format_of_name(argument) ? NULL : "brotli";
    case OPTION_SOCKET:
        options->socket = argument;
        return *argument ? NULL : "the path of a daemon's socket";
    case OPTION_ENGINE:
        engine = wharf_engine_from_name(argument);
        options->engine = (uint32_t)engine;
        return engine >= 0 ? NULL : "auto, cpu, gpu, simt or reference";
    case OPTION_PATIENCE:
        if (!wharf_cli_parse_number(argument, 1, MAX_PATIENCE_S, &number))
            return "a whole number of seconds from 1 to " TEXT_OF(MAX_PATIENCE_S);
        options->patience_ms = (uint32_t)number * 1000;
        return NULL;
    default:
        if (!wharf_cli_parse_number(argument, 0, MAX_THREADS, &number))
            return "a number from 0 to " TEXT_OF(MAX_THREADS);
        options->n_threads = number ? (unsigned)number : count_usable_cores();
        return NULL;
    }
}

/* Options that have none.  Whether it is one of them. */
static bool take_flag(int option, struct wharf_cli_options *options)
{
    switch (option) {
    case 'q':
        options->quiet = true;
        return true;
    case 'f':
        options->force = true;
        return true;
    case 'c':
        options->to_stdout = true;
        return true;
    case 'v':
        options->verbose = true;
        return true;
    case 'd':
    case 'k':
    case '1' ... '9': /* `tar -I 'wharf -9' -x` says it too */
        return true;
    case OPTION_PROGRESS:
        options->progress = true;
        return true;
    case OPTION_REPORT:
        options->report = true;
        return true;
    case OPTION_SALVAGE:
        options->salvage = true;
        return true;
    case OPTION_EMBEDDED:
        options->embedded = true;
        return true;
    default:
        return false;
    }
}

/* Whether `option` is one of the command's own: they come before the shared ones. */
static bool is_own(const struct wharf_cli_command *command, int option)
{
    if (command->own_letters && option < WHARF_CLI_LONG_ONLY &&
        strchr(command->own_letters, option))
        return true;
    for (const struct option *own = command->own_options; own && own->name; own++)
        if (own->val == option)
            return true;
    return false;
}

static int say_bad_argument(const char *command, const struct option *all, int option,
                            const char *argument, const char *allowed)
{
    while (all->val != option)
        all++;
    return wharf_cli_say_usage(command, "--%s: '%s' is not %s", all->name, argument, allowed);
}

/* The option whose long name is nearest to `word`, which begins with "--". */
static const char *suggest_option(const char *word, const struct option *all)
{
    char names[MAX_OPTIONS][MAX_OPTION_NBYTES];
    const char *pointers[MAX_OPTIONS];
    char name[MAX_OPTION_NBYTES];
    int n = 0;

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
    for (; all->name; all++, n++) {
        snprintf(names[n], sizeof(names[n]), "--%s", all->name);
        pointers[n] = names[n];
    }
    return wharf_cli_suggest(name, pointers, n);
}

static int say_unknown(const char *command, const struct option *all, int option, char **argv)
{
    const char *word = argv[optind - 1];

    if (option == ':')
        return wharf_cli_say_usage(command, "%s needs an argument", word);
    if (strncmp(word, "--", 2) == 0)
        return wharf_cli_say_usage(command, "%s: no such option, or it takes no argument%s", word,
                                   suggest_option(word, all));
    return wharf_cli_say_usage(command, "-%c: no such option", optopt);
}

/* Demands that no daemon could meet; whether one can is known when it is there. */
static int check_demands(const struct wharf_cli_command *command,
                         const struct wharf_cli_options *options)
{
    const char *engine = wharf_engine_name(options->engine);
    bool is_daemons = options->engine == WHARF_ENGINE_GPU || options->engine == WHARF_ENGINE_SIMT;

    if (options->salvage && (options->socket || options->engine > WHARF_ENGINE_CPU))
        return wharf_cli_say_usage(command->name,
                                   "--salvage works in this process, by engine cpu alone");
    if (options->embedded && options->socket)
        return wharf_cli_say_usage(command->name, "--embedded and --socket exclude each other");
    if (options->embedded && is_daemons)
        return wharf_cli_say_usage(command->name, "--embedded has no engine %s: it is a daemon's",
                                   engine);
    if (options->embedded && command->daemon == WHARF_CLI_DAEMON_MUST)
        return wharf_cli_say_usage(command->name, "--embedded: this command is about a daemon");
    if (command->daemon == WHARF_CLI_DAEMON_NEVER && (options->socket || is_daemons))
        return wharf_cli_say_usage(
            command->name, "%s%s: this command works in this process alone, on the CPU",
            options->socket ? "--socket" : "--engine ", options->socket ? "" : engine);
    return WHARF_CLI_GO_ON;
}

/*
 * Where the letter stands that getopt_long, called with optind `before`, has just returned: behind
 * the letter before it, if that is a flag of an unfinished word, or first in the next word that
 * begins with '-'.
 */
static const char *letter_after(const char *letter, int before, char *const *argv)
{
    if (letter && letter[1])
        return letter + 1;
    while (argv[before][0] != '-' || !argv[before][1])
        before++;
    return argv[before] + 1;
}

/* -12 would be -1 and -2, of which the last one counts. */
static bool is_two_digits(const char *letter)
{
    return letter[0] >= '0' && letter[0] <= '9' && letter[1] >= '0' && letter[1] <= '9';
}

static int take_all(const struct wharf_cli_command *command, int argc, char **argv, void *own,
                    struct wharf_cli_options *options, bool *wants_help)
{
    struct option all[MAX_OPTIONS];
    char short_options[2 * MAX_OPTIONS + MAX_LETTERS + 2];
    const char *letter = NULL; /* the last option's, if it was one of a word of letters */
    int n_all = 0;
    int before = optind;
    int option;

    append_options(all, &n_all, command->own_options);
    append_options(all, &n_all, command->writes_file ? file_options : NULL);
    append_options(all, &n_all, command->decompresses ? decompress_options : NULL);
    append_options(all, &n_all, command->salvages ? salvage_options : NULL);
    append_options(all, &n_all, command->daemon == WHARF_CLI_DAEMON_MUST ? NULL : work_options);
    append_options(all, &n_all, common_options);
    make_short_options(all, short_options);
    if (command->own_letters)
        strcat(short_options, command->own_letters);
    if (command->decompresses)
        strcat(short_options, "123456789");
    opterr = 0;
    for (;; before = optind) {
        const char *allowed = NULL;
        int long_index = -1;

        option = getopt_long(argc, argv, short_options, all, &long_index);
        if (option == -1)
            return WHARF_CLI_GO_ON;

        if (option == '?' || option == ':')
            return say_unknown(command->name, all, option, argv);
        letter = optarg || long_index >= 0 ? NULL : letter_after(letter, before, argv);
        if (letter && is_two_digits(letter))
            return wharf_cli_say_usage(command->name,
                                       "-%s: -1 to -9 are levels; --level N is any other", letter);
        if (is_own(command, option))
            allowed = command->take_option(own, option, optarg);
        else if (option == 'h')
            *wants_help = true;
        else if (!take_flag(option, options))
            allowed = take_value(option, optarg, options);
        if (allowed)
            return say_bad_argument(command->name, all, option, optarg, allowed);
    }
}

int wharf_cli_parse(const struct wharf_cli_command *command, int argc, char **argv, void *own,
                    struct wharf_cli_options *ret_options, struct wharf_cli_operands *operands)
{
    bool wants_help = false;
    int status;

    *ret_options = (struct wharf_cli_options){
        .n_threads = count_usable_cores(),
        .patience_ms = WHARF_DEFAULT_PATIENCE_MS,
        .needs_daemon = command->daemon == WHARF_CLI_DAEMON_MUST,
        .offers_salvage = command->salvages && command->decompresses,
    };
    status = take_all(command, argc, argv, own, ret_options, &wants_help);
    if (status != WHARF_CLI_GO_ON)
        return status;
    if (wants_help)
        return print_help(command);
    operands->first = optind;
    operands->n = argc - optind;
    if (operands->n > operands->n_max)
        return wharf_cli_say_usage(command->name, "'%s' is one argument too many",
                                   argv[optind + operands->n_max]);
    status = check_demands(command, ret_options);
    ret_options->embedded = ret_options->embedded || ret_options->salvage;
    return status;
}
