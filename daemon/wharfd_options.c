/* SPDX-License-Identifier: Apache-2.0 */
/* wharfd_options.c: reads the command line. */
#include "daemon/wharfd_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/config.h"
#include "daemon/base/config_report.h"
#include "daemon/base/config_table.h"

enum { OPTION_PRINT_CONFIG = 256, OPTION_CHECK_CONFIG, OPTION_SHOW_CONFIG };

void wharf_options_print_help(void)
{
    puts("usage: wharfd [--socket PATH] [--engine auto|cpu|cuda|simt] [--config FILE]\n"
         "\n"
         "The wharf daemon: decompresses for every process that connects to its socket.  It runs "
         "in\n"
         "the foreground, as any user.\n"
         "\n"
         "  -s, --socket PATH    listen there, instead of where the configuration says\n"
         "  -e, --engine ENGINE  what runs jobs beside the CPU: auto (the default) is cuda where "
         "there\n"
         "                       is a GPU, cpu is nothing, simt the GPU's code on the CPU, for "
         "tests\n"
         "  -c, --config FILE    read this configuration instead of " WHARF_CONFIG_PATH "\n"
         "      --check-config   read the configuration, say all that is wrong, and end\n"
         "      --show-config    print all settings and each tenant's limits as they are in "
         "effect,\n"
         "                       and where each comes from, and end\n"
         "      --print-config   print a configuration file with all defaults, and end\n"
         "  -V, --version        print the version, and end\n"
         "  -h, --help           print this, and end\n"
         "\n"
         "SIGHUP makes it read the configuration again, SIGTERM finish its jobs and end.");
}

static int usage(const char *what, const char *argument)
{
    fprintf(stderr, "wharfd: %s%s%s\nTry wharfd --help.\n", what, argument ? ": " : "",
            argument ? argument : "");
    return -EINVAL;
}

/* Returns the engine of that name, or NULL. */
static const struct wharf_setting_choice *find_engine(const char *name)
{
    const struct wharf_setting_choice *engine = wharf_config_gpu_engines;

    while (engine->word && strcmp(engine->word, name) != 0)
        engine++;
    return engine->word ? engine : NULL;
}

int wharf_options_parse(int argc, char **argv, struct wharf_options_line *ret_options)
{
    static const struct option known[] = {
        {"socket", required_argument, NULL, 's'},
        {"engine", required_argument, NULL, 'e'},
        {"config", required_argument, NULL, 'c'},
        {"check-config", no_argument, NULL, OPTION_CHECK_CONFIG},
        {"print-config", no_argument, NULL, OPTION_PRINT_CONFIG},
        {"show-config", no_argument, NULL, OPTION_SHOW_CONFIG},
        {"version", no_argument, NULL, 'V'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct wharf_options_line options = {.config_path = NULL};
    int option;

    while ((option = getopt_long(argc, argv, "s:e:c:Vh", known, NULL)) >= 0) {
        switch (option) {
        case 's':
            options.socket = optarg;
            break;
        case 'e':
            options.engine = optarg;
            break;
        case 'c':
            options.config_path = optarg;
            break;
        case OPTION_CHECK_CONFIG:
            options.checks_config = true;
            break;
        case OPTION_SHOW_CONFIG:
            options.shows_config = true;
            break;
        case OPTION_PRINT_CONFIG:
            options.prints_config = true;
            break;
        case 'V':
            options.prints_version = true;
            break;
        case 'h':
            options.prints_help = true;
            break;
        default:
            fputs("Try wharfd --help.\n", stderr);
            return -EINVAL;
        }
    }
    if (optind < argc)
        return usage("takes no arguments", argv[optind]);
    if (options.socket && (!*options.socket || strlen(options.socket) >= WHARF_CONFIG_PATH_NBYTES))
        return usage("a socket's path has 1 to 107 bytes", options.socket);
    if (options.engine && !find_engine(options.engine))
        return usage("not one of the engines auto, cpu, cuda and simt", options.engine);
    *ret_options = options;
    return 0;
}

void wharf_options_load(const struct wharf_options_line *options, struct wharf_config *config,
                        struct wharf_config_report *report)
{
    const char *path = options->config_path;

    wharf_config_init(config);
    wharf_config_load(config, path ? path : WHARF_CONFIG_PATH, path != NULL, report);
    if (options->socket)
        strcpy(config->listen.path, options->socket);
    if (options->engine)
        config->gpu_engine = find_engine(options->engine)->value;
    wharf_config_check(config, report);
}
