/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_daemon_main.c: a whole daemon with its GPU, driven through the library.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/wharf.h"
#include "tests/gpu/gpu_daemon.h"
#include "tests/lib/test_help.h"
#include "tests/lib/test_storm.h"
#include "tests/lib/test_tap.h"
#include "tests/lib/test_wait.h"
#include "tests/lib/test_wharfd.h"

static const char help[] =
    "usage: wharf_gpu_daemon [OPTION]... vectors FOLDER\n"
    "       wharf_gpu_daemon [OPTION]... check|check-models|gpus|sessions N\n"
    "       wharf_gpu_daemon [OPTION]... faults\n"
    "       wharf_gpu_daemon [OPTION]... soak|measure|cancels|models SECONDS\n"
    "       wharf_gpu_daemon [OPTION]... flood CODEC[:TYPE] FILE SECONDS\n"
    "\n"
    "Drives a whole daemon with its GPU through the library.  The modes:\n"
    "\n"
    "  vectors        every vector through daemon and worker\n"
    "  check          N jobs a storm: of one client and of several, with workers and daemons\n"
    "                 killed under it; sessions that come and go; registered models\n"
    "  check-models   the models alone, with N damaged streams\n"
    "  gpus           with two GPUs: storms of N jobs, the worker of one killed under them\n"
    "  faults         jobs that end the worker, with wharfd-poison beside wharfd\n"
    "  sessions       N that come and go, and what they leave\n"
    "  soak           sixteen clients of all kinds at once, and what they leave behind\n"
    "  measure        latency and throughput\n"
    "  cancels        how soon a stream with 65,535 splits ends after its cancel\n"
    "  flood          throughput of the file's chunks, packed, to several clients\n"
    "  models         throughput of streams that bring their models, and of such that do not\n"
    "\n"
    "  --engine cuda|simt     the GPU (cuda), or its code on the CPU\n"
    "  --output kernel|copy   who takes outputs to the clients' memory, as in wharfd.conf\n"
    "  --worker PROGRAM       the worker, likewise: tests/wharfd-host where there is no GPU\n"
    "  --setting NAME=VALUE   one more setting of [gpu]; with device=0,1 measure is of two\n"
    "                         GPUs\n"
    "  --chunk NBYTES, --asked cpu|gpu|simt|auto\n"
    "                         for measure and cancels: chunks of that size; for measure: that\n"
    "                         engine alone\n"
    "  --asked NAME,NAME... --passes N\n"
    "                         for flood: these engines in turn, each so often (1)\n"
    "  --batch N              for flood: N chunks a job\n"
    "  --clients N,N... --depth N,N...\n"
    "                         for flood: so many clients (1,4,16), so many chunks in flight\n"
    "                         (4096)\n"
    "  --spin MICROSECONDS    for how long clients look for completions before they sleep\n"
    "\n"
    "With simt, for machines without a GPU, chunks are small.  All but measure report in the\n"
    "Test Anything Protocol; measure prints one JSON object a line.  It is run from\n"
    "BUILD/tests or from a folder beside wharfd and wharfd-gpu.\n";

static const char *asked = "all";
static size_t chunk_nbytes;
static unsigned batch;
static const char *clients = "1,4,16";
static const char *depths = "4096";
static unsigned n_passes = 1;
static uint32_t engine = WHARF_ENGINE_GPU;

static int is_simt(void)
{
    return engine == WHARF_ENGINE_SIMT;
}

static struct test_chunks chunks;

static void make_chunks(void)
{
    if (is_simt())
        test_chunks_init(&chunks, 1, 60, 1000, 8);
    else
        test_chunks_init(&chunks, 1, 400, 100000, 8);
}

/* ---- main ---------------------------------------------------------------------------------- */

static void sessions(unsigned n_sessions)
{
    make_chunks();
    gpu_daemon_check_churn(&chunks, n_sessions);
    test_chunks_deinit(&chunks);
}

static void check_gpus(uint64_t n_jobs)
{
    make_chunks();
    gpu_daemon_start("device = 0,1\n");
    gpu_daemon_check_gpus(engine, &chunks, n_jobs);
    gpu_daemon_finish();
    test_chunks_deinit(&chunks);
}

static void measure(double seconds)
{
    gpu_daemon_start("");
    gpu_daemon_measure(engine, seconds, chunk_nbytes, asked);
    gpu_daemon_finish();
}

static void cancels(double seconds)
{
    gpu_daemon_start("");
    gpu_daemon_measure_cancels(engine, seconds, chunk_nbytes ? chunk_nbytes : 16 << 20);
    gpu_daemon_finish();
}

static void flood(char **argv, double seconds)
{
    struct gpu_daemon_flood what = {
        .codec = argv[0],
        .path = argv[1],
        .chunk_nbytes = chunk_nbytes ? chunk_nbytes : 128 << 10,
        .batch = batch,
        .clients = clients,
        .depths = depths,
        .asked = asked,
        .n_passes = n_passes,
    };

    gpu_daemon_start("");
    gpu_daemon_flood(&what, seconds);
    gpu_daemon_finish();
}

static void soak(double seconds)
{
    gpu_daemon_keep_nothing();
    make_chunks();
    gpu_daemon_start("");
    gpu_daemon_soak(engine, &chunks, seconds);
    gpu_daemon_finish();
    test_chunks_deinit(&chunks);
}

/* By a daemon of its own, whose jobs can ask for faults. */
static void faults(void)
{
    test_wharfd_program = "wharfd-poison";
    gpu_daemon_start("hang_timeout = 10min\n[listen other]\npath = other\ntenant = socket\n");
    gpu_daemon_faults(engine);
    gpu_daemon_finish();
    test_wharfd_program = "wharfd";
}

static void check_models(unsigned n_damaged)
{
    gpu_daemon_start("");
    unsigned n_bad = gpu_daemon_check_models(engine, n_damaged);
    test_tap_report(n_bad == 0, "registered models, %u damaged streams: %u differ", n_damaged,
                    n_bad);
    gpu_daemon_finish();
}

static void measure_models(double seconds)
{
    gpu_daemon_start("");
    gpu_daemon_measure_models(engine, seconds);
    gpu_daemon_finish();
}

static void check(uint64_t n_jobs)
{
    make_chunks();
    gpu_daemon_check_storms(&chunks, n_jobs);
    gpu_daemon_check_clients(&chunks, n_jobs);
    gpu_daemon_check_kills(&chunks, 0, n_jobs);
    gpu_daemon_check_kills(&chunks, 1, n_jobs);
    gpu_daemon_check_churn(&chunks, is_simt() ? 60 : 400);
    check_models(is_simt() ? 200 : 2000);
    test_chunks_deinit(&chunks);
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    for (; argc > 2 && strncmp(argv[1], "--", 2) == 0; argv += 2, argc -= 2) {
        if (strcmp(argv[1], "--engine") == 0)
            gpu_daemon_options.engine = argv[2];
        else if (strcmp(argv[1], "--output") == 0)
            gpu_daemon_options.output = argv[2];
        else if (strcmp(argv[1], "--worker") == 0)
            gpu_daemon_options.worker = argv[2];
        else if (strcmp(argv[1], "--setting") == 0)
            gpu_daemon_options.setting = argv[2];
        else if (strcmp(argv[1], "--asked") == 0)
            asked = argv[2];
        else if (strcmp(argv[1], "--chunk") == 0)
            chunk_nbytes = strtoul(argv[2], NULL, 0);
        else if (strcmp(argv[1], "--batch") == 0)
            batch = (unsigned)strtoul(argv[2], NULL, 0);
        else if (strcmp(argv[1], "--clients") == 0)
            clients = argv[2];
        else if (strcmp(argv[1], "--depth") == 0)
            depths = argv[2];
        else if (strcmp(argv[1], "--passes") == 0)
            n_passes = (unsigned)strtoul(argv[2], NULL, 0);
        else if (strcmp(argv[1], "--spin") == 0)
            gpu_daemon_options.spin_us = (uint32_t)strtoul(argv[2], NULL, 0);
        else
            return test_usage(help);
    }
    engine = gpu_daemon_engine();
    if (argc == 2 && strcmp(argv[1], "faults") == 0)
        faults();
    else if (argc == 5 && strcmp(argv[1], "flood") == 0)
        flood(argv + 2, strtod(argv[4], NULL));
    else if (argc != 3)
        return test_usage(help);
    else if (strcmp(argv[1], "vectors") == 0)
        gpu_daemon_check_vectors(argv[2]);
    else if (strcmp(argv[1], "check") == 0)
        check(strtoull(argv[2], NULL, 0));
    else if (strcmp(argv[1], "gpus") == 0)
        check_gpus(strtoull(argv[2], NULL, 0));
    else if (strcmp(argv[1], "sessions") == 0)
        sessions((unsigned)strtoul(argv[2], NULL, 0));
    else if (strcmp(argv[1], "soak") == 0)
        soak(strtod(argv[2], NULL));
    else if (strcmp(argv[1], "measure") == 0)
        measure(strtod(argv[2], NULL));
    else if (strcmp(argv[1], "cancels") == 0)
        cancels(strtod(argv[2], NULL));
    else if (strcmp(argv[1], "models") == 0)
        measure_models(strtod(argv[2], NULL));
    else if (strcmp(argv[1], "check-models") == 0)
        check_models((unsigned)strtoul(argv[2], NULL, 0));
    else
        return test_usage(help);
    return test_tap_end();
}
