/* SPDX-License-Identifier: Apache-2.0 */
/* why_report.c: what `wharf why` prints. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "clientlib/cli/json.h"
#include "clientlib/cli/number.h"
#include "clientlib/cli/why.h"
#include "clientlib/wharf.h"

static const char *const quotas[] = {"max_jobs", "max_memory", "max_connections", "max_gpu_memory"};
enum { N_QUOTAS = sizeof(quotas) / sizeof(quotas[0]) };

static const struct wharf_info *info_of(const struct wharf_cli_why *why)
{
    return &why->task->service->info;
}

static uint64_t all_chunks(const struct wharf_cli_why_way *way)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < WHARF_CLI_WHY_MAX_ENGINES; i++)
        n += way->n_by[i];
    return n;
}

/* ---- for people ---------------------------------------------------------------------------- */

/* Names of files and a daemon's words may hold what a terminal takes for commands. */
static void print_clean(const char *title, const char *text)
{
    printf("%-9s ", title);
    for (; *text; text++)
        putchar(iscntrl((unsigned char)*text) ? '?' : *text);
    putchar('\n');
}

static void print_format(const struct wharf_cli_why *why)
{
    char packed[WHARF_CLI_SIZE_TEXT], unpacked[WHARF_CLI_SIZE_TEXT] = "?";
    uint64_t in_nbytes = why->task->input->nbytes;
    const char *before = " of ";
    bool names_codecs = why->kind == WHARF_SOURCE_CONTAINER; /* others are called for theirs */

    if (why->out_nbytes != WHARF_CLI_WHY_UNKNOWN)
        wharf_cli_size_text(why->out_nbytes, unpacked);
    printf("%-9s %s", "format", why->format);
    for (uint32_t codec = 0; names_codecs && codec < 64; codec++)
        if (why->codecs >> codec & 1) {
            printf("%s%s", before, wharf_codec_name(codec));
            before = ", ";
        }
    printf(": %s, unpacks to %s", wharf_cli_size_text(in_nbytes, packed), unpacked);
    if (why->out_nbytes != WHARF_CLI_WHY_UNKNOWN && in_nbytes)
        printf(", ratio %.2f", (double)why->out_nbytes / (double)in_nbytes);
    putchar('\n');
}

static void print_chunks(const struct wharf_cli_why *why)
{
    const struct wharf_cli_why_chunks *chunks = &why->chunks;
    const uint64_t sizes[] = {chunks->least, chunks->tenth, chunks->median, chunks->nine_tenths,
                              chunks->most};
    static const char *const names[] = {"least", "a tenth up to", "median", "nine tenths up to",
                                        "most"};
    char text[WHARF_CLI_SIZE_TEXT];

    if (chunks->n == 0) {
        printf("%-9s %s\n", "chunks", "none that its headers tell: it is decoded as a stream");
        return;
    }
    printf("%-9s %" PRIu64 "%s", "chunks", chunks->n,
           why->is_cut ? " and then something else" : "");
    for (size_t i = 0; chunks->out_nbytes != WHARF_CLI_WHY_UNKNOWN && i < 5; i++)
        printf("%s%s %s", i ? ", " : "; unpacked ", names[i], wharf_cli_size_text(sizes[i], text));
    putchar('\n');
}

/* What ran the chunks. */
static void print_shares(const struct wharf_cli_why_way *way)
{
    uint64_t n = all_chunks(way);
    const char *before = "";

    for (uint32_t i = 0; i < WHARF_CLI_WHY_MAX_ENGINES; i++)
        if (way->n_by[i]) {
            printf("%s%s %.1f %%", before, wharf_engine_name(i),
                   100 * (double)way->n_by[i] / (double)n);
            before = ", ";
        }
}

static void print_engine(const struct wharf_cli_why *why)
{
    printf("%-9s ", "engine");
    if (wharf_cli_why_uses_daemon(why)) {
        printf("the daemon: ");
        print_shares(&why->daemon);
        printf(" of the sample's chunks\n");
    } else
        printf("%s, in this process, %u threads\n",
               why->task->options->engine == WHARF_ENGINE_REFERENCE ? "reference" : "cpu",
               why->task->options->n_threads);
}

static void print_daemon(const struct wharf_cli_why *why)
{
    const struct wharf_info *info = info_of(why);
    char text[3][WHARF_CLI_SIZE_TEXT];
    const char *before = "";

    if (!why->task->service->wharf) {
        printf("%-9s none\n", "daemon");
        return;
    }
    printf("%-9s wharfd %s, engines", "daemon", info->daemon_version);
    for (uint32_t i = 0; i < 32; i++)
        if (info->engines >> i & 1) {
            printf("%s %s", before, wharf_engine_name(i));
            before = ",";
        }
    printf("; outputs in GPU memory: %s, compression: %s\n",
           info->max_gpu_chunk_nbytes ? "yes" : "no", info->max_compress_nbytes ? "yes" : "no");
    if (why->gpu_engine)
        printf("%-9s %s; chunk = %s, %.0f of them at a time, longest = %g s; large ones up to %s\n",
               "gpu", why->gpu_engine == WHARF_ENGINE_GPU ? "present" : "simt in its place",
               wharf_cli_size_text(why->gpu_chunk_nbytes, text[0]), why->n_gpu_warps,
               why->gpu_longest_s, wharf_cli_size_text(info->max_gpu_large_nbytes, text[1]));
    else
        printf("%-9s none\n", "gpu");
    printf("%-9s a job %s", "quotas", wharf_cli_size_text(info->max_job_nbytes, text[0]));
    for (unsigned i = 0; i < N_QUOTAS; i++) {
        double most = wharf_cli_why_quota(why, quotas[i], false);
        double used = wharf_cli_why_quota(why, quotas[i], true);
        if (isnan(most))
            continue;
        bool is_size = strstr(quotas[i], "memory") != NULL;
        if (is_size)
            printf(", %s %s of %s", quotas[i], wharf_cli_size_text((uint64_t)used, text[1]),
                   wharf_cli_size_text((uint64_t)most, text[2]));
        else
            printf(", %s %.0f of %.0f", quotas[i], used, most);
    }
    putchar('\n');
}

static void print_way(const char *name, const struct wharf_cli_why_way *way)
{
    if (!way->is_measured)
        return;
    printf("%-9s %-26s %8.3f GB/s (%.3f to %.3f)", "rate", name, way->speed.median, way->speed.min,
           way->speed.max);
    if (all_chunks(way)) {
        fputs("; ", stdout);
        print_shares(way);
    }
    putchar('\n');
}

static void print_rates(const struct wharf_cli_why *why)
{
    char text[WHARF_CLI_SIZE_TEXT], name[64];

    if (why->n_sample)
        printf("%-9s %zu chunks, %s of output, in memory\n", "sample", why->n_sample,
               wharf_cli_size_text(why->sample_nbytes, text));
    else
        printf("%-9s the first %s of output, read from the file as it is decoded\n", "sample",
               wharf_cli_size_text(why->sample_nbytes, text));
    snprintf(name, sizeof(name), "this process, %u threads", why->task->options->n_threads);
    print_way(name, &why->here);
    print_way("the daemon, as it chooses", &why->daemon);
    print_way("the daemon's GPU alone", &why->gpu);
    if (why->gpu_warp_bps > 0)
        printf("%-9s %-26s %8.3f GB/s, by the daemon's statistics\n", "rate",
               "a warp that was busy", why->gpu_warp_bps / 1e9);
}

void wharf_cli_why_print_text(const struct wharf_cli_why *why)
{
    print_clean("file", why->task->input->name);
    print_format(why);
    print_chunks(why);
    print_engine(why);
    print_daemon(why);
    print_rates(why);
    for (unsigned i = 0; i < why->n_limits; i++) {
        print_clean("limit", why->limits[i].what);
        print_clean("  change", why->limits[i].change);
    }
    if (why->n_limits == 0)
        printf("%-9s none that was found\n", "limit");
}

/* ---- JSON ---------------------------------------------------------------------------------- */

static void put_name(const char *before, const char *name)
{
    printf("%s\"%s\":", before, name);
}

static void put_string(const char *before, const char *name, const char *value)
{
    put_name(before, name);
    wharf_cli_json_string(stdout, value);
}

static void put_number(const char *before, const char *name, double value)
{
    put_name(before, name);
    wharf_cli_json_number(stdout, value);
}

static void put_size(const char *before, const char *name, uint64_t nbytes)
{
    put_number(before, name, nbytes == WHARF_CLI_WHY_UNKNOWN ? NAN : (double)nbytes);
}

static void put_names(const char *name, uint64_t bits, const char *(*name_of)(uint32_t))
{
    const char *before = "[";

    put_name(",", name);
    if (!bits)
        fputs(before, stdout);
    for (uint32_t i = 0; i < 64; i++)
        if (bits >> i & 1 && name_of(i)) {
            fputs(before, stdout);
            wharf_cli_json_string(stdout, name_of(i));
            before = ",";
        }
    putchar(']');
}

static void put_chunks(const struct wharf_cli_why *why)
{
    const struct wharf_cli_why_chunks *chunks = &why->chunks;
    bool is_known = chunks->n > 0 && chunks->out_nbytes != WHARF_CLI_WHY_UNKNOWN;

    put_number(",\"chunks\":{", "number", (double)chunks->n);
    put_size(",", "least", is_known ? chunks->least : WHARF_CLI_WHY_UNKNOWN);
    put_size(",", "tenth", is_known ? chunks->tenth : WHARF_CLI_WHY_UNKNOWN);
    put_size(",", "median", is_known ? chunks->median : WHARF_CLI_WHY_UNKNOWN);
    put_size(",", "nine_tenths", is_known ? chunks->nine_tenths : WHARF_CLI_WHY_UNKNOWN);
    put_size(",", "most", is_known ? chunks->most : WHARF_CLI_WHY_UNKNOWN);
    putchar('}');
}

static void put_way(const char *name, const struct wharf_cli_why_way *way)
{
    put_name(",", name);
    if (!way->is_measured) {
        fputs("null", stdout);
        return;
    }
    printf("{\"min\":%.4f,\"median\":%.4f,\"max\":%.4f,\"repetitions\":%u,\"chunks\":{",
           way->speed.min, way->speed.median, way->speed.max, way->speed.n_repetitions);
    const char *before = "";
    for (uint32_t i = 0; i < WHARF_CLI_WHY_MAX_ENGINES; i++)
        if (way->n_by[i]) {
            put_number(before, wharf_engine_name(i), (double)way->n_by[i]);
            before = ",";
        }
    fputs("}}", stdout);
}

static void put_daemon(const struct wharf_cli_why *why)
{
    const struct wharf_info *info = info_of(why);
    const char *before = "";

    if (!why->task->service->wharf) {
        fputs(",\"daemon\":null", stdout);
        return;
    }
    put_string(",\"daemon\":{", "version", info->daemon_version);
    put_names("engines", info->engines, wharf_engine_name);
    put_names("codecs", info->codecs, wharf_codec_name);
    printf(",\"gpu_memory\":%s,\"compresses\":%s", info->max_gpu_chunk_nbytes ? "true" : "false",
           info->max_compress_nbytes ? "true" : "false");
    put_number(",", "max_job_bytes", (double)info->max_job_nbytes);
    put_name(",", "gpu");
    if (why->gpu_engine) {
        put_number("{", "chunk_bytes", (double)why->gpu_chunk_nbytes);
        put_number(",", "large_bytes", (double)info->max_gpu_large_nbytes);
        put_number(",", "longest_seconds", why->gpu_longest_s);
        put_number(",", "chunks_at_a_time", why->n_gpu_warps);
        put_number(",", "warp_gb_s", why->gpu_warp_bps > 0 ? why->gpu_warp_bps / 1e9 : NAN);
        putchar('}');
    } else
        fputs("null", stdout);
    put_name(",", "quotas");
    putchar('{');
    for (unsigned i = 0; i < N_QUOTAS; i++) {
        double most = wharf_cli_why_quota(why, quotas[i], false);
        if (isnan(most))
            continue;
        put_name(before, quotas[i]);
        put_number("{", "limit", most);
        put_number(",", "used", wharf_cli_why_quota(why, quotas[i], true));
        putchar('}');
        before = ",";
    }
    fputs("}}", stdout);
}

void wharf_cli_why_print_json(const struct wharf_cli_why *why)
{
    put_string("{", "file", why->task->input->name);
    put_string(",", "format", why->format);
    put_names("codecs", why->codecs, wharf_codec_name);
    put_size(",", "in_nbytes", why->task->input->nbytes);
    put_size(",", "out_nbytes", why->out_nbytes);
    put_chunks(why);
    put_string(",", "decoder", wharf_cli_why_uses_daemon(why) ? "daemon" : "process");
    put_number(",", "threads", why->task->options->n_threads);
    put_daemon(why);
    put_number(",", "sample_chunks", (double)why->n_sample);
    put_number(",", "sample_nbytes", (double)why->sample_nbytes);
    put_way("process_gb_s", &why->here);
    put_way("daemon_gb_s", &why->daemon);
    put_way("gpu_gb_s", &why->gpu);
    fputs(",\"placements\":{", stdout);
    for (unsigned i = 0; i < why->n_reasons; i++)
        put_number(i ? "," : "", why->reasons[i].name, why->reasons[i].n);
    fputs("},\"limits\":[", stdout);
    for (unsigned i = 0; i < why->n_limits; i++) {
        put_string(i ? ",{" : "{", "limit", why->limits[i].name);
        put_string(",", "what", why->limits[i].what);
        put_string(",", "change", why->limits[i].change);
        putchar('}');
    }
    puts("]}");
}
