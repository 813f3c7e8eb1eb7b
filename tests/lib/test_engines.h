/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_engines.h: a simulated machine with a GPU.
 *
 * Clients, processors, a GPU, its link and the thread that feeds it run in simulated time.  The
 * daemon's own place_offer.c chooses the engine of each chunk and learns from the results, as in
 * the daemon.  So tests can ask how placement works on some machine, and whether one engine alone
 * would do better, without that machine and with the same result every time.
 */
#ifndef WHARF_TESTS_LIB_TEST_ENGINES_H
#define WHARF_TESTS_LIB_TEST_ENGINES_H

#include <stdint.h>

#include "daemon/core/stats.h"

/* The machine. */
struct test_engines_machine {
    unsigned n_processors;
    unsigned n_warps;
    unsigned n_blocks;        /* of warps, which decode an item each; 0: none */
    unsigned n_few;           /* up to this many items, blocks decode them, not warps */
    uint64_t latency_ns;      /* of a GPU job, to and from */
    uint64_t link_ps_per_kib; /* for input and output */
    uint64_t feed_ns;         /* the feeding thread's time for a chunk */
    uint64_t lock_ns;         /* for which a processor holds the lock, for each chunk */
    uint64_t wake_ns;         /* for a processor's thread to wake up */
    uint64_t client_ns;       /* between a client's completion and next submission */
    unsigned noise_percent;   /* by which times on processors vary */
};

/* The load: each client keeps `depth` chunks in flight. */
struct test_engines_load {
    unsigned n_clients, depth;
    uint32_t engine; /* enum wharf_engine that they ask for */
    uint32_t codec;
    uint64_t in_nbytes, out_nbytes;
    uint64_t cpu_ns;   /* a processor's time for a chunk */
    uint64_t block_ns; /* a block's, and a warp's */
    uint64_t warp_ns;
    uint64_t way_ns; /* time in the GPU's queue and link, which no warp measures */
};

struct test_engines_result {
    uint64_t n_chunks, n_gpu; /* done, and those done by the GPU */
    uint64_t n_placed[WHARF_N_PLACEMENTS];
};

/* Starts anew.  Of each engine only the samples are known that are measured when a GPU is ready. */
void test_engines_start(const struct test_engines_machine *machine,
                        const struct test_engines_load *load);
void test_engines_stop(void);

/* Runs the load for so long, with what earlier runs have learnt. */
struct test_engines_result test_engines_run(const struct test_engines_load *load, uint64_t for_ns);

#endif
