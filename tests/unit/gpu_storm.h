/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_storm.h: a storm whose outputs and sources are in a GPU's memory, which the daemon has
 * registered. */
#ifndef WHARF_TESTS_GPU_STORM_H
#define WHARF_TESTS_GPU_STORM_H

#include <criterion/criterion.h>

#include "clientlib/wharf.h"
#include "tests/lib/test_gpu_memory.h"
#include "tests/lib/test_storm.h"

struct gpu_storm {
    struct test_storm storm;
    struct test_chunks chunks;
    struct test_gpu_memory out, in;
};

/* Runs n_jobs, some in batches and some cancelled; all must be done, and right. */
static inline void gpu_storm_run(struct gpu_storm *g, struct wharf *wharf, uint64_t seed,
                                 size_t most_nbytes, unsigned n_jobs, unsigned n_in_flight)
{
    struct test_storm *storm = &g->storm;

    test_chunks_init(&g->chunks, seed, 60, most_nbytes, 8);
    *storm = (struct test_storm){
        .wharf = wharf,
        .chunks = &g->chunks,
        .seed = seed,
        .n_jobs = n_jobs,
        .n_in_flight = n_in_flight,
        .batch_one_in = 4,
        .cancel_one_in = 10,
        .limit_s = 600,
    };
    g->out = test_gpu_memory_new(NULL, test_storm_out_nbytes(storm));
    g->in = test_gpu_memory_new(NULL, test_storm_in_nbytes(storm));
    storm->out_memory = g->out.at;
    storm->in_memory = g->in.at;
    cr_assert_eq(test_gpu_memory_register(wharf, &g->out), 0, "%s", wharf_error_message());
    cr_assert_eq(test_gpu_memory_register(wharf, &g->in), 0, "%s", wharf_error_message());
    cr_assert_eq(test_storm_run(storm), 0, "%s", storm->error);
    cr_expect_eq(storm->n_done, storm->n_jobs);
}

/* When the handle is closed. */
static inline void gpu_storm_free(struct gpu_storm *g)
{
    test_gpu_memory_free(&g->out);
    test_gpu_memory_free(&g->in);
    test_chunks_deinit(&g->chunks);
}

#endif
