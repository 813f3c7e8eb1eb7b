/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_epoch_main.c: epoch kernels on a GPU, from the host's memory to the host's memory.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clientlib/wharf.h"
#include "encoders/rle_values.h"
#include "tests/gpu/gpu_epoch.h"
#include "tests/gpu/gpu_export.h"
#include "tests/gpu/gpu_tenant.h"
#include "tests/lib/test_file.h"
#include "tests/lib/test_help.h"

static const char help[] =
    "usage: wharf_gpu_epoch [OPTION]... check N\n"
    "       wharf_gpu_epoch [OPTION]... noop N\n"
    "       wharf_gpu_epoch [OPTION]... noops N\n"
    "       wharf_gpu_epoch [OPTION]... lone CODEC FILE CHUNK N\n"
    "       wharf_gpu_epoch [OPTION]... cancel CODEC FILE CHUNK N\n"
    "       wharf_gpu_epoch [OPTION]... import CODEC FILE CHUNK\n"
    "       wharf_gpu_epoch [OPTION]... parts rans FILE CHUNK N\n"
    "       wharf_gpu_epoch [OPTION]... flood CODEC FILE CHUNK TOTAL [RUNS]\n"
    "       wharf_gpu_epoch [OPTION]... tenant CODEC FILE CHUNK\n"
    "\n"
    "Tests and times epoch kernels on a GPU, from the host's memory to the host's memory.\n"
    "The modes:\n"
    "\n"
    "  check    items of all kinds against the CPU\n"
    "  noop     round trips of items without work\n"
    "  noops    many of them at a time\n"
    "  lone     round trips of one chunk\n"
    "  cancel   from a cancel to its completion\n"
    "  import   outputs in another process's memory\n"
    "  parts    round trips of one chunk in parts\n"
    "  flood    TOTAL bytes of output\n"
    "  tenant   what another process notices of it\n"
    "\n"
    "  --engine simt     the SIMT layer in the GPU's place: tries the program out, times\n"
    "                    nothing\n"
    "  --output WORDS    where the kernel writes the output: to the host's memory (host, the\n"
    "                    default), to its own (device), or to both, one after the other\n"
    "  --depth N,N...    items under way (4096), of floods several numbers one after the\n"
    "                    other\n"
    "  --per-batch       a kernel for each batch instead of one that stays\n"
    "  --idle US         leave after so long without work (1000)\n"
    "  --stay US         leave after so long (0: never)\n"
    "  --warps N         of the kernel (0: all that fit)\n"
    "  --share PERCENT   of the multiprocessors (100)\n"
    "  --few N           up to so many items a block by the kernel of blocks (4; 0: never)\n"
    "  --type T          of the values of rle1 and rle2: i8 to i64, u8 to u64\n"
    "  --most-out N      warps that take outputs to the host at the same time (64; 0: all)\n"
    "  --memory NBYTES   the largest chunk (131072)\n"
    "\n"
    "The file is cut and packed as wharf_gpu_bench does; each chunk has its own source and\n"
    "destination.  Prints one JSON object for each measurement; ends with 1 if any output was\n"
    "wrong.\n";

enum { MAX_RUNS = 1000, N_OUTPUTS = 2, MAX_DEPTHS = 8 };
#define TENANT_SECONDS 2.0
#define TENANT_JOBS_PER_SECOND 1000

static size_t number(const char *text, size_t least, size_t most)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 0);
    if (!*text || *end || errno || value < least || value > most) {
        fprintf(stderr, "wharf_gpu_epoch: %s: not a number from %zu to %zu\n", text, least, most);
        exit(2);
    }
    return (size_t)value;
}

/* ---- another process on the same GPU -------------------------------------------------------- */

/* Starts this program again, as a process that has not used CUDA yet. */
static pid_t start_self(const char *mode, FILE **ret_output)
{
    int ends[2];
    if (pipe(ends) < 0) {
        perror("wharf_gpu_epoch: pipe");
        exit(3);
    }
    pid_t pid = fork();
    if (pid == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        execl("/proc/self/exe", "wharf_gpu_epoch", mode, (char *)NULL);
        _exit(3);
    }
    close(ends[1]);
    *ret_output = fdopen(ends[0], "r");
    if (pid < 0 || !*ret_output) {
        perror("wharf_gpu_epoch: fork");
        exit(3);
    }
    return pid;
}

static bool has_ended(pid_t pid)
{
    int status;
    pid_t r = waitpid(pid, &status, WNOHANG);
    if (r == pid && status != 0)
        fprintf(stderr, "wharf_gpu_epoch: the other process failed\n");
    return r == pid;
}

/* What this process does while the other one measures. */
struct load {
    const char *name;
    /* Once; returns how many jobs it did. */
    size_t (*step)(struct gpu_epoch *e, const struct gpu_jobs *jobs);
};

static size_t do_nothing(struct gpu_epoch *e, const struct gpu_jobs *jobs)
{
    (void)e;
    (void)jobs;
    usleep(1000);
    return 0;
}

static size_t do_one_job(struct gpu_epoch *e, const struct gpu_jobs *jobs)
{
    double until = gpu_now_us() + 1e6 / TENANT_JOBS_PER_SECOND;
    test_epoch_run(&e->t, &jobs->items[0]);
    double left = until - gpu_now_us();
    if (left > 0)
        usleep((useconds_t)left);
    return 1;
}

static size_t do_all_jobs(struct gpu_epoch *e, const struct gpu_jobs *jobs)
{
    gpu_jobs_run(e, jobs, 1, NULL, NULL);
    return jobs->n_jobs;
}

/* Runs the other process beside a load and prints what both noticed. */
static void beside(struct gpu_epoch *e, const struct gpu_jobs *jobs, size_t nbytes,
                   const struct load *load)
{
    char facts[400] = "";
    FILE *output;
    size_t n_jobs = 0;
    double start = gpu_now_us();
    pid_t pid = start_self("tenant-alone", &output);
    while (!has_ended(pid))
        n_jobs += load->step(e, jobs);
    double seconds = (gpu_now_us() - start) / 1e6;
    if (!fgets(facts, sizeof(facts), output))
        e->wrong = true;
    facts[strcspn(facts, "\n")] = 0;
    fclose(output);
    printf("{\"peer\":\"wharf\",\"mode\":\"epoch-tenant\",\"load\":\"%s\",\"chunk\":%zu,"
           "\"jobs_per_s\":%.0f,\"GBps\":%.2f,%s%s%s}\n",
           load->name, nbytes, (double)n_jobs / seconds,
           (double)n_jobs * (double)nbytes / seconds / 1e9, facts, *facts ? "," : "",
           e->t.ops ? gpu_epoch_facts(e) : "\"engine\":\"none\"");
    fflush(stdout);
}

/* Before this process has a context of its own: the other one alone, and beside a plain hog. */
static void tenant_baselines(void)
{
    static const struct load nothing = {"no other process", do_nothing};
    static const struct load hog = {"a process that copies all the time", do_nothing};
    struct gpu_epoch none = {0};
    FILE *output;
    beside(&none, NULL, 0, &nothing);
    pid_t pid = start_self("tenant-saturate", &output);
    sleep(1);
    beside(&none, NULL, 0, &hog);
    waitpid(pid, NULL, 0);
    fclose(output);
}

static void tenant(struct gpu_epoch *e, const struct gpu_source *source)
{
    static const struct load loads[] = {
        {"idle", do_nothing}, {"1000 jobs a second", do_one_job}, {"saturated", do_all_jobs}};
    struct gpu_jobs jobs;
    gpu_jobs_new(e, &jobs, source, 4096);
    for (unsigned i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
        beside(e, &jobs, gpu_chunk_nbytes(source), &loads[i]);
    gpu_jobs_free(e, &jobs);
}

/* ---- the command line ----------------------------------------------------------------------- */

struct options {
    const struct wharf_epoch_ops *ops;
    struct wharf_epoch_config config;
    uint32_t outputs; /* a bit for each */
    uint32_t depths[MAX_DEPTHS], n_depths;
    uint32_t parameter; /* of the codec */
};

/* A bit for each enum wharf_work_output that is named. */
static uint32_t outputs_named(const char *words)
{
    static const char *const names[] = {"host", "device"};
    uint32_t outputs = 0;
    for (uint32_t i = 0; i < N_OUTPUTS; i++)
        outputs |= (uint32_t)(strstr(words, names[i]) != NULL) << i;
    if (outputs == 0)
        exit(test_usage(help));
    return outputs;
}

static uint32_t type_named(const char *word)
{
    int type = wharf_rle_type_from_name(word);
    if (type < 0)
        exit(test_usage(help));
    return (uint32_t)type;
}

static void take_depths(struct options *o, char *words)
{
    char *rest;
    o->n_depths = 0;
    for (char *word = strtok_r(words, ",", &rest); word && o->n_depths < MAX_DEPTHS;
         word = strtok_r(NULL, ",", &rest))
        o->depths[o->n_depths++] = (uint32_t)number(word, 1, 1 << 16);
    if (o->n_depths == 0)
        exit(test_usage(help));
}

/* Takes an option and its value; how many words that were, 0 if there is none. */
static int take_option(struct options *o, char **argv)
{
    const char *name = argv[0];
    char *value = argv[1];
    if (strcmp(name, "--per-batch") == 0)
        o->config.per_batch = 1;
    else if (!value)
        return 0;
    else if (strcmp(name, "--engine") == 0)
        o->ops = strcmp(value, "simt") == 0 ? &wharf_simt_epoch : &wharf_cuda_epoch;
    else if (strcmp(name, "--output") == 0)
        o->outputs = outputs_named(value);
    else if (strcmp(name, "--depth") == 0)
        take_depths(o, value);
    else if (strcmp(name, "--idle") == 0)
        o->config.idle_us = (uint32_t)number(value, 0, WHARF_EPOCH_MAX_US);
    else if (strcmp(name, "--stay") == 0)
        o->config.stay_us = (uint32_t)number(value, 0, WHARF_EPOCH_MAX_US);
    else if (strcmp(name, "--warps") == 0)
        o->config.n_warps = (uint32_t)number(value, 0, 1 << 20);
    else if (strcmp(name, "--share") == 0)
        o->config.share = (uint32_t)number(value, 1, 100);
    else if (strcmp(name, "--few") == 0)
        o->config.few = (uint32_t)number(value, 0, 1000);
    else if (strcmp(name, "--memory") == 0)
        o->config.chunk_nbytes = (uint32_t)number(value, 1, 1 << 28);
    else if (strcmp(name, "--most-out") == 0)
        o->config.most_out = (uint32_t)number(value, 0, 1 << 20);
    else if (strcmp(name, "--type") == 0)
        o->parameter = type_named(value);
    else
        return 0;
    return o->config.per_batch && strcmp(name, "--per-batch") == 0 ? 1 : 2;
}

/* The file, cut into chunks and packed. */
static struct gpu_source source_of(struct gpu_epoch *e, char **argv, uint32_t parameter,
                                   size_t most_nbytes)
{
    struct gpu_source source = {.parameter = parameter};
    size_t file_nbytes;
    int codec = wharf_codec_from_name(argv[0]);
    uint8_t *file = test_file_read(argv[1], &file_nbytes);
    if (codec < 0 || !file || !file_nbytes) {
        fprintf(stderr, "wharf_gpu_epoch: %s: no such codec, or %s: no such file\n", argv[0],
                argv[1]);
        exit(2);
    }
    size_t chunk = number(argv[2], 1, 1 << 28);
    source.codec_number = (uint32_t)codec;
    source.codec = wharf_codec_find(source.codec_number);
    source.file = file;
    e->data_name = strrchr(argv[1], '/') ? strrchr(argv[1], '/') + 1 : argv[1];
    gpu_pack(&source, file_nbytes, chunk, (most_nbytes - 1) / chunk + 1);
    return source;
}

/* Modes whose items have outputs. */
static void measure_output(struct gpu_epoch *e, const struct gpu_source *source, int argc,
                           char **argv)
{
    if (strcmp(argv[0], "lone") == 0)
        gpu_epoch_lone(e, source, number(argv[4], 1, 10000000));
    else if (strcmp(argv[0], "cancel") == 0)
        gpu_epoch_cancel(e, source, number(argv[4], 1, 10000000));
    else if (strcmp(argv[0], "flood") == 0)
        gpu_epoch_flood(e, source, (number(argv[4], 1, SIZE_MAX) - 1) / source->chunk_nbytes + 1,
                        argc > 5 ? (unsigned)number(argv[5], 1, MAX_RUNS) : 10);
    else
        tenant(e, source);
}

static void measure_outputs(struct gpu_epoch *e, const struct gpu_source *source,
                            const struct options *o, int argc, char **argv)
{
    uint32_t n_depths = strcmp(argv[0], "flood") == 0 ? o->n_depths : 1;
    for (e->output = 0; e->output < N_OUTPUTS; e->output++) {
        for (uint32_t d = 0; d < n_depths && (o->outputs >> e->output & 1); d++) {
            e->depth = o->depths[d];
            measure_output(e, source, argc, argv);
        }
    }
}

static int measure(struct gpu_epoch *e, const struct options *o, int argc, char **argv)
{
    struct gpu_source source = {0};
    const char *mode = argv[0];
    if (argc > 2)
        source = source_of(e, argv + 1, o->parameter, (size_t)256 << 20);
    if (strcmp(mode, "tenant") == 0)
        tenant_baselines();
    test_epoch_open(&e->t, o->ops, &o->config);
    o->ops->info(e->t.epoch, &e->info);
    if (strcmp(mode, "check") == 0)
        gpu_epoch_check(e, number(argv[1], 1, SIZE_MAX));
    else if (strcmp(mode, "noop") == 0)
        gpu_epoch_noop(e, number(argv[1], 1, 10000000));
    else if (strcmp(mode, "noops") == 0)
        gpu_epoch_noops(e, number(argv[1], 64, 10000000));
    else if (strcmp(mode, "import") == 0)
        gpu_epoch_import(e, &source);
    else if (strcmp(mode, "parts") == 0)
        gpu_epoch_parts(e, &source, number(argv[4], 1, 1000000));
    else
        measure_outputs(e, &source, o, argc, argv);
    test_epoch_close(&e->t);
    if (source.file)
        gpu_source_free(&source);
    free((void *)source.file);
    return e->wrong;
}

static bool is_call(int argc, char **argv)
{
    static const struct {
        const char *name;
        int least, most;
    } modes[] = {{"check", 2, 2},  {"noop", 2, 2},   {"noops", 2, 2},
                 {"lone", 5, 5},   {"flood", 5, 6},  {"tenant", 4, 4},
                 {"import", 4, 4}, {"cancel", 5, 5}, {"parts", 5, 5}};
    for (unsigned i = 0; argc > 0 && i < sizeof(modes) / sizeof(modes[0]); i++)
        if (strcmp(argv[0], modes[i].name) == 0)
            return argc >= modes[i].least && argc <= modes[i].most;
    return false;
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    struct options o = {
        .ops = &wharf_cuda_epoch,
        .config = {.n_entries = 8192,
                   .chunk_nbytes = 128 << 10,
                   .idle_us = 1000,
                   .few = 4,
                   .most_out = WHARF_EPOCH_MOST_OUT},
        .outputs = 1u << WHARF_WORK_TO_HOST,
        .depths = {4096},
        .n_depths = 1,
    };
    /* Nothing is to be loaded while a kernel stays. */
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    if (argc == 2 && strcmp(argv[1], "tenant-alone") == 0)
        return gpu_tenant_round_trips(TENANT_SECONDS);
    if (argc == 2 && strcmp(argv[1], "tenant-saturate") == 0)
        return gpu_tenant_saturate(3 * TENANT_SECONDS);
    if (argc == 2 && strcmp(argv[1], "export-memory") == 0)
        return gpu_export_serve(0);
    argv++;
    argc--;
    while (argc > 0 && strncmp(argv[0], "--", 2) == 0) {
        int n = take_option(&o, argv);
        if (n == 0)
            return test_usage(help);
        argv += n;
        argc -= n;
    }
    if (!is_call(argc, argv))
        return test_usage(help);
    struct gpu_epoch e = {.depth = o.depths[0]};
    return measure(&e, &o, argc, argv);
}
