/* SPDX-License-Identifier: Apache-2.0 */
/* status_json.c: prints `wharf status --json`. */
#include "clientlib/cli/status_json.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "clientlib/cli/json.h"
#include "clientlib/cli/user_name.h"

/* ---- members ------------------------------------------------------------------------------- */

static void put_name(FILE *to, const char *before, const char *name)
{
    fprintf(to, "%s\"%s\":", before, name);
}

static void put_number(FILE *to, const char *before, const char *name, double value)
{
    put_name(to, before, name);
    wharf_cli_json_number(to, value);
}

static void put_string(FILE *to, const char *before, const char *name, const char *value)
{
    put_name(to, before, name);
    wharf_cli_json_string(to, value);
}

static void put_names(FILE *to, const char *name, uint64_t bits, const char *(*name_of)(uint32_t))
{
    const char *before = "";

    put_name(to, ",", name);
    fputc('[', to);
    for (uint32_t i = 0; i < 64; i++) {
        const char *one = bits >> i & 1 ? name_of(i) : NULL;
        if (!one)
            continue;
        fputs(before, to);
        wharf_cli_json_string(to, one);
        before = ",";
    }
    fputc(']', to);
}

/* ---- what the statistics say --------------------------------------------------------------- */

/* Of a tenant that is listed.  A family without samples is not there, and says 0. */
static double value_of_tenant(const struct wharf_cli_metrics *metrics, const char *family,
                              const char *tenant)
{
    return wharf_cli_metrics_sum(metrics, family, "", "tenant", tenant);
}

/* null for a family that this daemon does not have. */
static double value_of(const struct wharf_cli_metrics *metrics, const char *family)
{
    return wharf_cli_metrics_find(metrics, family)
               ? wharf_cli_metrics_sum(metrics, family, "", NULL, NULL)
               : NAN;
}

static double value_with(const struct wharf_cli_metrics *metrics, const char *family,
                         const char *label, const char *value)
{
    return wharf_cli_metrics_find(metrics, family)
               ? wharf_cli_metrics_sum(metrics, family, "", label, value)
               : NAN;
}

static const char *label_of_info(const struct wharf_cli_metrics *metrics, const char *label)
{
    const struct wharf_cli_family *about = wharf_cli_metrics_find(metrics, "wharf_info");

    return about && about->n_samples ? wharf_cli_sample_label(about->samples, label) : NULL;
}

static bool is_of(const struct wharf_cli_sample *sample, const char *tenant)
{
    const char *name = wharf_cli_sample_label(sample, "tenant");

    return name && strcmp(name, tenant) == 0;
}

static double count_ok(const struct wharf_cli_metrics *metrics, const char *tenant)
{
    const struct wharf_cli_family *jobs = wharf_cli_metrics_find(metrics, "wharf_jobs_total");
    double n_ok = 0;

    for (size_t i = 0; jobs && i < jobs->n_samples; i++) {
        const char *result = wharf_cli_sample_label(&jobs->samples[i], "result");
        if (result && strcmp(result, "ok") == 0 && is_of(&jobs->samples[i], tenant))
            n_ok += jobs->samples[i].value;
    }
    return n_ok;
}

/* ---- parts --------------------------------------------------------------------------------- */

static void put_daemon(FILE *to, const struct wharf_cli_metrics *metrics,
                       const struct wharf_info *info, const char *path)
{
    fputs("\"daemon\":{", to);
    put_string(to, "", "version", info->daemon_version);
    put_string(to, ",", "socket", path);
    put_number(to, ",", "uptime_seconds", value_of(metrics, "wharf_uptime_seconds"));
    put_string(to, ",", "io", label_of_info(metrics, "io"));
    put_names(to, "engines", info->engines, wharf_engine_name);
    put_names(to, "codecs", info->codecs, wharf_codec_name);
    put_number(to, ",", "workers", value_of(metrics, "wharf_workers"));
    put_number(to, ",", "workers_busy", value_of(metrics, "wharf_workers_busy"));
    put_number(to, ",", "jobs_queued", value_of(metrics, "wharf_jobs_queued"));
    put_number(to, ",", "max_job_bytes", (double)info->max_job_nbytes);
    put_number(to, ",", "max_batch_chunks", (double)info->max_batch_chunks);
    fputc('}', to);
}

static void put_gpus(FILE *to, const struct wharf_cli_metrics *metrics)
{
    const struct wharf_cli_family *up = wharf_cli_metrics_find(metrics, "wharf_gpu_up");
    const char *before = "";

    fputs(",\"gpus\":[", to);
    for (size_t i = 0; up && i < up->n_samples; i++) {
        const char *gpu = wharf_cli_sample_label(&up->samples[i], "gpu");
        if (!gpu)
            continue;
        fprintf(to, "%s{", before);
        put_string(to, "", "gpu", gpu);
        fprintf(to, ",\"up\":%s", up->samples[i].value > 0 ? "true" : "false");
        put_number(to, ",", "chunks_in_flight",
                   value_with(metrics, "wharf_gpu_chunks_in_flight", "gpu", gpu));
        put_number(to, ",", "chunks_at_a_time", value_with(metrics, "wharf_gpu_warps", "gpu", gpu));
        put_number(to, ",", "chunks", value_with(metrics, "wharf_gpu_chunks_total", "gpu", gpu));
        put_number(to, ",", "workers_ended",
                   value_with(metrics, "wharf_gpu_workers_ended_total", "gpu", gpu));
        fputc('}', to);
        before = ",";
    }
    fputc(']', to);
}

/* By their settings' names; none are told of tenants that are far from them. */
static void put_limits(FILE *to, const struct wharf_cli_metrics *metrics, const char *tenant)
{
    const struct wharf_cli_family *limits = wharf_cli_metrics_find(metrics, "wharf_limit");
    const char *before = "";

    fputs(",\"limits\":{", to);
    for (size_t i = 0; limits && i < limits->n_samples; i++) {
        const char *name = wharf_cli_sample_label(&limits->samples[i], "limit");
        if (!name || !is_of(&limits->samples[i], tenant))
            continue;
        fputs(before, to);
        wharf_cli_json_string(to, name);
        fputc(':', to);
        wharf_cli_json_number(to, limits->samples[i].value);
        before = ",";
    }
    fputc('}', to);
}

static void put_tenant(FILE *to, const struct wharf_cli_metrics *metrics, const char *tenant)
{
    static const struct {
        const char *name;
        const char *family;
    } sums[] = {
        {"connections", "wharf_connections"},
        {"memory_bytes", "wharf_memory_bytes"},
        {"refused", "wharf_refused_total"},
        {"input_bytes", "wharf_input_bytes_total"},
        {"output_bytes", "wharf_output_bytes_total"},
        {"busy_seconds", "wharf_engine_busy_seconds_total"},
    };
    double n_ok = count_ok(metrics, tenant);
    char user[WHARF_CLI_USER_NAME_NBYTES];

    fputc('{', to);
    put_string(to, "", "tenant", tenant);
    wharf_cli_user_name(tenant, user);
    put_string(to, ",", "user", user);
    put_number(to, ",", "jobs_ok", n_ok);
    put_number(to, ",", "jobs_bad", value_of_tenant(metrics, "wharf_jobs_total", tenant) - n_ok);
    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
        put_number(to, ",", sums[i].name, value_of_tenant(metrics, sums[i].family, tenant));
    put_limits(to, metrics, tenant);
    fputc('}', to);
}

static void put_tenants(FILE *to, const struct wharf_cli_metrics *metrics)
{
    /* A family of which each tenant has one sample. */
    const struct wharf_cli_family *listed = wharf_cli_metrics_find(metrics, "wharf_connections");
    const char *before = "";

    fputs(",\"tenants\":[", to);
    for (size_t i = 0; listed && i < listed->n_samples; i++) {
        const char *tenant = wharf_cli_sample_label(&listed->samples[i], "tenant");
        if (!tenant)
            continue;
        fputs(before, to);
        put_tenant(to, metrics, tenant);
        before = ",";
    }
    fputc(']', to);
    put_number(to, ",", "tenants_not_listed",
               value_of(metrics, "wharf_tenants") - value_of(metrics, "wharf_tenants_listed"));
}

void wharf_cli_status_print_json(FILE *to, const struct wharf_cli_metrics *metrics,
                                 const struct wharf_info *info, const char *path)
{
    fputc('{', to);
    put_daemon(to, metrics, info, path);
    put_gpus(to, metrics);
    put_tenants(to, metrics);
    fputs("}\n", to);
}
