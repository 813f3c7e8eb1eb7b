/* SPDX-License-Identifier: Apache-2.0 */
/* tenant_table.c: the table of tenants of `wharf status` and `wharf top`. */
#include "clientlib/cli/tenant_table.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "clientlib/cli/number.h"
#include "clientlib/cli/user_name.h"

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

/* Of all tenants that are told of. */
static double sum_of(const struct wharf_cli_metrics *metrics, const char *family)
{
    return wharf_cli_metrics_sum(metrics, family, "", NULL, NULL);
}

static double of_gpu(const struct wharf_cli_metrics *metrics, const char *family, const char *gpu)
{
    return wharf_cli_metrics_sum(metrics, family, "", "gpu", gpu);
}

static const char *plural(double n)
{
    return n == 1 ? "" : "s";
}

static const char *size_of(const struct wharf_cli_metrics *metrics, const char *family,
                           char text[WHARF_CLI_SIZE_TEXT])
{
    double nbytes = value_of(metrics, family);

    return wharf_cli_size_text(nbytes > 0 && nbytes < 1e19 ? (uint64_t)nbytes : 0, text);
}

/* What was read ahead for clients, if anything was. */
static void print_ahead(const struct wharf_cli_metrics *metrics)
{
    char ahead[WHARF_CLI_SIZE_TEXT], hits[WHARF_CLI_SIZE_TEXT], waste[WHARF_CLI_SIZE_TEXT];

    if (value_of(metrics, "wharf_file_ahead_bytes_total") <= 0)
        return;
    printf("; %s read ahead, %s of it used, %s in vain",
           size_of(metrics, "wharf_file_ahead_bytes_total", ahead),
           size_of(metrics, "wharf_file_ahead_hit_bytes_total", hits),
           size_of(metrics, "wharf_file_ahead_waste_bytes_total", waste));
}

/* A line, if clients have had any files.  Returns how many lines. */
static unsigned print_files(const struct wharf_cli_metrics *metrics)
{
    double n_files = value_of(metrics, "wharf_files");
    double n_processes = value_of(metrics, "wharf_file_processes");
    double n_hung = value_of(metrics, "wharf_hung_files");
    char in[WHARF_CLI_SIZE_TEXT], out[WHARF_CLI_SIZE_TEXT], hung[48] = "";

    if (n_processes <= 0 && value_of(metrics, "wharf_file_input_bytes_total") <= 0 &&
        value_of(metrics, "wharf_file_output_bytes_total") <= 0)
        return 0;
    if (n_hung > 0)
        snprintf(hung, sizeof(hung), ", %.0f hung", n_hung);
    printf("%-9s%.0f file%s of clients, %.0f process%s for them%s, %s read, %s written", "files",
           n_files, plural(n_files), n_processes, n_processes == 1 ? "" : "es", hung,
           size_of(metrics, "wharf_file_input_bytes_total", in),
           size_of(metrics, "wharf_file_output_bytes_total", out));
    print_ahead(metrics);
    putchar('\n');
    return 1;
}

/* A line for a GPU that has compressed.  Returns how many lines. */
static unsigned print_compressing(const struct wharf_cli_metrics *metrics, const char *gpu)
{
    double nbytes = of_gpu(metrics, "wharf_gpu_compressed_in_bytes_total", gpu);
    char text[WHARF_CLI_SIZE_TEXT];

    if (of_gpu(metrics, "wharf_gpu_compressed_chunks_total", gpu) <= 0)
        return 0;
    printf("%-9scompressed %.0f chunks, %s; in the background %.0f of %.0f at a time, "
           "%.0f withdrawn, throttled %.0f times\n",
           "", of_gpu(metrics, "wharf_gpu_compressed_chunks_total", gpu),
           wharf_cli_size_text(nbytes < 1e19 ? (uint64_t)nbytes : 0, text),
           of_gpu(metrics, "wharf_gpu_idle_work_running", gpu),
           of_gpu(metrics, "wharf_gpu_idle_work_allowed", gpu),
           of_gpu(metrics, "wharf_gpu_idle_work_withdrawn_total", gpu),
           of_gpu(metrics, "wharf_gpu_idle_work_throttled_total", gpu));
    return 1;
}

/* A line for each GPU, and one more for those that have compressed.  Returns how many. */
static unsigned print_gpus(const struct wharf_cli_metrics *metrics)
{
    const struct wharf_cli_family *up = wharf_cli_metrics_find(metrics, "wharf_gpu_up");
    unsigned n = 0;

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
        n += 1 + print_compressing(metrics, gpu);
    }
    return n;
}

/* A line where chunks were searched for among those that GPUs keep.  Returns how many lines. */
static unsigned print_memo(const struct wharf_cli_metrics *metrics)
{
    double n_looked = sum_of(metrics, "wharf_memo_lookups_total");
    double n_hits = sum_of(metrics, "wharf_memo_hits_total");

    if (n_looked <= 0)
        return 0;
    printf("%-9s%.0f of %.0f chunks copied instead of decoded, %.1f %%; %.0f kept, %.0f evicted\n",
           "memo", n_hits, n_looked, 100 * n_hits / n_looked,
           sum_of(metrics, "wharf_memo_kept_total"), sum_of(metrics, "wharf_memo_evicted_total"));
    return 1;
}

unsigned wharf_cli_daemon_summary_print(const struct wharf_cli_metrics *metrics,
                                        const struct wharf_info *info, const char *path)
{
    enum { N_OTHER_LINES = 5 };
    const struct wharf_cli_family *about = wharf_cli_metrics_find(metrics, "wharf_info");
    const char *io =
        about && about->n_samples ? wharf_cli_sample_label(about->samples, "io") : NULL;
    char job[WHARF_CLI_SIZE_TEXT];
    unsigned n_more;

    printf("%-9swharfd %s at %s, up ", "daemon", info->daemon_version, path);
    print_duration(value_of(metrics, "wharf_uptime_seconds"));
    putchar('\n');
    print_names("engines", info->engines, wharf_engine_name);
    print_names("codecs", info->codecs, wharf_codec_name);
    printf("%-9s%.0f of %.0f workers busy, %.0f jobs queued%s\n", "work",
           value_of(metrics, "wharf_workers_busy"), value_of(metrics, "wharf_workers"),
           value_of(metrics, "wharf_jobs_queued"),
           io && strcmp(io, "epoll") == 0 ? "; without io_uring" : "");
    n_more = print_gpus(metrics);
    n_more += print_memo(metrics);
    n_more += print_files(metrics);
    printf("%-9sa job of yours %s, a batch %llu chunks\n", "limits",
           wharf_cli_size_text(info->max_job_nbytes, job),
           (unsigned long long)info->max_batch_chunks);
    return N_OTHER_LINES + n_more;
}

/* ---- tenants ------------------------------------------------------------------------------- */

struct counts {
    double ok, failed, refused, in_nbytes, out_nbytes, busy_s;
};

/* A tenant with what is shown of it.  Limits are 0 where the daemon tells none: of tenants that are
 * far from them. */
struct tenant {
    const char *name;
    double n_connections, max_connections, memory_nbytes, max_memory_nbytes;
    struct counts counts;
};

/* By name: all of them, or the busiest of very many. */
struct tenants {
    struct tenant *items;
    size_t n;
    double n_others;
};

static int compare(const void *a, const void *b)
{
    return strcmp(((const struct tenant *)a)->name, ((const struct tenant *)b)->name);
}

static struct tenant *find(const struct tenants *tenants, const char *name)
{
    const struct tenant wanted = {.name = name};

    return name && tenants->n > 0
               ? bsearch(&wanted, tenants->items, tenants->n, sizeof(wanted), compare)
               : NULL;
}

static void count_job(struct tenant *tenant, const struct wharf_cli_sample *sample)
{
    const char *result = wharf_cli_sample_label(sample, "result");

    if (result)
        *(strcmp(result, "ok") == 0 ? &tenant->counts.ok : &tenant->counts.failed) += sample->value;
}

static void count_connections(struct tenant *tenant, const struct wharf_cli_sample *sample)
{
    tenant->n_connections += sample->value;
}

static void count_memory(struct tenant *tenant, const struct wharf_cli_sample *sample)
{
    tenant->memory_nbytes += sample->value;
}

static void count_refused(struct tenant *tenant, const struct wharf_cli_sample *sample)
{
    tenant->counts.refused += sample->value;
}

static void take_limit(struct tenant *tenant, const struct wharf_cli_sample *sample)
{
    const char *limit = wharf_cli_sample_label(sample, "limit");

    if (limit && strcmp(limit, "max_connections") == 0)
        tenant->max_connections = sample->value;
    else if (limit && strcmp(limit, "max_memory") == 0)
        tenant->max_memory_nbytes = sample->value;
}

static void count_in(struct tenant *tenant, const struct wharf_cli_sample *sample)
{
    tenant->counts.in_nbytes += sample->value;
}

static void count_out(struct tenant *tenant, const struct wharf_cli_sample *sample)
{
    tenant->counts.out_nbytes += sample->value;
}

static void count_busy(struct tenant *tenant, const struct wharf_cli_sample *sample)
{
    tenant->counts.busy_s += sample->value;
}

static const struct {
    const char *family;
    void (*count)(struct tenant *tenant, const struct wharf_cli_sample *sample);
} columns[] = {
    {"wharf_connections", count_connections},
    {"wharf_memory_bytes", count_memory},
    {"wharf_limit", take_limit},
    {"wharf_refused_total", count_refused},
    {"wharf_jobs_total", count_job},
    {"wharf_input_bytes_total", count_in},
    {"wharf_output_bytes_total", count_out},
    {"wharf_engine_busy_seconds_total", count_busy},
};

/* Each sample is looked at once. */
static void count_column(const struct wharf_cli_metrics *metrics, size_t column,
                         struct tenants *tenants)
{
    const struct wharf_cli_family *family = wharf_cli_metrics_find(metrics, columns[column].family);

    for (size_t i = 0; family && i < family->n_samples; i++) {
        struct tenant *tenant =
            find(tenants, wharf_cli_sample_label(&family->samples[i], "tenant"));
        if (tenant)
            columns[column].count(tenant, &family->samples[i]);
    }
}

/* Without memory there are none. */
static struct tenants tenants_of(const struct wharf_cli_metrics *metrics)
{
    /* A family of which each tenant has one sample. */
    const struct wharf_cli_family *family = wharf_cli_metrics_find(metrics, "wharf_connections");
    struct tenants tenants = {NULL, 0, 0};

    if (family)
        tenants.items = calloc(family->n_samples, sizeof(*tenants.items));
    for (size_t i = 0; tenants.items && i < family->n_samples; i++) {
        const char *name = wharf_cli_sample_label(&family->samples[i], "tenant");
        if (name)
            tenants.items[tenants.n++].name = name;
    }
    if (tenants.n > 1)
        qsort(tenants.items, tenants.n, sizeof(*tenants.items), compare);
    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        count_column(metrics, i, &tenants);
    tenants.n_others =
        value_of(metrics, "wharf_tenants") - value_of(metrics, "wharf_tenants_listed");
    return tenants;
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
        .refused = rate(now->refused, before->refused, seconds),
        .in_nbytes = rate(now->in_nbytes, before->in_nbytes, seconds),
        .out_nbytes = rate(now->out_nbytes, before->out_nbytes, seconds),
        .busy_s = rate(now->busy_s, before->busy_s, seconds),
    };
}

static uint64_t whole(double value)
{
    return value > 0 && value < 1e19 ? (uint64_t)value : 0;
}

/* Who was not listed earlier has come since, or may have been there: then nothing is known. */
static struct counts rates_since(const struct tenant *tenant, const struct tenants *before,
                                 double seconds)
{
    static const struct counts none;
    const struct tenant *earlier = find(before, tenant->name);
    const struct counts *from = &none;

    if (earlier)
        from = &earlier->counts;
    else if (before->n_others > 0)
        from = &tenant->counts;
    return rates_of(&tenant->counts, from, seconds);
}

static void write_connections(const struct tenant *tenant, char *text, size_t nbytes)
{
    if (tenant->max_connections > 0)
        snprintf(text, nbytes, "%.0f/%.0f", tenant->n_connections, tenant->max_connections);
    else
        snprintf(text, nbytes, "%.0f", tenant->n_connections);
}

static void write_memory(const struct tenant *tenant, char *text, size_t nbytes)
{
    char used[WHARF_CLI_SIZE_TEXT], most[WHARF_CLI_SIZE_TEXT];

    wharf_cli_size_text(whole(tenant->memory_nbytes), used);
    if (tenant->max_memory_nbytes > 0)
        snprintf(text, nbytes, "%s/%s", used,
                 wharf_cli_size_text(whole(tenant->max_memory_nbytes), most));
    else
        snprintf(text, nbytes, "%s", used);
}

static void print_tenant(const struct tenant *tenant, struct counts counts)
{
    char in[WHARF_CLI_SIZE_TEXT], out[WHARF_CLI_SIZE_TEXT];
    char connections[32], memory[2 * WHARF_CLI_SIZE_TEXT];
    char name[32], user[WHARF_CLI_USER_NAME_NBYTES];

    snprintf(name, sizeof(name), "%s", tenant->name);
    for (char *at = name; *at; at++)
        *at = (unsigned char)*at < ' ' || *at == 0x7f ? '?' : *at;
    wharf_cli_user_name(tenant->name, user);
    write_connections(tenant, connections, sizeof(connections));
    write_memory(tenant, memory, sizeof(memory));
    printf("%-18s %9s %20s %10.0f %8.0f %8.0f %10s %10s %8.2f%s%s\n", name, connections, memory,
           counts.ok, counts.failed, counts.refused,
           wharf_cli_size_text(whole(counts.in_nbytes), in),
           wharf_cli_size_text(whole(counts.out_nbytes), out), counts.busy_s, user[0] ? "  " : "",
           user);
}

static void print_head(bool is_rate)
{
    static const char format[] = "%-18s %9s %20s %10s %8s %8s %10s %10s %8s  %s\n";

    if (is_rate)
        printf(format, "TENANT", "CONN/MAX", "MEMORY/MAX", "JOBS/s", "BAD/s", "REFUSED/s", "IN/s",
               "OUT/s", "CORES", "USER");
    else
        printf(format, "TENANT", "CONN/MAX", "MEMORY/MAX", "JOBS", "BAD", "REFUSED", "IN", "OUT",
               "BUSY s", "USER");
}

/* A line of the table. */
struct row {
    const struct tenant *tenant;
    struct counts counts;
    size_t place; /* among those that the daemon lists */
};

/* The busiest first. */
static int compare_rows(const void *a, const void *b)
{
    const struct row *rows[] = {a, b};
    double busy[] = {rows[0]->counts.busy_s, rows[1]->counts.busy_s};

    if (busy[0] != busy[1])
        return busy[0] > busy[1] ? -1 : 1;
    return (rows[0]->place > rows[1]->place) - (rows[0]->place < rows[1]->place);
}

/* Fills rows[tenants->n], in the daemon's order.  Returns the number of rows. */
static size_t make_rows(const struct wharf_cli_metrics *metrics, const struct tenants *tenants,
                        const struct tenants *earlier, double seconds, struct row *rows)
{
    const struct wharf_cli_family *listed = wharf_cli_metrics_find(metrics, "wharf_connections");
    size_t n = 0;

    for (size_t i = 0; listed && i < listed->n_samples && n < tenants->n; i++) {
        const struct tenant *tenant =
            find(tenants, wharf_cli_sample_label(&listed->samples[i], "tenant"));
        if (!tenant)
            continue;
        rows[n] = (struct row){tenant, tenant->counts, n};
        if (earlier)
            rows[n].counts = rates_since(tenant, earlier, seconds);
        n++;
    }
    return n;
}

/* How many of n tenants fit, beside the head and a last line about the others. */
static size_t n_shown(size_t n, double n_others, unsigned most_lines)
{
    size_t room = most_lines > 2 ? most_lines - 2 : 0;

    if (!most_lines || (n_others <= 0 && n + 1 <= most_lines))
        return n;
    return n < room ? n : room;
}

void wharf_cli_tenant_table_print(const struct wharf_cli_metrics *metrics,
                                  const struct wharf_cli_metrics *before, double seconds,
                                  unsigned most_lines)
{
    struct tenants tenants = tenants_of(metrics);
    struct tenants earlier = {NULL, 0, 0};
    struct row *rows = calloc(tenants.n + 1, sizeof(*rows)); /* without memory there are none */
    size_t n_rows = 0, n;

    if (before)
        earlier = tenants_of(before);
    if (rows)
        n_rows = make_rows(metrics, &tenants, before ? &earlier : NULL, seconds, rows);
    n = n_shown(n_rows, tenants.n_others, most_lines);
    if (n < n_rows)
        qsort(rows, n_rows, sizeof(*rows), compare_rows);
    print_head(before != NULL);
    for (size_t i = 0; i < n; i++)
        print_tenant(rows[i].tenant, rows[i].counts);
    if (tenants.n_others + (double)(n_rows - n) > 0 && most_lines != 1)
        printf("and %.0f more, less busy\n", tenants.n_others + (double)(n_rows - n));
    free(rows);
    free(tenants.items);
    free(earlier.items);
}
