/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What placement makes of clients that keep so many chunks with the daemon, on machines that exist
 * in numbers alone (test_engines.h): what passes is compared with what the better engine passes
 * alone.
 */
#include <criterion/criterion.h>

#include "daemon/base/clock.h"
#include "encoders/wharf_codec.h"
#include "proto/wharf_job.h"
#include "tests/lib/test_engines.h"

#define MS ((uint64_t)WHARF_NS_PER_MS)
#define KiB ((uint64_t)1024)

/*
 * An H100 beside 16 processors, from rows of tests/bench/results: 131 blocks of the kernel for up
 * to 4 items each, else 4224 warps; 37.9 GB/s each way on the link; 1.7 us of the feeding thread
 * for a chunk.
 */
static const struct test_engines_machine h100 = {
    .n_processors = 16,
    .n_warps = 4224,
    .n_blocks = 131,
    .n_few = 4 * 131,
    .latency_ns = 8000,
    .link_ps_per_kib = 13500,
    .feed_ns = 1700,
    .lock_ns = 1300,
    .wake_ns = 30000,
    .client_ns = 1200,
    .noise_percent = 40,
};

/* Stored chunks of 64 KiB; text, and a column of numbers, packed by Deflate. */
static const struct test_engines_load stored = {
    .codec = WHARF_CODEC_STORED,
    .in_nbytes = 64 * KiB,
    .out_nbytes = 64 * KiB,
    .cpu_ns = 5000,
    .block_ns = 7000,
    .warp_ns = 7000,
};
static const struct test_engines_load text = {
    .codec = WHARF_CODEC_DEFLATE,
    .in_nbytes = 26 * KiB,
    .out_nbytes = 64 * KiB,
    .cpu_ns = 110000,
    .block_ns = 150000,
    .warp_ns = 1300000,
    .way_ns = 50000,
};
static const struct test_engines_load column = {
    .codec = WHARF_CODEC_DEFLATE,
    .in_nbytes = 2 * KiB,
    .out_nbytes = 64 * KiB,
    .cpu_ns = 15000,
    .block_ns = 120000,
    .warp_ns = 700000,
};

/* A machine on which processors are in each other's way, and in the GPU's. */
static struct test_engines_machine crowded(void)
{
    struct test_engines_machine machine = h100;

    machine.lock_ns = 4000;
    return machine;
}

/* ---- comparing ----------------------------------------------------------------------------- */

/* Chunks a millisecond by one engine alone. */
static double alone(const struct test_engines_machine *machine, struct test_engines_load load,
                    uint32_t engine)
{
    load.engine = engine;
    test_engines_start(machine, &load);
    test_engines_run(&load, 5 * MS);
    struct test_engines_result result = test_engines_run(&load, 10 * MS);
    test_engines_stop();
    return (double)result.n_chunks / 10;
}

static double better(const struct test_engines_machine *machine,
                     const struct test_engines_load *load)
{
    double cpu = alone(machine, *load, WHARF_ENGINE_CPU);
    double gpu = alone(machine, *load, WHARF_ENGINE_GPU);

    return cpu > gpu ? cpu : gpu;
}

/* What passes by both, once some chunks have been seen, of what the better one passes. */
static double part_of_better(const struct test_engines_machine *machine,
                             struct test_engines_load load)
{
    double best = better(machine, &load);

    load.engine = WHARF_ENGINE_AUTO;
    test_engines_start(machine, &load);
    /* Each way has been tried twice by then. */
    test_engines_run(&load, 160 * MS);
    struct test_engines_result result = test_engines_run(&load, 60 * MS);
    test_engines_stop();
    return (double)result.n_chunks / 60 / best;
}

static void expect_of(const struct test_engines_machine *machine,
                      const struct test_engines_load *kind, unsigned n_clients)
{
    static const unsigned depths[] = {1, 16, 1024};
    struct test_engines_load load = *kind;

    load.n_clients = n_clients;
    for (unsigned i = 0; i < 3; i++) {
        load.depth = depths[i];
        double part = part_of_better(machine, load);
        cr_assert_geq(part, 0.95, "%u clients with %u chunks: %.3f", n_clients, load.depth, part);
    }
}

static void expect_all(const struct test_engines_load *kind)
{
    expect_of(&h100, kind, 1);
    expect_of(&h100, kind, 8);
}

/* Once 35 of 39 GB/s with 1024 of text, 4.7 of 8 with 16, and with one each of 8 clients 3.1 of
 * 4.7, nearly all of it by the GPU. */
Test(wharfd_flood, text_passes_as_by_the_better_engine)
{
    expect_all(&text);
}

/* Once 17 of 26 GB/s with 16. */
Test(wharfd_flood, stored_chunks_pass_as_by_the_better_engine)
{
    expect_all(&stored);
}

Test(wharfd_flood, columns_pass_as_by_the_better_engine)
{
    expect_all(&column);
}

Test(wharfd_flood, engines_in_each_others_way_pass_as_the_better_one)
{
    const struct test_engines_machine machine = crowded();

    expect_of(&machine, &text, 1);
    expect_of(&machine, &stored, 1);
}

/* A block decodes a chunk sooner than these processors, but it is away for longer. */
Test(wharfd_flood, way_to_the_gpu_is_counted)
{
    struct test_engines_load slow = text;

    slow.cpu_ns = 140000;
    expect_of(&h100, &slow, 1);
}

/* Where neither is in the other's way they pass more together. */
Test(wharfd_flood, both_pass_more_together)
{
    struct test_engines_load load = text;

    load.n_clients = 1;
    load.depth = 1024;
    double part = part_of_better(&h100, load);
    cr_assert_geq(part, 1.05, "%.3f", part);
    load = column;
    load.n_clients = 8;
    load.depth = 16;
    part = part_of_better(&h100, load);
    cr_assert_geq(part, 1.03, "%.3f", part);
}

/* ---- what changes -------------------------------------------------------------------------- */

/* What was learnt of many is not taken for what one takes, nor the other way round: warps take
 * nine times as long as a block. */
Test(wharfd_flood, another_load_is_learnt_soon)
{
    static const unsigned depths[] = {1024, 1, 16, 1024, 16, 1};
    struct test_engines_load load = text;

    load.cpu_ns = 300000;
    load.n_clients = 1;
    load.engine = WHARF_ENGINE_AUTO;
    test_engines_start(&h100, &load);
    for (unsigned i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
        load.depth = depths[i];
        test_engines_run(&load, 80 * MS);
        struct test_engines_result result = test_engines_run(&load, 60 * MS);
        double rate = (double)result.n_chunks / 60;
        /* One block at 210 us, where a processor takes 360; 16 of them; and many with warps. */
        double least = load.depth == 1 ? 4.4 : load.depth == 16 ? 65 : 520;
        cr_assert_geq(rate, least, "%u chunks: %.1f a millisecond", load.depth, rate);
    }
    test_engines_stop();
}
