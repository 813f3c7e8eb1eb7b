/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats.h: the daemon's counters.
 *
 * Guarded by the core lock.  Counters only grow; gauges are computed on request.
 */
#ifndef WHARF_DAEMON_CORE_STATS_H
#define WHARF_DAEMON_CORE_STATS_H

#include <stdint.h>

#include "daemon/base/config.h"
#include "daemon/core/file_protocol.h"
#include "daemon/core/limits.h"
#include "proto/wharf_job.h"
#include "proto/wharf_result.h"
#include "proto/wharf_ring.h"

enum {
    WHARF_STATS_N_RESULTS = WHARF_FILE_ERROR + 1,
    WHARF_STATS_N_ENGINES = WHARF_ENGINE_SIMT + 1,
    /* Without DEFAULT: class i + 1. */
    WHARF_STATS_N_CLASSES = WHARF_CLASS_BACKGROUND,
    /* Bucket i counts times below 2^i microseconds, starting with 1 us; the last one counts all
     * from 33 s on. */
    WHARF_STATS_N_BUCKETS = 27,
};

struct wharf_histogram {
    uint64_t buckets[WHARF_STATS_N_BUCKETS];
    uint64_t sum_ns;
};

/* Why a chunk went to the engine that ran it. */
enum wharf_placement {
    WHARF_PLACED_CPU_ASKED,  /* the session asked for the CPU or the reference engine */
    WHARF_PLACED_GPU_ASKED,  /* the session asked for the GPU alone */
    WHARF_PLACED_CPU_SOONER, /* the CPU would finish it before the GPU */
    WHARF_PLACED_GPU_SOONER,
    WHARF_PLACED_NO_GPU,     /* no GPU is up */
    WHARF_PLACED_CODEC,      /* the GPU has no decoder for it */
    WHARF_PLACED_TOO_LARGE,  /* for the GPU */
    WHARF_PLACED_NOT_PINNED, /* its memory is not registered on a GPU */
    WHARF_PLACED_BANNED,     /* the tenant's jobs ended the GPU's worker too often */
    WHARF_PLACED_CPU_MORE,   /* of many chunks: this policy has the higher throughput */
    WHARF_PLACED_GPU_MORE,
    WHARF_PLACED_TO_LEARN,     /* to update the estimate of an engine that had none for long */
    WHARF_PLACED_GPU_MEMORY,   /* source or output is in a client's GPU memory */
    WHARF_PLACED_SEVERAL_GPUS, /* refused: one batch names memory of several GPUs */
    WHARF_N_PLACEMENTS,
};

/* Counters of one engine; AUTO counts jobs that no engine ran. */
struct wharf_engine_stats {
    uint64_t n_jobs[WHARF_STATS_N_RESULTS];
    uint64_t n_chunks;
    uint64_t in_nbytes;
    uint64_t out_nbytes;
    uint64_t busy_ns;
    struct wharf_histogram queue; /* of jobs that an engine began */
    struct wharf_histogram run;
};

/* Of chunks that GPUs keep: searches and those that found one, chunks kept and evicted. */
struct wharf_memo_stats {
    uint64_t n_looked, n_hits, n_kept, n_evicted;
};

struct wharf_tenant_stats {
    struct wharf_engine_stats engines[WHARF_STATS_N_ENGINES];
    struct wharf_histogram latency[WHARF_STATS_N_CLASSES]; /* of jobs that an engine began */
    uint64_t n_connections;                                /* accepted */
    uint64_t n_sessions;
    uint64_t n_refused[WHARF_N_LIMITS]; /* connections, requests and jobs over this limit */
    uint64_t n_broken;                  /* connections ended for violating the protocol */
    uint64_t n_doorbells;
    uint64_t n_compressed; /* of the engines' chunks, those that compress; bytes of the good ones */
    uint64_t compressed_in_nbytes, compressed_out_nbytes;
    struct wharf_memo_stats memo;
    uint64_t file_in_nbytes;               /* of good chunks: sources in files, */
    uint64_t file_out_nbytes;              /* and outputs to files */
    struct wharf_file_counts files;        /* what was read ahead */
    uint64_t n_evicted;                    /* arenas and regions that were evicted from GPUs */
    uint64_t n_placed[WHARF_N_PLACEMENTS]; /* chunks */
    uint64_t n_on_gpus[WHARF_MAX_GPUS];    /* chunks that each GPU got */
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
    /* Most are 0, and the sums are in another processor's cache. */
    for (unsigned i = 0; i < WHARF_STATS_N_BUCKETS; i++)
        if (from->buckets[i])
            to->buckets[i] += from->buckets[i];
    to->sum_ns += from->sum_ns;
}

/* stats.c: sums. */
void wharf_memo_stats_add(struct wharf_memo_stats *to, const struct wharf_memo_stats *more);
void wharf_engine_stats_add(struct wharf_engine_stats *to, const struct wharf_engine_stats *more);
void wharf_tenant_stats_add(struct wharf_tenant_stats *to, const struct wharf_tenant_stats *more);

#endif
