/* SPDX-License-Identifier: Apache-2.0 */
/*
 * why.h: what `wharf why` finds out about a file.
 *
 * It looks at the file's chunks by their headers, decodes some of them here and through the daemon,
 * and holds what it found against the daemon's limits and settings.
 */
#ifndef WHARF_CLI_WHY_H
#define WHARF_CLI_WHY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clientlib/cli/bench_run.h"
#include "clientlib/cli/metrics.h"
#include "clientlib/cli/task.h"
#include "encoders/source_kind.h"

enum {
    WHARF_CLI_WHY_MAX_CHUNKS = 1 << 16, /* kept of one file */
    WHARF_CLI_WHY_MAX_LIMITS = 16,
    WHARF_CLI_WHY_MAX_REASONS = 16,
    WHARF_CLI_WHY_MAX_ENGINES = 8,
};

#define WHARF_CLI_WHY_UNKNOWN UINT64_MAX

/* A chunk that is decoded by itself. */
struct wharf_cli_why_chunk {
    uint64_t offset; /* of its stream in the file */
    uint64_t out_nbytes;
    uint32_t in_nbytes;
    uint32_t codec;
    uint32_t parameter;
    uint32_t flags; /* of the job that decodes it, with what it verifies */
    uint32_t checksum;
};

/* The file's chunks.  Every 2^k-th chunk is kept, for the percentiles and the sample; the number,
 * the sums, `least` and `most` cover all chunks. */
struct wharf_cli_why_chunks {
    struct wharf_cli_why_chunk *kept;
    size_t n_kept;
    unsigned shift; /* k */
    uint64_t n, in_nbytes, out_nbytes;
    uint64_t least, tenth, median, nine_tenths, most; /* of output */
    uint64_t n_over_gpu;                              /* larger than `chunk` in [gpu] */
    uint64_t n_over_job;                              /* larger than a job may be */
};

/* How fast one way of decoding was with the sample. */
struct wharf_cli_why_way {
    bool is_measured;
    int error; /* -errno of a daemon that refused */
    struct wharf_cli_bench_speed speed;
    uint64_t n_by[WHARF_CLI_WHY_MAX_ENGINES]; /* chunks by enum wharf_engine */
};

/* A limit of the speed, and how to lift it. */
struct wharf_cli_why_limit {
    const char *name; /* documented, so that scripts can look for it */
    char what[320];
    char change[320];
};

/* A reason for which the daemon chose an engine, and for how many chunks. */
struct wharf_cli_why_reason {
    char name[32];
    double n;
};

struct wharf_cli_why {
    struct wharf_cli_task *task;
    uint64_t least_ns; /* how long each measurement is repeated */

    /* The file. */
    enum wharf_source_kind kind;
    const char *format;
    uint64_t codecs;     /* bits 1 << enum wharf_codec */
    bool is_chunked;     /* a daemon can decode each of its chunks */
    bool is_cut;         /* something else follows the counted chunks */
    uint64_t out_nbytes; /* WHARF_CLI_WHY_UNKNOWN: only decoding tells */
    struct wharf_cli_why_chunks chunks;

    /* The sample. */
    uint64_t sample_nbytes; /* of output */
    size_t n_sample;        /* chunks; 0: the sample is the file's beginning */
    struct wharf_cli_why_way here;
    struct wharf_cli_why_way daemon; /* as it chooses, or as --engine says */
    struct wharf_cli_why_way gpu;    /* the daemon's GPU alone */
    struct wharf_cli_why_reason reasons[WHARF_CLI_WHY_MAX_REASONS];
    unsigned n_reasons;

    /* The daemon. */
    bool has_metrics;
    struct wharf_cli_metrics metrics; /* as it was before the measurements */
    uint32_t gpu_engine;              /* GPU, or SIMT in its place; 0: it has none */
    uint64_t gpu_chunk_nbytes;        /* 0: not known */
    double gpu_longest_s;
    double n_gpu_warps;
    double gpu_warp_bps; /* output a second of a busy warp, on average; 0: unknown */

    struct wharf_cli_why_limit limits[WHARF_CLI_WHY_MAX_LIMITS];
    unsigned n_limits;
};

/* Finds the format and walks through the chunks.  Returns the exit status. */
int wharf_cli_why_look(struct wharf_cli_why *why);

/* Asks the daemon, if the task's service has one.  Returns the exit status. */
int wharf_cli_why_ask(struct wharf_cli_why *why);

/* Decodes a sample in every available way.  Bad data ends it.  Returns the exit status. */
int wharf_cli_why_measure(struct wharf_cli_why *why);

/* Fills `limits`. */
void wharf_cli_why_check(struct wharf_cli_why *why);

/* This user's limit by the name of its setting, or how much of it is used; NAN: the daemon does not
 * say. */
double wharf_cli_why_quota(const struct wharf_cli_why *why, const char *setting, bool is_used);

/* Whether the daemon decodes this file, where there is one. */
bool wharf_cli_why_uses_daemon(const struct wharf_cli_why *why);

/* For people, and one JSON object as wharf(1) describes it. */
void wharf_cli_why_print_text(const struct wharf_cli_why *why);
void wharf_cli_why_print_json(const struct wharf_cli_why *why);

void wharf_cli_why_deinit(struct wharf_cli_why *why);

#endif
