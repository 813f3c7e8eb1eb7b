/* SPDX-License-Identifier: Apache-2.0 */
/*
 * why_limits.c: reads the daemon's statistics, and applies the rules that name limits and remedies.
 * Each rule looks at the file, the measurements and the daemon, and adds a limit where it applies.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clientlib/cli/number.h"
#include "clientlib/cli/why.h"
#include "encoders/container_format.h"

/* ---- the daemon's answer ------------------------------------------------------------------- */

/* NAN: this daemon does not have the family. */
static double value_of(const struct wharf_cli_why *why, const char *family)
{
    return why->has_metrics && wharf_cli_metrics_find(&why->metrics, family)
               ? wharf_cli_metrics_sum(&why->metrics, family, "", NULL, NULL)
               : NAN;
}

double wharf_cli_why_quota(const struct wharf_cli_why *why, const char *setting, bool is_used)
{
    const struct wharf_cli_family *family =
        why->has_metrics
            ? wharf_cli_metrics_find(&why->metrics, is_used ? "wharf_limit_used" : "wharf_limit")
            : NULL;
    double value = NAN;
    char own[16];

    snprintf(own, sizeof(own), "%u", (unsigned)geteuid());
    for (size_t i = 0; family && i < family->n_samples; i++) {
        const char *limit = wharf_cli_sample_label(&family->samples[i], "limit");
        const char *tenant = wharf_cli_sample_label(&family->samples[i], "tenant");

        if (!limit || strcmp(limit, setting) != 0)
            continue;
        /* Observers see all tenants; others only themselves, whatever they are called. */
        if (isnan(value) || (tenant && strcmp(tenant, own) == 0))
            value = family->samples[i].value;
    }
    return value;
}

int wharf_cli_why_ask(struct wharf_cli_why *why)
{
    const struct wharf_cli_service *service = why->task->service;

    if (!service->wharf)
        return WHARF_CLI_GOOD;
    int r = wharf_cli_metrics_get(service->wharf, &why->metrics);
    if (r < 0)
        return wharf_cli_service_say_error(service, r, wharf_error_message());
    why->has_metrics = true;
    why->gpu_engine = service->info.engines >> WHARF_ENGINE_GPU & 1    ? WHARF_ENGINE_GPU
                      : service->info.engines >> WHARF_ENGINE_SIMT & 1 ? WHARF_ENGINE_SIMT
                                                                       : 0;
    if (!why->gpu_engine)
        return WHARF_CLI_GOOD;
    double chunk = value_of(why, "wharf_gpu_chunk_limit_bytes");
    why->gpu_chunk_nbytes = chunk > 0 ? (uint64_t)chunk : service->info.max_gpu_chunk_nbytes;
    why->gpu_longest_s = value_of(why, "wharf_gpu_longest_seconds");
    why->n_gpu_warps = value_of(why, "wharf_gpu_warps");
    double busy_s = value_of(why, "wharf_gpu_busy_seconds_total");
    double nbytes = value_of(why, "wharf_gpu_output_bytes_total");
    why->gpu_warp_bps = busy_s > 0 && nbytes > 0 ? nbytes / busy_s : 0;
    return WHARF_CLI_GOOD;
}

bool wharf_cli_why_uses_daemon(const struct wharf_cli_why *why)
{
    return why->is_chunked && why->task->service->wharf && why->daemon.is_measured;
}

/* ---- rules --------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static struct wharf_cli_why_limit *
say(struct wharf_cli_why *why, const char *name, const char *format, ...)
{
    unsigned i =
        why->n_limits < WHARF_CLI_WHY_MAX_LIMITS ? why->n_limits++ : WHARF_CLI_WHY_MAX_LIMITS - 1;
    struct wharf_cli_why_limit *limit = &why->limits[i];
    va_list arguments;

    *limit = (struct wharf_cli_why_limit){.name = name};
    va_start(arguments, format);
    vsnprintf(limit->what, sizeof(limit->what), format, arguments);
    va_end(arguments);
    return limit;
}

__attribute__((format(printf, 2, 3))) static void change(struct wharf_cli_why_limit *limit,
                                                         const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(limit->change, sizeof(limit->change), format, arguments);
    va_end(arguments);
}

static double reason_count(const struct wharf_cli_why *why, const char *name)
{
    for (unsigned i = 0; i < why->n_reasons; i++)
        if (strcmp(why->reasons[i].name, name) == 0)
            return why->reasons[i].n;
    return 0;
}

/* The process decodes streams one after the other, with or without a daemon. */
static void check_stream(struct wharf_cli_why *why)
{
    bool has_frames = why->kind == WHARF_SOURCE_ZSTD && why->chunks.n > 1;

    if (why->is_chunked)
        return;
    if (why->task->service->wharf)
        change(say(why, "format",
                   "%s is decoded in this process: the daemon and its GPUs decode the chunks of "
                   "containers and BGZF",
                   why->format),
               "wharf cat %s | wharf pack -o %s%s", why->task->input->name, why->task->input->name,
               WHARF_CONTAINER_SUFFIX);
    switch (why->kind) {
    case WHARF_SOURCE_GZIP:
    case WHARF_SOURCE_ZLIB:
        change(say(why, "one_stream",
                   "it is one stream: threads search it for places to begin at, and parts of it "
                   "cannot be read without what stands before them"),
               "wharf index %s for parts of it, or wharf pack --format bgzf for all",
               why->task->input->name);
        return;
    case WHARF_SOURCE_ZSTD:
        if (!has_frames)
            change(say(why, "one_stream", "it has one frame, which one thread decodes"),
                   "wharf pack --format zstd writes many frames and an index of them");
        return;
    case WHARF_SOURCE_BROTLI:
    case WHARF_SOURCE_SNAPPY:
        change(say(why, "one_stream", "one thread decodes %s", why->format),
               "wharf pack writes chunks that all threads decode");
        return;
    default:
        return;
    }
}

static void check_daemon(struct wharf_cli_why *why)
{
    const struct wharf_cli_service *service = why->task->service;

    if (!why->is_chunked)
        return;
    if (why->task->options->embedded)
        change(say(why, "embedded", "--embedded was given: no daemon is asked"),
               "leave --embedded away");
    else if (!service->wharf)
        change(
            say(why, "no_daemon", "no daemon can be used: only this machine's processors decode"),
            "wharf doctor says what is missing");
    else if (why->task->options->engine != WHARF_ENGINE_AUTO)
        change(say(why, "engine", "--engine %s was given: the daemon has no choice",
                   wharf_engine_name(why->task->options->engine)),
               "leave --engine away");
    else if (!why->gpu_engine)
        change(say(why, "no_gpu", "the daemon has no GPU"),
               "wharf doctor says whether this machine has one and what it lacks");
    if (why->daemon.error)
        change(say(why, "refused", "the daemon did not decode the sample: %s",
                   why->daemon.error == -EDQUOT ? "a limit of this user's is reached"
                                                : wharf_cli_error_text(why->daemon.error)),
               "wharf status says what is used of which limit; quotas are in wharfd.conf(5)");
}

static void check_sizes(struct wharf_cli_why *why)
{
    const struct wharf_cli_why_chunks *chunks = &why->chunks;
    char most[WHARF_CLI_SIZE_TEXT], allowed[WHARF_CLI_SIZE_TEXT];

    if (!why->is_chunked || chunks->n == 0)
        return;
    wharf_cli_size_text(chunks->most, most);
    if (chunks->n_over_job)
        change(say(why, "max_job",
                   "%" PRIu64 " of %" PRIu64 " chunks are larger than a job of this user's may be, "
                   "%s in and out: this process decodes them",
                   chunks->n_over_job, chunks->n,
                   wharf_cli_size_text(why->task->service->info.max_job_nbytes, allowed)),
               "max_job in [quota] of wharfd.conf, or wharf pack -b 128K");
    if (why->gpu_engine && chunks->n_over_gpu)
        change(say(why, "gpu_chunk",
                   "%" PRIu64 " of %" PRIu64
                   " chunks, of up to %s, are larger than chunk in [gpu], "
                   "%s: the CPU decodes them",
                   chunks->n_over_gpu, chunks->n, most,
                   wharf_cli_size_text(why->gpu_chunk_nbytes, allowed)),
               "wharf pack -b 128K; or chunk = %s, which takes twice that of the GPU's memory for "
               "each of %.0f warps",
               most, why->n_gpu_warps);
}

/* Fewer chunks than what decodes them. */
static void check_number(struct wharf_cli_why *why)
{
    uint64_t n = why->chunks.n;
    unsigned n_threads = why->task->options->n_threads;

    if (!why->is_chunked || n == 0)
        return;
    if (why->gpu_engine && why->n_gpu_warps > (double)n)
        change(say(why, "few_chunks",
                   "%" PRIu64 " chunks are fewer than the %.0f that the GPU decodes at a time", n,
                   why->n_gpu_warps),
               why->chunks.median > 32768 ? "wharf pack -b 32K makes more of them"
                                          : "files that are read together fill it");
    else if (n < n_threads)
        change(say(why, "few_chunks", "%" PRIu64 " chunks are fewer than %u threads", n, n_threads),
               "wharf pack -b with a smaller size makes more of them");
    if (why->chunks.n > 1 && why->chunks.median < 8192)
        change(say(why, "small_chunks",
                   "a half of the chunks have less than 8 KiB: each costs as much as it decodes"),
               "wharf pack -b 128K");
}

/* The daemon's own reasons for its choice of engines. */
static const struct {
    const char *reason, *what, *change;
} placements[] = {
    {"codec", "the GPU has no decoder for the codec",
     "wharf pack --codec with one that GPUs decode, such as lz4 or deflate"},
    {"not_pinned", "their memory was not ready for the GPU",
     "memory in [gpu] of wharfd.conf is the most that is pinned; a longer run has it pinned"},
    {"banned", "this user's jobs ended the GPU's worker too often",
     "the daemon's log says which; the ban ends by itself"},
    {"cpu_sooner", "the CPU would be done with them sooner than the GPU",
     "more chunks in flight, from more files or threads, make the GPU pay"},
    {"cpu_more", "the CPU alone passes more bytes than with the GPU",
     "nothing: it is the faster one here"},
};

static void check_placements(struct wharf_cli_why *why)
{
    double n_all = 0;

    for (unsigned i = 0; i < why->n_reasons; i++)
        n_all += why->reasons[i].n;
    for (size_t i = 0; why->gpu_engine && i < sizeof(placements) / sizeof(placements[0]); i++) {
        double n = reason_count(why, placements[i].reason);

        if (n > n_all / 20)
            change(say(why, placements[i].reason, "the CPU took %.0f of %.0f chunks: %s", n, n_all,
                       placements[i].what),
                   "%s", placements[i].change);
    }
}

/* Chunks that took the GPU longer than allowed. */
static void check_longest(struct wharf_cli_why *why)
{
    double n = value_of(why, "wharf_gpu_given_up_chunks_total");

    if (why->gpu_engine && why->is_chunked && n > 0)
        change(say(why, "longest",
                   "since the daemon started the GPU had %.0f chunks for longer than longest in "
                   "[gpu], %g s: the CPU decoded them",
                   n, why->gpu_longest_s),
               "smaller chunks, or a larger longest in wharfd.conf");
}

static void check_threads(struct wharf_cli_why *why)
{
    long n_cores = sysconf(_SC_NPROCESSORS_ONLN);
    double n_workers = value_of(why, "wharf_workers");

    if (wharf_cli_why_uses_daemon(why)) {
        if (n_workers < (double)n_cores)
            change(say(why, "workers", "the daemon decodes with %.0f of %ld processors", n_workers,
                       n_cores),
                   "workers, share and cpus in [cpu] of wharfd.conf");
        return;
    }
    if (why->task->options->n_threads < (unsigned long)n_cores)
        change(say(why, "threads", "%u threads of this process for %ld processors",
                   why->task->options->n_threads, n_cores),
               "--threads, or more processors allowed to it: taskset(1), cgroups");
}

/* Too few jobs to fill the GPU. */
static void check_queue(struct wharf_cli_why *why)
{
    double most = wharf_cli_why_quota(why, "max_jobs", false);
    double used = wharf_cli_why_quota(why, "max_jobs", true);

    if (why->task->service->wharf && most - used < why->n_gpu_warps)
        change(say(why, "max_jobs",
                   "this user may have %.0f jobs in flight, and has %.0f: fewer than the GPU "
                   "decodes at a time",
                   most, used),
               "max_jobs in [quota] of wharfd.conf");
}

void wharf_cli_why_check(struct wharf_cli_why *why)
{
    check_stream(why);
    check_daemon(why);
    check_sizes(why);
    check_number(why);
    check_placements(why);
    check_longest(why);
    check_queue(why);
    check_threads(why);
}
