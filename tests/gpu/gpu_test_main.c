/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_test_main.c: device decoders on a GPU against the CPU engine.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/wharf.h"
#include "kernels/simt/simt_batch.h"
#include "tests/gpu/gpu_cases.h"
#include "tests/lib/test_help.h"
#include "tests/lib/test_tap.h"

static const char help[] =
    "usage: wharf_gpu_test [OPTION]... vectors FOLDER | vectors TABLE FOLDER\n"
    "       wharf_gpu_test [OPTION]... generated|forged|damaged N\n"
    "\n"
    "Holds device decoders on a GPU against the CPU engine.  The modes:\n"
    "\n"
    "  vectors     the vectors of a folder, or those that a table lists\n"
    "  generated   N variants of each of some hundred good streams\n"
    "  forged      N streams of Deflate that no packer writes, and of each a few variants and\n"
    "              damages\n"
    "  damaged     N streams with one to four bits changed\n"
    "\n"
    "  --engine cuda|library|simt   what runs device code: kernels of the first GPU\n"
    "                               (default),\n"
    "                       libwharf-cuda's public calls on it, or the SIMT layer\n"
    "  --graph              every call becomes a CUDA graph, whose second replay counts\n"
    "  --any-codec          the kernel that has all decoders, instead of each codec's own\n"
    "  --serial             the kernel that decodes one symbol a step, of codecs that have\n"
    "                       one\n"
    "  --serial-registers   the same with input through registers instead of shared memory\n"
    "  --serial-prefetch    the same with a warp that does nothing but fill shared memory\n"
    "  --block              the kernel in which a block's warps decode a chunk together,\n"
    "                       likewise\n"
    "  --crew               the kernel with one more warp that helps the others, likewise\n"
    "  --indexed            the kernel for registered models with indexes, likewise\n"
    "  --own-memory         memory of its own for every job: for compute-sanitizer\n"
    "  --codec NAME         this codec alone\n"
    "  --seed N             other variants and damages (default 1)\n"
    "  --save FOLDER        write the inputs of jobs that fail there\n"
    "\n"
    "Reports in the Test Anything Protocol; the last line is \"N passed, N failed\", counted in\n"
    "jobs.  Ends with 0 when all passed, 1 when some failed, 2 for wrong usage, 3 when the\n"
    "GPU or memory is not to be had.\n";

static const uint32_t all_codecs[] = {
#define X(ID, name, number, summary) WHARF_CODEC_##ID,
    WHARF_CODEC_LIST(X)
#undef X
};
enum { N_CODECS = sizeof(all_codecs) / sizeof(all_codecs[0]) };

/* Damaged jobs made and checked at a time; forged streams likewise. */
enum { DAMAGED_AT_ONCE = 8192, FORGED_AT_ONCE = 2048 };

/* Of each forged stream. */
enum { FORGED_VARIANTS = 2, FORGED_DAMAGES = 3 };

static struct {
    struct gpu_check_options check;
    struct gpu_checker *checker;
    uint64_t seed;
    int codec; /* -1: all */
    uint64_t n_passed, n_failed;
} run = {.check = {.device = &gpu_device_cuda}, .seed = 1, .codec = -1};

static int is_chosen(uint32_t codec)
{
    return wharf_simt_can_decode(run.check.serial | codec) &&
           (run.codec < 0 || (uint32_t)run.codec == codec);
}

static void report(const char *name, uint64_t n_cases, uint64_t n_failed)
{
    test_tap_report(n_failed == 0, "%s: %" PRIu64 " jobs", name, n_cases);
    run.n_passed += n_cases - n_failed;
    run.n_failed += n_failed;
}

static void run_vectors(const struct test_vector_list *vectors)
{
    struct gpu_case_list list = {0};
    gpu_cases_add_vectors(&list, vectors, run.check.serial);
    gpu_checker_run(run.checker, list.cases, list.n_cases);
    for (size_t i = 0; i < list.n_cases; i++) {
        char name[4096];
        const struct gpu_case *c = &list.cases[i];
        snprintf(name, sizeof(name), "%s%s", c->name, c->number ? ", a byte less of room" : "");
        report(name, 1, c->failed);
    }
    gpu_case_list_deinit(&list);
}

static void run_generated(uint32_t codec, uint64_t n_variants)
{
    struct gpu_case_list streams = {0};
    struct gpu_case_list variants = {0};
    struct test_random random = {run.seed};
    char name[100];

    gpu_cases_add_streams(&streams, codec);
    for (size_t i = 0; i < streams.n_cases; i++)
        gpu_cases_add_variants(&variants, &streams.cases[i], &random, (unsigned)n_variants);
    size_t n_failed = gpu_checker_run(run.checker, streams.cases, streams.n_cases);
    snprintf(name, sizeof(name), "%s streams", wharf_codec_find(codec)->name);
    report(name, streams.n_cases, n_failed);
    n_failed = gpu_checker_run(run.checker, variants.cases, variants.n_cases);
    snprintf(name, sizeof(name), "%s variants", wharf_codec_find(codec)->name);
    report(name, variants.n_cases, n_failed);
    gpu_case_list_deinit(&variants);
    gpu_case_list_deinit(&streams);
}

static void run_damaged(uint32_t codec, uint64_t n_damaged)
{
    struct gpu_case_list streams = {0};
    struct test_random random = {run.seed};
    uint64_t n_failed = 0;
    char name[100];

    gpu_cases_add_streams(&streams, codec);
    for (uint64_t done = 0; done < n_damaged;) {
        struct gpu_case_list damaged = {0};
        for (; done < n_damaged && damaged.n_cases < DAMAGED_AT_ONCE; done++) {
            size_t i = test_random_below(&random, streams.n_cases);
            gpu_cases_add_damaged(&damaged, &streams.cases[i], &random, done);
        }
        n_failed += gpu_checker_run(run.checker, damaged.cases, damaged.n_cases);
        gpu_case_list_deinit(&damaged);
    }
    snprintf(name, sizeof(name), "%s damaged", wharf_codec_find(codec)->name);
    report(name, n_damaged, n_failed);
    gpu_case_list_deinit(&streams);
}

/* Good streams, variants and damages of each, all in one list. */
static uint64_t check_forged(struct test_random *random, uint64_t first, uint64_t n,
                             uint64_t *n_cases)
{
    struct gpu_case_list list = {0};
    gpu_cases_add_forged(&list, first, n);
    for (uint64_t i = 0; i < n; i++) {
        const struct gpu_case stream = list.cases[i];
        gpu_cases_add_variants(&list, &stream, random, FORGED_VARIANTS);
        for (unsigned k = 0; k < FORGED_DAMAGES; k++)
            gpu_cases_add_damaged(&list, &stream, random, stream.number);
    }
    uint64_t n_failed = gpu_checker_run(run.checker, list.cases, list.n_cases);
    *n_cases += list.n_cases;
    gpu_case_list_deinit(&list);
    return n_failed;
}

static void run_forged(uint64_t n_forged)
{
    struct test_random random = {run.seed};
    uint64_t n_cases = 0;
    uint64_t n_failed = 0;

    for (uint64_t done = 0; done < n_forged; done += FORGED_AT_ONCE) {
        uint64_t n = n_forged - done < FORGED_AT_ONCE ? n_forged - done : FORGED_AT_ONCE;
        n_failed += check_forged(&random, (run.seed << 32) + done, n, &n_cases);
    }
    report("forged streams of deflate", n_cases, n_failed);
}

static int parse_number(const char *text, uint64_t *ret)
{
    char *end;
    errno = 0;
    *ret = strtoull(text, &end, 10);
    return *text && !*end && errno == 0 ? 0 : -1;
}

/* Takes one option and its value; returns how many words, or -1. */
static int take_option(char **argv)
{
    const char *value = argv[1];
    if (strcmp(argv[0], "--any-codec") == 0) {
        run.check.any_codec = true;
        return 1;
    }
    if (strcmp(argv[0], "--serial") == 0) {
        run.check.serial = WHARF_DEVICE_SERIAL;
        return 1;
    }
    if (strcmp(argv[0], "--serial-registers") == 0) {
        run.check.serial = WHARF_DEVICE_SERIAL_REGISTERS;
        return 1;
    }
    if (strcmp(argv[0], "--serial-prefetch") == 0) {
        run.check.serial = WHARF_DEVICE_SERIAL_PREFETCH;
        return 1;
    }
    if (strcmp(argv[0], "--block") == 0) {
        run.check.serial = WHARF_DEVICE_BLOCK;
        return 1;
    }
    if (strcmp(argv[0], "--crew") == 0) {
        run.check.serial = WHARF_DEVICE_CREW;
        return 1;
    }
    if (strcmp(argv[0], "--indexed") == 0) {
        run.check.serial = WHARF_DEVICE_INDEXED;
        return 1;
    }
    if (strcmp(argv[0], "--graph") == 0) {
        gpu_device_use_graphs();
        return 1;
    }
    if (strcmp(argv[0], "--own-memory") == 0) {
        run.check.own_memory = true;
        return 1;
    }
    if (!value)
        return -1;
    if (strcmp(argv[0], "--engine") == 0) {
        run.check.device = strcmp(value, "simt") == 0      ? &gpu_device_simt
                           : strcmp(value, "library") == 0 ? &gpu_device_library
                                                           : &gpu_device_cuda;
        return strcmp(value, run.check.device->engine) == 0 ? 2 : -1;
    }
    if (strcmp(argv[0], "--codec") == 0)
        return (run.codec = wharf_codec_from_name(value)) < 0 ? -1 : 2;
    if (strcmp(argv[0], "--seed") == 0)
        return parse_number(value, &run.seed) < 0 ? -1 : 2;
    if (strcmp(argv[0], "--save") == 0) {
        run.check.save_folder = value;
        return 2;
    }
    return -1;
}

/* Damaged streams are shared out by what there is to damage: bytes that are stored have nothing but
 * their number, so a hundredth is enough for them. */
static uint64_t damage_weight(uint32_t codec)
{
    return !is_chosen(codec) ? 0 : codec == WHARF_CODEC_STORED ? 1 : 100;
}

/* The codecs one after the other. */
static void run_codecs(const char *mode, uint64_t count)
{
    uint64_t all = 0;
    for (int i = 0; i < N_CODECS; i++)
        all += damage_weight(all_codecs[i]);
    for (int i = 0; i < N_CODECS; i++) {
        uint32_t codec = all_codecs[i];
        if (!is_chosen(codec))
            continue;
        if (strcmp(mode, "generated") == 0)
            run_generated(codec, count);
        else if (strcmp(mode, "damaged") == 0)
            run_damaged(codec, (count * damage_weight(codec) + all - 1) / all);
        else if (codec == WHARF_CODEC_DEFLATE)
            run_forged(count);
    }
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    struct test_vector_list vectors = {0};
    uint64_t count = 0;
    int at = 1;

    while (at < argc && strncmp(argv[at], "--", 2) == 0) {
        int n = take_option(argv + at);
        if (n < 0)
            return test_usage(help);
        at += n;
    }
    if (argc - at < 2)
        return test_usage(help);
    const char *mode = argv[at];
    int is_vectors = strcmp(mode, "vectors") == 0;
    if (is_vectors ? argc - at > 3
                   : argc - at != 2 || parse_number(argv[at + 1], &count) < 0 ||
                         (strcmp(mode, "generated") != 0 && strcmp(mode, "forged") != 0 &&
                          strcmp(mode, "damaged") != 0))
        return test_usage(help);
    if (run.check.any_codec && run.check.serial)
        return test_usage(help);

    setvbuf(stdout, NULL, _IOLBF, 0);
    run.check.device->open();
    printf("# on %s\n", run.check.device->name());
    run.checker = gpu_checker_new(&run.check);
    if (!is_vectors) {
        run_codecs(mode, count);
    } else {
        if (argc - at == 2)
            test_vector_list_read_folder(&vectors, argv[at + 1]);
        else
            test_vector_list_read_table(&vectors, argv[at + 1], argv[at + 2]);
        run_vectors(&vectors);
        test_vector_list_deinit(&vectors);
    }
    gpu_checker_free(run.checker);
    run.check.device->close();
    int status = test_tap_end();
    printf("%" PRIu64 " passed, %" PRIu64 " failed\n", run.n_passed, run.n_failed);
    return status || run.n_passed + run.n_failed == 0;
}
