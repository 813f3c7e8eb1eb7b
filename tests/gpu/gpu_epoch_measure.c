/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tests/gpu/gpu_epoch.h"

enum { WARM_UP = 100, MAX_RUNS = 1000 };

static void print_latency(const struct gpu_epoch *e, const char *mode, const char *what,
                          const struct gpu_latency *latency)
{
    printf("{\"peer\":\"wharf\",\"mode\":\"%s\",%s\"p50_us\":%.2f,\"p99_us\":%.2f,"
           "\"min_us\":%.2f,\"max_us\":%.1f,\"n\":%zu,%s}\n",
           mode, what, latency->p50_us, latency->p99_us, latency->min_us, latency->max_us,
           latency->n, gpu_epoch_facts(e));
    fflush(stdout);
}

/* ---- one item at a time --------------------------------------------------------------------- */

/* Spins for the completion, as a core does while work is under way. */
static struct wharf_work_completion round_trip(struct gpu_epoch *e,
                                               const struct wharf_work_item *item, double *ret_us)
{
    struct wharf_work_completion completion;
    double start = gpu_now_us();
    test_epoch_submit(&e->t, item);
    test_epoch_publish(&e->t);
    if (e->t.naps)
        completion = test_epoch_await(&e->t);
    else
        while (!test_epoch_reap(&e->t, &completion))
            ;
    *ret_us = gpu_now_us() - start;
    return completion;
}

void gpu_epoch_noop(struct gpu_epoch *e, size_t n)
{
    struct wharf_work_item noop = {.opcode = WHARF_WORK_NOOP};
    double *us = calloc(n, sizeof(*us));
    double unused;
    for (unsigned i = 0; i < WARM_UP; i++)
        round_trip(e, &noop, &unused);
    for (size_t i = 0; i < n; i++)
        round_trip(e, &noop, &us[i]);
    struct gpu_latency latency = gpu_latency_of(us, n);
    print_latency(e, "epoch-noop", "", &latency);
    free(us);
}

void gpu_epoch_noops(struct gpu_epoch *e, size_t n)
{
    enum { N_RUNS = 20 };
    struct wharf_work_item noops[64] = {{0}}; /* WHARF_WORK_NOOP */
    struct gpu_jobs jobs = {.items = noops, .n_jobs = 64};
    size_t n_passes = n / jobs.n_jobs;
    double us[N_RUNS];
    for (unsigned i = 0; i < N_RUNS; i++) {
        double start = gpu_now_us();
        e->wrong |= gpu_jobs_run(e, &jobs, n_passes, NULL, NULL) > 0;
        us[i] = gpu_now_us() - start;
    }
    struct gpu_latency spread = gpu_latency_of(us, N_RUNS);
    double all = (double)(n_passes * jobs.n_jobs);
    printf("{\"peer\":\"wharf\",\"mode\":\"epoch-noops\",\"n\":%zu,\"runs\":%d,\"Mps_median\":%.3f,"
           "\"Mps_min\":%.3f,\"Mps_max\":%.3f,%s}\n",
           n, N_RUNS, all / spread.p50_us, all / spread.max_us, all / spread.min_us,
           gpu_epoch_facts(e));
    fflush(stdout);
}

void gpu_epoch_lone(struct gpu_epoch *e, const struct gpu_source *source, size_t n)
{
    struct gpu_jobs jobs;
    struct gpu_epoch_times times = {0};
    double *us = calloc(n, sizeof(*us));
    double unused;
    size_t n_bad = 0;
    char what[400];

    gpu_jobs_new(e, &jobs, source, source->n_chunks);
    for (unsigned i = 0; i < WARM_UP; i++)
        round_trip(e, &jobs.items[i % jobs.n_jobs], &unused);
    for (size_t i = 0; i < n; i++) {
        struct wharf_work_completion c = round_trip(e, &jobs.items[i % jobs.n_jobs], &us[i]);
        n_bad += c.result != WHARF_OK;
        gpu_epoch_add_times(&times, &c);
    }
    size_t n_wrong = n + WARM_UP >= jobs.n_jobs ? gpu_jobs_count_wrong(e, &jobs, source) : 0;
    e->wrong |= n_bad || n_wrong;
    struct gpu_latency latency = gpu_latency_of(us, n);
    snprintf(what, sizeof(what), "\"codec\":\"%s\",\"data\":\"%s\",\"chunk\":%zu,\"wrong\":%zu,%s",
             source->codec->name, e->data_name, gpu_chunk_nbytes(source), n_bad + n_wrong,
             gpu_epoch_times_text(&times, n));
    print_latency(e, "epoch-lone", what, &latency);
    gpu_jobs_free(e, &jobs);
    free(us);
}

/* ---- cancels --------------------------------------------------------------------------------- */

/* From a cancel, some 50 to 550 us after the item, to its completion. */
void gpu_epoch_cancel(struct gpu_epoch *e, const struct gpu_source *source, size_t n)
{
    struct wharf_work_completion completion;
    struct gpu_jobs jobs;
    double *us = calloc(n, sizeof(*us));
    size_t n_cancelled = 0;
    char what[200];

    gpu_jobs_new(e, &jobs, source, source->n_chunks);
    for (size_t i = 0; i < n; i++) {
        double until = gpu_now_us() + 50 + (double)(i * 37 % 500);
        uint32_t index = test_epoch_submit(&e->t, &jobs.items[i % jobs.n_jobs]);
        test_epoch_publish(&e->t);
        while (gpu_now_us() < until)
            ;
        double start = gpu_now_us();
        test_epoch_cancel(&e->t, index);
        while (!test_epoch_reap(&e->t, &completion))
            ;
        us[i] = gpu_now_us() - start;
        n_cancelled += completion.result == WHARF_CANCELLED;
        e->wrong |= completion.result != WHARF_CANCELLED && completion.result != WHARF_OK;
    }
    struct gpu_latency latency = gpu_latency_of(us, n);
    snprintf(what, sizeof(what),
             "\"codec\":\"%s\",\"data\":\"%s\",\"chunk\":%zu,\"cancelled\":%zu,",
             source->codec->name, e->data_name, gpu_chunk_nbytes(source), n_cancelled);
    print_latency(e, "epoch-cancel", what, &latency);
    gpu_jobs_free(e, &jobs);
    free(us);
}

/* ---- many at once --------------------------------------------------------------------------- */

static double cpu_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

void gpu_epoch_flood(struct gpu_epoch *e, const struct gpu_source *source, size_t n_jobs,
                     unsigned n_runs)
{
    struct gpu_jobs jobs;
    double us[MAX_RUNS];
    size_t n_bad = 0;
    struct gpu_epoch_times times = {0};

    gpu_jobs_new(e, &jobs, source, n_jobs);
    n_bad += gpu_jobs_run(e, &jobs, 1, NULL, NULL);
    double cpu_before = cpu_s();
    n_bad += gpu_jobs_run(e, &jobs, n_runs, us, &times);
    double cpu = cpu_s() - cpu_before;
    size_t n_wrong = gpu_jobs_count_wrong(e, &jobs, source);
    e->wrong |= n_bad || n_wrong;
    struct gpu_latency spread = gpu_latency_of(us, n_runs);
    double nbytes = (double)n_jobs * (double)gpu_chunk_nbytes(source);
    printf("{\"peer\":\"wharf\",\"mode\":\"epoch-flood\",\"codec\":\"%s\",\"data\":\"%s\","
           "\"chunk\":%zu,\"chunks\":%zu,\"bytes\":%.0f,\"ratio\":%.3f,\"GBps_median\":%.2f,"
           "\"GBps_min\":%.2f,\"GBps_max\":%.2f,\"us_median\":%.1f,\"runs\":%u,"
           "\"cpu_s_per_GB\":%.4f,\"wrong\":%zu,%s%s}\n",
           source->codec->name, e->data_name, gpu_chunk_nbytes(source), n_jobs, nbytes,
           nbytes / (double)jobs.in_nbytes, nbytes / spread.p50_us / 1e3,
           nbytes / spread.max_us / 1e3, nbytes / spread.min_us / 1e3, spread.p50_us, n_runs,
           cpu / (nbytes * n_runs / 1e9), n_bad + n_wrong,
           gpu_epoch_times_text(&times, n_jobs * n_runs), gpu_epoch_facts(e));
    fflush(stdout);
    gpu_jobs_free(e, &jobs);
}
