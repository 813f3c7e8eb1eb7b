/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wharfd_bench.c: what the daemon costs, whether it is fair, and how soon it is back.
 */
#include <getopt.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "tests/bench/daemon_parts.h"
#include "tests/lib/test_data.h"
#include "tests/lib/test_file.h"
#include "tests/lib/test_help.h"

static const char help[] =
    "usage: wharfd_bench [--repetitions N] [--clients N] [--only WHAT,...] [FILE...]\n"
    "\n"
    "Measures what the daemon costs, whether it is fair, and how soon it is back.\n"
    "\n"
    "It starts a daemon of its own, the wharfd of its build, and prints a row for each\n"
    "measurement:\n"
    "  noop        an operation that does nothing; beside it, a word or a wake-up between two\n"
    "              processes there and back: what the machine itself takes\n"
    "  lone_chunk  one chunk of 64 KiB at a time; beside it, the same decoder in this process\n"
    "  flood       as many client processes as processors, 16 chunks each in flight; beside\n"
    "              them, the same decoder in as many threads of this process\n"
    "  shares      two tenants that flood, one with twice as many clients\n"
    "  fairness    one tenant's interactive chunks beside another one's flood, and alone\n"
    "  compress    the same beside clients that have all processors compress, in the\n"
    "              background and as normal jobs\n"
    "  shared      one large stream of rans with splits, alone and beside floods\n"
    "  recovery    kill -9 of the daemon with 1000 jobs in flight\n"
    "  stats       requests while somebody reads all statistics of 5000 tenants, of 100,000\n"
    "              that have come; only if it is named, and by root\n"
    "\n"
    "Chunks are of generated text and of the FILEs, the first MiB of each.  What is compared\n"
    "runs turn by turn, 15 times or as --repetitions says.  tests/bench/results/README.md\n"
    "tells what the members of rows mean.\n";

enum { MOST_SOURCES = 16 };

/* ---- data ---------------------------------------------------------------------------------- */

/* Cuts contents, which it keeps, into chunks. */
static struct bench_source source_of(const char *name, const uint8_t *contents, size_t nbytes)
{
    struct bench_source source = {.name = name};
    unsigned n = (unsigned)(nbytes / BENCH_CHUNK < BENCH_MOST_CHUNKS ? nbytes / BENCH_CHUNK
                                                                     : BENCH_MOST_CHUNKS);

    if (n == 0)
        bench_die("a file has less than 64 KiB");
    source.n_chunks = n;
    source.plain = calloc(n, sizeof(source.plain[0]));
    source.packed = calloc(n, sizeof(source.packed[0]));
    source.packed_nbytes = calloc(n, sizeof(source.packed_nbytes[0]));
    for (unsigned i = 0; i < n; i++) {
        uLongf packed_nbytes = compressBound(BENCH_CHUNK);
        source.plain[i] = contents + (size_t)i * BENCH_CHUNK;
        source.packed[i] = malloc(packed_nbytes);
        if (compress2(source.packed[i], &packed_nbytes, source.plain[i], BENCH_CHUNK, 6) != Z_OK)
            bench_die("cannot pack");
        source.packed_nbytes[i] = (uint32_t)packed_nbytes;
        if (packed_nbytes > source.most_packed_nbytes)
            source.most_packed_nbytes = (uint32_t)packed_nbytes;
    }
    return source;
}

static struct bench_source read_source(char *path)
{
    size_t nbytes;
    uint8_t *contents = test_file_read(path, &nbytes);

    if (!contents)
        bench_die(path);
    return source_of(basename(path), contents, nbytes);
}

/* ---- main ---------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(struct daemon_bench *bench);
    int is_asked_for; /* it is not run unless it is named */
} benches[] = {
    {"noop", bench_noop, 0},         {"lone_chunk", bench_lone_chunk, 0},
    {"flood", bench_flood, 0},       {"shares", bench_shares, 0},
    {"fairness", bench_fairness, 0}, {"compress", bench_compress, 0},
    {"shared", bench_shared, 0},     {"recovery", bench_recovery, 0},
    {"stats", bench_stats, 1},
};

static void start_daemon(struct daemon_bench *bench)
{
    char config[512];

    /* The folder's name is known only when the daemon has been started in it once. */
    test_wharfd_start(&bench->wharfd, "");
    test_wharfd_stop(&bench->wharfd);
    snprintf(bench->second_socket, sizeof(bench->second_socket), "%s/second", bench->wharfd.folder);
    snprintf(config, sizeof(config), "[listen second]\npath = %s\ntenant = socket\n",
             bench->second_socket);
    FILE *file = fopen(bench->wharfd.config, "we");
    if (!file || fputs(config, file) < 0 || fclose(file) < 0)
        bench_die("cannot write the configuration");
    test_wharfd_restart(&bench->wharfd);
}

/* Whether a list with commas, or no list, has the name. */
static int is_wanted(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = list; at && (at = strstr(at, name)); at += length)
        if ((at == list || at[-1] == ',') && (at[length] == 0 || at[length] == ','))
            return 1;
    return !list;
}

static const char *parse_options(int argc, char **argv, struct daemon_bench *bench)
{
    static const struct option known[] = {
        {"repetitions", required_argument, NULL, 'r'},
        {"clients", required_argument, NULL, 'c'},
        {"only", required_argument, NULL, 'o'},
        {NULL, 0, NULL, 0},
    };
    const char *only = NULL;
    unsigned repetitions = 15;
    int option;

    bench->n_clients = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    while ((option = getopt_long(argc, argv, "", known, NULL)) >= 0) {
        if (option == 'r')
            repetitions = (unsigned)atoi(optarg);
        else if (option == 'c')
            bench->n_clients = (unsigned)atoi(optarg);
        else if (option == 'o')
            only = optarg;
        else
            exit(test_usage(help));
    }
    if (repetitions < 1 || repetitions > 1000 || bench->n_clients < 1 ||
        bench->n_clients > BENCH_MOST_CLIENTS || argc - optind >= MOST_SOURCES)
        bench_die("out of limits");
    bench->n_samples = 200 * repetitions;
    bench->n_seconds = 0.1 * repetitions;
    return only;
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    static struct bench_source sources[MOST_SOURCES];
    static struct daemon_bench bench;
    const char *only = parse_options(argc, argv, &bench);
    size_t text_nbytes = (size_t)BENCH_MOST_CHUNKS * BENCH_CHUNK;

    bench.sources = sources;
    sources[bench.n_sources++] =
        source_of("text", test_data_new(test_data_find("text"), 1, text_nbytes), text_nbytes);
    for (int i = optind; i < argc; i++)
        sources[bench.n_sources++] = read_source(argv[i]);
    start_daemon(&bench);
    for (unsigned i = 0; i < sizeof(benches) / sizeof(benches[0]); i++)
        if (benches[i].is_asked_for ? only && is_wanted(only, benches[i].name)
                                    : is_wanted(only, benches[i].name))
            benches[i].run(&bench);
    test_wharfd_stop(&bench.wharfd);
    test_wharfd_remove(&bench.wharfd);
    return 0;
}
