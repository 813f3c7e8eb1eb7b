/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wharf cdi: a specification by which container engines give containers what clients need.
 *
 * It is of the Container Device Interface, version 0.5.0, the last that podman of Debian 12 takes,
 * and has two devices: `socket` mounts the folder of a socket, read-only, and sets WHARF_SOCKET;
 * `all` mounts libwharf as well, where this machine has it.  Paths are checked, since engines
 * follow them as root.
 */
#include <errno.h>
#include <getopt.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clientlib/cli/commands.h"
#include "clientlib/cli/json.h"
#include "clientlib/cli/message.h"
#include "clientlib/wharf.h"

#define LIBRARY "libwharf.so.0"
/* A socket for containers alone, as wharfd(8) shows one. */
#define DEFAULT_SOCKET "/run/wharf-pods/wharfd.sock"
#define DEFAULT_TARGET "/run/wharf"

struct cdi_options {
    char socket[PATH_MAX];  /* the host's */
    char target[PATH_MAX];  /* the folder in the container */
    char library[PATH_MAX]; /* the host's; "" for none */
};

/* ---- the specification ---------------------------------------------------------------------- */

static void put_mount(const char *before, const char *host, const char *container)
{
    printf("%s\n            {\"hostPath\": ", before);
    wharf_cli_json_string(stdout, host);
    printf(", \"containerPath\": ");
    wharf_cli_json_string(stdout, container);
    printf(", \"options\": [\"ro\", \"nosuid\", \"nodev\", \"rbind\"]}");
}

static void put_device(const char *before, const char *name, const struct cdi_options *options,
                       const char *library)
{
    const char *slash = strrchr(options->socket, '/');
    char folder[PATH_MAX], variable[2 * PATH_MAX + 16];

    snprintf(folder, sizeof(folder), "%.*s", (int)(slash - options->socket), options->socket);
    snprintf(variable, sizeof(variable), "WHARF_SOCKET=%s%s", options->target, slash);
    printf("%s\n    {\n      \"name\": \"%s\",\n      \"containerEdits\": {\n        \"env\": [",
           before, name);
    wharf_cli_json_string(stdout, variable);
    printf("],\n        \"mounts\": [");
    put_mount("", folder, options->target);
    if (library)
        put_mount(",", library, library);
    printf("\n        ]\n      }\n    }");
}

static int print_specification(const struct cdi_options *options)
{
    wharf_cli_begin_output();
    printf("{\n  \"cdiVersion\": \"0.5.0\",\n  \"kind\": \"wharf.io/daemon\",\n  \"devices\": [");
    put_device("", "socket", options, NULL);
    if (*options->library)
        put_device(",", "all", options, options->library);
    printf("\n  ]\n}\n");
    return wharf_cli_end_output();
}

/* ---- what it names --------------------------------------------------------------------------- */

/* Beside the command, or installed: below lib, or Debian's lib/TRIPLET.  By its own name: links to
 * later versions are for who mounts them. */
static void find_library(char ret_path[PATH_MAX])
{
    static const char *const places[] = {"", "../lib/", "../lib/*/"};
    char self[PATH_MAX], pattern[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    glob_t found;

    *ret_path = 0;
    if (n < 0)
        return;
    self[n] = 0;
    *strrchr(self, '/') = 0;
    for (unsigned i = 0; i < sizeof(places) / sizeof(places[0]) && !*ret_path; i++) {
        snprintf(pattern, sizeof(pattern), "%s/%s" LIBRARY, self, places[i]);
        if (glob(pattern, 0, NULL, &found) != 0)
            continue;
        if (!realpath(found.gl_pathv[0], ret_path))
            *ret_path = 0;
        globfree(&found);
    }
}

/* An absolute path without dots that lead elsewhere, and without what no environment can hold. */
static const char *check_path(const char *path)
{
    if (*path != '/' || !path[1] || path[strlen(path) - 1] == '/')
        return "is no absolute path of a file or folder";
    if (strstr(path, "/../") || strstr(path, "/./") || strstr(path, "//") ||
        (strlen(path) > 2 && strcmp(path + strlen(path) - 3, "/..") == 0))
        return "has parts that are no names";
    if (strlen(path) > 1024)
        return "is too long";
    for (; *path; path++)
        if (*path < ' ' || *path == 0x7f)
            return "has characters other than ASCII's printable ones";
    return NULL;
}

static int check(const struct cdi_options *options)
{
    const char *const paths[] = {options->socket, options->target,
                                 *options->library ? options->library : "/none"};
    static const char *const names[] = {"--socket", "--target", "--library"};

    for (unsigned i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        const char *why = check_path(paths[i]);
        if (why)
            return wharf_cli_say_usage("cdi", "%s: %s %s", names[i], paths[i], why);
    }
    if (strrchr(options->socket, '/') == options->socket)
        return wharf_cli_say_usage("cdi", "--socket: %s is in no folder that could be mounted",
                                   options->socket);
    return WHARF_CLI_GO_ON;
}

/* What works, but probably is not what was wanted. */
static void remark(const struct cdi_options *options)
{
    struct stat about;

    if (strcmp(options->socket, WHARF_DEFAULT_SOCKET) == 0)
        wharf_cli_say("%s: root of a container is an operator of this daemon: CONTAINERS.md shows "
                      "a socket for containers alone",
                      options->socket);
    if (stat(options->socket, &about) < 0 || !S_ISSOCK(about.st_mode))
        wharf_cli_say("%s: there is no socket yet: `wharf doctor --socket %s` says what to do",
                      options->socket, options->socket);
    if (!*options->library)
        wharf_cli_say(LIBRARY " is neither beside this command nor installed: there is no device "
                              "`all`");
}

/* ---- the command line ------------------------------------------------------------------------ */

static int print_help(void)
{
    wharf_cli_begin_output();
    printf("usage: wharf cdi %s\n\n%s", wharf_cli_cdi.usage, wharf_cli_cdi.help);
    return wharf_cli_end_output();
}

static int take_options(int argc, char **argv, struct cdi_options *options)
{
    static const struct option all[] = {
        {"socket", required_argument, NULL, 's'},  {"target", required_argument, NULL, 't'},
        {"library", required_argument, NULL, 'l'}, {"quiet", no_argument, NULL, 'q'},
        {"help", no_argument, NULL, 'h'},          {0},
    };
    bool is_quiet = false;
    int option, status;

    opterr = 0;
    while ((option = getopt_long(argc, argv, ":qh", all, NULL)) != -1) {
        char *to = option == 's'   ? options->socket
                   : option == 't' ? options->target
                   : option == 'l' ? options->library
                                   : NULL;
        if (option == 'h')
            return print_help();
        if (option == ':')
            return wharf_cli_say_usage("cdi", "%s needs an argument", argv[optind - 1]);
        if (option == '?')
            return wharf_cli_say_usage("cdi", "there is no option '%s'", argv[optind - 1]);
        is_quiet = is_quiet || option == 'q';
        if (to && snprintf(to, PATH_MAX, "%s", optarg) >= PATH_MAX)
            return wharf_cli_say_usage("cdi", "a path is too long");
    }
    if (optind < argc)
        return wharf_cli_say_usage("cdi", "'%s' is one argument too many", argv[optind]);
    status = check(options);
    if (status == WHARF_CLI_GO_ON && !is_quiet)
        remark(options);
    return status;
}

static int run(int argc, char **argv)
{
    static struct cdi_options options = {.socket = DEFAULT_SOCKET, .target = DEFAULT_TARGET};
    int status;

    find_library(options.library);
    status = take_options(argc, argv, &options);
    return status == WHARF_CLI_GO_ON ? print_specification(&options) : status;
}

const struct wharf_cli_command wharf_cli_cdi = {
    .name = "cdi",
    .summary = "print what container engines give to clients",
    .usage = "[OPTION...]",
    .help = "Prints a specification of the Container Device Interface, for\n"
            "/etc/cdi/wharf.json.  A container with the device wharf.io/daemon=socket has\n"
            "the socket's folder, read-only, and WHARF_SOCKET in its environment; with\n"
            "wharf.io/daemon=all it has libwharf too.\n\n"
            "      --socket PATH    of the host; default " DEFAULT_SOCKET "\n"
            "      --target DIR     the folder in the container; default " DEFAULT_TARGET "\n"
            "      --library PATH   libwharf.so.0 of the host; default: the one installed\n"
            "  -q, --quiet          no remarks\n"
            "  -h, --help           this text\n",
    .run = run,
};
