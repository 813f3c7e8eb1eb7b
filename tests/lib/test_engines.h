/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_engines.h: a machine with a GPU that exists in numbers alone.
 *
 * Clients, processors, and a GPU with its link and the thread that feeds it are played in time of
 * their own; who gets which chunk is decided by the daemon's place_offer.c, which learns from what
 * comes back as it does in the daemon.  So it can be asked what placement makes of a machine, and
 * whether one engine alone would have done more, without that machine, and the same each time.
 */
#ifndef WHARF_TESTS_LIB_TEST_ENGINES_H
#define WHARF_TESTS_LIB_TEST_ENGINES_H

#include <stdint.h>

#include "daemon/core/stats.h"

/* What there is. */
struct test_engines_machine {
    unsigned n_processors;
    unsigned n_warps;
    unsigned n_blocks;        /* of warps, that decode an item each; 0: there are none */
    unsigned n_few;           /* items, up to which blocks decode them and not warps */
    uint64_t latency_ns;      /* of the GPU, there and back */
    uint64_t link_ps_per_kib; /* of what goes in and comes out */
    uint64_t feed_ns;         /* that the thread which feeds the GPU takes for a chunk */
    uint64_t lock_ns;         /* for which a processor keeps all others waiting, for each chunk */
    uint64_t wake_ns;         /* that a processor's thread takes to wake up */
    uint64_t client_ns;       /* that a client takes to get a chunk and submit another one */
    unsigned noise_percent;   /* by so much chunks on processors differ */
};

/* What clients have it do: each keeps `depth` chunks with the daemon. */
struct test_engines_load {
    unsigned n_clients, depth;
    uint32_t engine; /* enum wharf_engine that they ask for */
    uint32_t codec;
    uint64_t in_nbytes, out_nbytes;
    uint64_t cpu_ns;   /* a processor takes so long for a chunk */
    uint64_t block_ns; /* and a block, and a warp */
    uint64_t warp_ns;
    uint64_t way_ns; /* for which it is with the GPU besides, and no warp knows of */
};

struct test_engines_result {
    uint64_t n_chunks, n_gpu; /* done, and done by the GPU */
    uint64_t n_placed[WHARF_N_PLACEMENTS];
};

/* Begins anew: nothing is known of either engine but what samples tell when the GPU gets ready. */
void test_engines_start(const struct test_engines_machine *machine,
                        const struct test_engines_load *load);
void test_engines_stop(void);

/* The load for so long, with what was learnt of those before. */
struct test_engines_result test_engines_run(const struct test_engines_load *load, uint64_t for_ns);

#endif
