/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_epoch.h: what the measurements of wharf_gpu_epoch share: an epoch engine with its core and
 * worker, and chunks in memory that it reaches.
 */
#ifndef WHARF_TESTS_GPU_EPOCH_H
#define WHARF_TESTS_GPU_EPOCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/gpu/gpu_pack.h"
#include "tests/lib/test_epoch.h"

struct gpu_epoch {
    struct test_epoch t;
    struct wharf_epoch_info info;
    const char *data_name;
    uint32_t output; /* enum wharf_work_output */
    uint32_t depth;  /* items under way at most */
    bool wrong;
};

/* A source's chunks n times over, each with a source and a destination of its own. */
struct gpu_jobs {
    struct wharf_work_item *items;
    size_t n_jobs;
    size_t in_nbytes; /* of all, without the gaps between them */
    size_t stride;    /* from one destination to the next */
    uint8_t *in, *out;
    size_t in_mapped_nbytes, out_mapped_nbytes;
    uint64_t d_out; /* device memory: destinations or staging */
};

/* Microseconds, of n samples, which are sorted. */
struct gpu_latency {
    double min_us, p50_us, p99_us, max_us;
    size_t n;
};

/* Sums of what completions say of where the time of items went, microseconds. */
struct gpu_epoch_times {
    double wait, fetch, decode, move;
};

double gpu_now_us(void);
struct gpu_latency gpu_latency_of(double *us, size_t n);
/* Ends the program if rc is an engine's error. */
void gpu_epoch_must(const struct gpu_epoch *e, const char *what, int rc);

void gpu_jobs_new(struct gpu_epoch *e, struct gpu_jobs *jobs, const struct gpu_source *source,
                  size_t n_jobs);
/* Parks the kernel meanwhile. */
void gpu_jobs_free(struct gpu_epoch *e, struct gpu_jobs *jobs);
/* How many destinations do not hold what they should.  Those in device memory are not looked at. */
size_t gpu_jobs_count_wrong(const struct gpu_epoch *e, const struct gpu_jobs *jobs,
                            const struct gpu_source *source);
/*
 * Does all jobs so many times over, e->depth at a time, without a stop between passes.  How many
 * were not WHARF_OK.  ret_us, if not NULL: how long as many completions took as there are jobs,
 * again and again.  times, if not NULL: what their times are added to.
 */
size_t gpu_jobs_run(struct gpu_epoch *e, const struct gpu_jobs *jobs, size_t n_passes,
                    double *ret_us, struct gpu_epoch_times *times);
void gpu_epoch_add_times(struct gpu_epoch_times *times,
                         const struct wharf_work_completion *completion);
/* Members of a row: the mean of n items. */
const char *gpu_epoch_times_text(const struct gpu_epoch_times *times, size_t n);

/* Members of a row that say what ran: device, warps, registers, settings. */
const char *gpu_epoch_facts(const struct gpu_epoch *e);

/* ---- measurements: each prints its rows ------------------------------------------------------ */

void gpu_epoch_noop(struct gpu_epoch *e, size_t n);
/* n at a time: how many can be handed over. */
void gpu_epoch_noops(struct gpu_epoch *e, size_t n);
void gpu_epoch_lone(struct gpu_epoch *e, const struct gpu_source *source, size_t n);
/* From n cancels, each of an item under way, to the items' completions. */
void gpu_epoch_cancel(struct gpu_epoch *e, const struct gpu_source *source, size_t n);
void gpu_epoch_flood(struct gpu_epoch *e, const struct gpu_source *source, size_t n_jobs,
                     unsigned n_runs);
/* Outputs in another process's GPU memory, and what is no such memory. */
void gpu_epoch_import(struct gpu_epoch *e, const struct gpu_source *source);
/* n round trips of the first chunk, which is of rans, in 1 part, 2, 4 and so on; and damaged ones
 * beside the reference decoder. */
void gpu_epoch_parts(struct gpu_epoch *e, const struct gpu_source *source, size_t n);
/* n items of all kinds, damaged ones too, with cancels and parks, against the CPU engine. */
void gpu_epoch_check(struct gpu_epoch *e, size_t n);

#endif
