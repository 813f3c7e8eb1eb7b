/* SPDX-License-Identifier: Apache-2.0 */
#include "clientlib/cli/tenant_table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/number.h"

/* ---- the daemon ---------------------------------------------------------------------------- */

static double value_of(const struct wharf_cli_metrics *metrics, const char *family)
{
    return wharf_cli_metrics_sum(metrics, family, "", NULL, NULL);
}

static void print_duration(double seconds)
{
    uint64_t s = seconds > 0 && seconds < 1e15 ? (uint64_t)seconds : 0;

    if (s >= 86400)
        printf("%llu d %llu h", (unsigned long long)s / 86400, (unsigned long long)s / 3600 % 24);
    else if (s >= 3600)
        printf("%llu h %llu min", (unsigned long long)s / 3600, (unsigned long long)s / 60 % 60);
    else if (s >= 60)
        printf("%llu min %llu s", (unsigned long long)s / 60, (unsigned long long)s % 60);
    else
        printf("%llu s", (unsigned long long)s);
}

static void print_names(const char *title, uint64_t bits, const char *(*name_of)(uint32_t))
{
    const char *separator = "";

    printf("%-9s", title);
    for (uint32_t i = 0; i < 64; i++) {
        const char *name = bits >> i & 1 ? name_of(i) : NULL;
        if (!name)
            continue;
        printf("%s%s", separator, name);
        separator = ", ";
    }
    putchar('\n');
}

static double of_gpu(const struct wharf_cli_metrics *metrics, const char *family, const char *gpu)
{
    return wharf_cli_metrics_sum(metrics, family, "", "gpu", gpu);
}

/* A line for each GPU. */
static void print_gpus(const struct wharf_cli_metrics *metrics)
{
    const struct wharf_cli_family *up = wharf_cli_metrics_find(metrics, "wharf_gpu_up");

    for (size_t i = 0; up && i < up->n_samples; i++) {
        const char *gpu = wharf_cli_sample_label(&up->samples[i], "gpu");
        if (!gpu)
            continue;
        printf(
            "gpu %-5s%s, %.0f chunks there of %.0f at a time, %.0f decoded, %.0f workers ended\n",
            gpu, up->samples[i].value > 0 ? "up" : "down",
            of_gpu(metrics, "wharf_gpu_chunks_in_flight", gpu),
            of_gpu(metrics, "wharf_gpu_warps", gpu), of_gpu(metrics, "wharf_gpu_chunks_total", gpu),
            of_gpu(metrics, "wharf_gpu_workers_ended_total", gpu));
    }
}

void wharf_cli_daemon_summary_print(const struct wharf_cli_metrics *metrics,
                                    const struct wharf_info *info, const char *path)
{
    const struct wharf_cli_family *about = wharf_cli_metrics_find(metrics, "wharf_info");
    const char *io =
        about && about->n_samples ? wharf_cli_sample_label(about->samples, "io") : NULL;
    char job[WHARF_CLI_SIZE_TEXT];

    printf("%-9swharfd %s at %s, up ", "daemon", info->daemon_version, path);
    print_duration(value_of(metrics, "wharf_uptime_seconds"));
    putchar('\n');
    print_names("engines", info->engines, wharf_engine_name);
    print_names("codecs", info->codecs, wharf_codec_name);
    printf("%-9s%.0f of %.0f workers busy, %.0f jobs queued%s\n", "work",
           value_of(metrics, "wharf_workers_busy"), value_of(metrics, "wharf_workers"),
           value_of(metrics, "wharf_jobs_queued"),
           io && strcmp(io, "epoll") == 0 ? "; without io_uring" : "");
    print_gpus(metrics);
    printf("%-9sa job of yours %s, a batch %llu chunks\n", "limits",
           wharf_cli_size_text(info->max_job_nbytes, job),
           (unsigned long long)info->max_batch_chunks);
}

/* ---- tenants ------------------------------------------------------------------------------- */

static double of_tenant(const struct wharf_cli_metrics *metrics, const char *family,
                        const char *tenant)
{
    return wharf_cli_metrics_sum(metrics, family, "", "tenant", tenant);
}

/* Jobs with result OK, and all others. */
static void count_jobs(const struct wharf_cli_metrics *metrics, const char *tenant, double *ret_ok,
                       double *ret_failed)
{
    const struct wharf_cli_family *jobs = wharf_cli_metrics_find(metrics, "wharf_jobs_total");

    *ret_ok = *ret_failed = 0;
    for (size_t i = 0; jobs && i < jobs->n_samples; i++) {
        const char *whose = wharf_cli_sample_label(&jobs->samples[i], "tenant");
        const char *result = wharf_cli_sample_label(&jobs->samples[i], "result");

        if (!whose || !result || strcmp(whose, tenant) != 0)
            continue;
        *(strcmp(result, "ok") == 0 ? ret_ok : ret_failed) += jobs->samples[i].value;
    }
}

struct counts {
    double ok, failed, in_nbytes, out_nbytes, busy_s;
};

static struct counts counts_of(const struct wharf_cli_metrics *metrics, const char *tenant)
{
    struct counts counts;

    count_jobs(metrics, tenant, &counts.ok, &counts.failed);
    counts.in_nbytes = of_tenant(metrics, "wharf_input_bytes_total", tenant);
    counts.out_nbytes = of_tenant(metrics, "wharf_output_bytes_total", tenant);
    counts.busy_s = of_tenant(metrics, "wharf_engine_busy_seconds_total", tenant);
    return counts;
}

/* A daemon that was started anew counts from 0. */
static double rate(double now, double before, double seconds)
{
    return (now >= before ? now - before : now) / seconds;
}

static struct counts rates_of(const struct counts *now, const struct counts *before, double seconds)
{
    return (struct counts){
        .ok = rate(now->ok, before->ok, seconds),
        .failed = rate(now->failed, before->failed, seconds),
        .in_nbytes = rate(now->in_nbytes, before->in_nbytes, seconds),
        .out_nbytes = rate(now->out_nbytes, before->out_nbytes, seconds),
        .busy_s = rate(now->busy_s, before->busy_s, seconds),
    };
}

static uint64_t whole(double value)
{
    return value > 0 && value < 1e19 ? (uint64_t)value : 0;
}

static void print_tenant(const struct wharf_cli_metrics *metrics,
                         const struct wharf_cli_metrics *before, double seconds, const char *tenant)
{
    struct counts counts = counts_of(metrics, tenant);
    char in[WHARF_CLI_SIZE_TEXT], out[WHARF_CLI_SIZE_TEXT], memory[WHARF_CLI_SIZE_TEXT];
    char name[32];

    if (before) {
        struct counts earlier = counts_of(before, tenant);
        counts = rates_of(&counts, &earlier, seconds);
    }
    snprintf(name, sizeof(name), "%s", tenant);
    for (char *at = name; *at; at++)
        *at = (unsigned char)*at < ' ' || *at == 0x7f ? '?' : *at;
    printf("%-20s %6.0f %12s %12.0f %9.0f %12s %12s %8.2f\n", name,
           of_tenant(metrics, "wharf_connections", tenant),
           wharf_cli_size_text(whole(of_tenant(metrics, "wharf_memory_bytes", tenant)), memory),
           counts.ok, counts.failed, wharf_cli_size_text(whole(counts.in_nbytes), in),
           wharf_cli_size_text(whole(counts.out_nbytes), out), counts.busy_s);
}

void wharf_cli_tenant_table_print(const struct wharf_cli_metrics *metrics,
                                  const struct wharf_cli_metrics *before, double seconds)
{
    /* A family of which each tenant has one sample. */
    const struct wharf_cli_family *tenants = wharf_cli_metrics_find(metrics, "wharf_connections");

    if (before)
        printf("%-20s %6s %12s %12s %9s %12s %12s %8s\n", "TENANT", "CONN", "MEMORY", "JOBS/s",
               "BAD/s", "IN/s", "OUT/s", "CORES");
    else
        printf("%-20s %6s %12s %12s %9s %12s %12s %8s\n", "TENANT", "CONN", "MEMORY", "JOBS", "BAD",
               "IN", "OUT", "BUSY s");
    for (size_t i = 0; tenants && i < tenants->n_samples; i++) {
        const char *tenant = wharf_cli_sample_label(&tenants->samples[i], "tenant");
        if (tenant)
            print_tenant(metrics, before, seconds, tenant);
    }
}
