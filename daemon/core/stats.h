/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.h: what the daemon counts.
 *
 * Guarded by the core lock.  All counters only grow; gauges are looked up when they are asked for.
 */
#ifndef WHARF_DAEMON_CORE_STATS_H
#define WHARF_DAEMON_CORE_STATS_H

#include <stdint.h>

#include "daemon/base/config.h"
#include "daemon/core/limits.h"
#include "proto/wharf_job.h"
#include "proto/wharf_result.h"
#include "proto/wharf_ring.h"

enum {
    WHARF_STATS_N_RESULTS = WHARF_FILE_ERROR + 1,
    WHARF_STATS_N_ENGINES = WHARF_ENGINE_SIMT + 1,
    /* Without DEFAULT: class i + 1. */
    WHARF_STATS_N_CLASSES = WHARF_CLASS_BACKGROUND,
    /* Bucket i holds what took below 2^i microseconds, beginning with 1 us; the last one, from 33 s
     * on, holds the rest. */
    WHARF_STATS_N_BUCKETS = 27,
};

struct wharf_histogram {
    uint64_t buckets[WHARF_STATS_N_BUCKETS];
    uint64_t sum_ns;
};

/* Why chunks were given to the engine that ran them. */
enum wharf_placement {
    WHARF_PLACED_CPU_ASKED,  /* the session wants the CPU, or the reference engine */
    WHARF_PLACED_GPU_ASKED,  /* the session wants the GPU alone */
    WHARF_PLACED_CPU_SOONER, /* it would be done with it before the GPU */
    WHARF_PLACED_GPU_SOONER,
    WHARF_PLACED_NO_GPU,     /* there is none at present */
    WHARF_PLACED_CODEC,      /* the CPU, since the GPU has no decoder for it */
    WHARF_PLACED_TOO_LARGE,  /* for the GPU */
    WHARF_PLACED_NOT_PINNED, /* the memory is not ready for the GPU */
    WHARF_PLACED_BANNED,     /* the tenant's jobs ended the GPU's worker too often */
    WHARF_PLACED_CPU_MORE,   /* of many, since more passes so altogether */
    WHARF_PLACED_GPU_MORE,
    WHARF_PLACED_TO_LEARN, /* the engine that had none of the kind for long: what it takes there */
    WHARF_PLACED_GPU_MEMORY,   /* the output is to be in GPU memory */
    WHARF_PLACED_SEVERAL_GPUS, /* refused: outputs of one batch are to be in memory of several */
    WHARF_N_PLACEMENTS,
};

/* Of one engine; AUTO is for what no engine ran. */
struct wharf_engine_stats {
    uint64_t n_jobs[WHARF_STATS_N_RESULTS];
    uint64_t n_chunks;
    uint64_t in_nbytes;
    uint64_t out_nbytes;
    uint64_t busy_ns;
    struct wharf_histogram queue; /* of jobs that an engine began */
    struct wharf_histogram run;
};

struct wharf_tenant_stats {
    struct wharf_engine_stats engines[WHARF_STATS_N_ENGINES];
    struct wharf_histogram latency[WHARF_STATS_N_CLASSES]; /* of jobs that an engine began */
    uint64_t n_connections;                                /* accepted */
    uint64_t n_sessions;
    uint64_t n_refused[WHARF_N_LIMITS]; /* connections, requests and jobs over this limit */
    uint64_t n_broken;                  /* connections that were ended for breaking the protocol */
    uint64_t n_doorbells;
    uint64_t n_compressed; /* chunks of those of engines; and the bytes of those that were good */
    uint64_t compressed_in_nbytes, compressed_out_nbytes;
    uint64_t n_evicted;                    /* arenas and regions that GPUs let go of for others */
    uint64_t n_placed[WHARF_N_PLACEMENTS]; /* chunks */
    uint64_t n_on_gpus[WHARF_MAX_GPUS];    /* likewise, that this GPU was given */
};

static inline void wharf_histogram_add(struct wharf_histogram *histogram, uint64_t ns)
{
    uint64_t us = ns / 1000;
    unsigned bucket = us ? 64 - (unsigned)__builtin_clzll(us) : 0;

    if (bucket >= WHARF_STATS_N_BUCKETS)
        bucket = WHARF_STATS_N_BUCKETS - 1;
    histogram->buckets[bucket]++;
    histogram->sum_ns += ns;
}

static inline void wharf_histogram_merge(struct wharf_histogram *to,
                                         const struct wharf_histogram *from)
{
    /* Most are 0, and the sums' memory is another processor's. */
    for (unsigned i = 0; i < WHARF_STATS_N_BUCKETS; i++)
        if (from->buckets[i])
            to->buckets[i] += from->buckets[i];
    to->sum_ns += from->sum_ns;
}

/* stats.c: sums. */
void wharf_engine_stats_add(struct wharf_engine_stats *to, const struct wharf_engine_stats *more);
void wharf_tenant_stats_add(struct wharf_tenant_stats *to, const struct wharf_tenant_stats *more);

#endif
