/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/bench_row.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

enum { MAX_SIDES = 8, MAX_REPETITIONS = 1000 };

void bench_die(const char *what)
{
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
    exit(1);
}

void bench_raise_open_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        bench_die("its limit of open files");
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

void *bench_check(void *memory)
{
    if (!memory)
        bench_die("out of memory");
    return memory;
}

double bench_now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

/* What comparisons are measured by. */
static bool by_processor;

void bench_compare_by_processor(void)
{
    by_processor = true;
}

static double now_s(void)
{
    struct timespec now;

    if (!by_processor)
        return 1e-6 * bench_now_us();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_compare(const struct bench_side *sides, size_t n_sides, unsigned repetitions,
                   struct bench_times *ret_times)
{
    static double seconds[MAX_SIDES][MAX_REPETITIONS];

    assert(n_sides >= 1 && n_sides <= MAX_SIDES);
    assert(repetitions >= 1 && repetitions <= MAX_REPETITIONS);
    for (size_t i = 0; i < n_sides; i++)
        sides[i].run(sides[i].context);
    for (unsigned k = 0; k < repetitions; k++) {
        for (size_t i = 0; i < n_sides; i++) {
            double start = now_s();
            sides[i].run(sides[i].context);
            seconds[i][k] = now_s() - start;
        }
    }
    for (size_t i = 0; i < n_sides; i++) {
        qsort(seconds[i], repetitions, sizeof(double), compare_doubles);
        ret_times[i] = (struct bench_times){
            .min_s = seconds[i][0],
            .median_s = seconds[i][repetitions / 2],
            .max_s = seconds[i][repetitions - 1],
        };
    }
}

static void print_times(FILE *file, const char *prefix, const struct bench_times *times)
{
    fprintf(file, ", \"%smin_s\": %.6g, \"%smedian_s\": %.6g, \"%smax_s\": %.6g", prefix,
            times->min_s, prefix, times->median_s, prefix, times->max_s);
}

void bench_print_row(FILE *file, const struct bench_row *row)
{
    fprintf(file, "{\"what\": \"%s\", \"codec\": \"%s\", \"data\": \"%s\"", row->what, row->codec,
            row->data);
    if (row->level >= 0)
        fprintf(file, ", \"level\": %d", row->level);
    fprintf(file, ", \"threads\": %u, \"repetitions\": %u, \"chunk_nbytes\": %" PRIu64,
            row->threads, row->repetitions, row->chunk_nbytes);
    fprintf(file, ", \"in_nbytes\": %" PRIu64 ", \"out_nbytes\": %" PRIu64, row->in_nbytes,
            row->out_nbytes);
    if (by_processor)
        fprintf(file, ", \"clock\": \"processor\"");
    print_times(file, "", &row->times);
    fprintf(file, ", \"peer\": \"%s\"", row->peer);
    print_times(file, "peer_", &row->peer_times);
    /* Of the best runs: both sides undisturbed. */
    fprintf(file, ", \"gbps\": %.4g, \"peer_gbps\": %.4g, \"times_peer\": %.4g}\n",
            1e-9 * (double)row->out_nbytes / row->times.min_s,
            1e-9 * (double)row->out_nbytes / row->peer_times.min_s,
            row->peer_times.min_s / row->times.min_s);
    fflush(file);
}

/* ---- how long single things take ----------------------------------------------------------- */

enum { N_PARTS = 10 };

struct bench_samples bench_samples_new(size_t room)
{
    struct bench_samples samples = {.us = malloc(room * sizeof(double)), .room = room};

    if (!samples.us)
        abort();
    return samples;
}

void bench_samples_free(struct bench_samples *samples)
{
    free(samples->us);
    *samples = (struct bench_samples){0};
}

void bench_samples_add(struct bench_samples *samples, double us)
{
    if (samples->n < samples->room)
        samples->us[samples->n++] = us;
}

static void sort(double *us, size_t n)
{
    qsort(us, n, sizeof(us[0]), compare_doubles);
}

struct bench_spread bench_samples_spread(struct bench_samples *samples)
{
    struct bench_spread spread = {.p50_least_us = 1e300};
    double *us = samples->us;
    size_t n = samples->n;

    assert(n > 0);
    for (size_t part = 0; part < N_PARTS; part++) {
        size_t from = n * part / N_PARTS, to = n * (part + 1) / N_PARTS;
        if (from == to)
            continue;
        sort(us + from, to - from);
        double p50 = us[from + (to - from) / 2];
        spread.p50_least_us = p50 < spread.p50_least_us ? p50 : spread.p50_least_us;
        spread.p50_most_us = p50 > spread.p50_most_us ? p50 : spread.p50_most_us;
    }
    sort(us, n);
    spread.min_us = us[0];
    spread.p50_us = us[n / 2];
    spread.p99_us = us[n * 99 / 100];
    spread.max_us = us[n - 1];
    return spread;
}

static void print_spread(FILE *file, const char *prefix, const struct bench_spread *spread)
{
    fprintf(file, ", \"%smin_us\": %.2f, \"%sp50_us\": %.2f, \"%sp99_us\": %.2f", prefix,
            spread->min_us, prefix, spread->p50_us, prefix, spread->p99_us);
    fprintf(file, ", \"%smax_us\": %.2f, \"%sp50_least_us\": %.2f, \"%sp50_most_us\": %.2f", prefix,
            spread->max_us, prefix, spread->p50_least_us, prefix, spread->p50_most_us);
}

void bench_print_latency_row(FILE *file, const struct bench_latency_row *row)
{
    fprintf(file, "{\"what\": \"%s\"", row->what);
    if (row->data)
        fprintf(file, ", \"data\": \"%s\"", row->data);
    fprintf(file, ", \"samples\": %zu", row->n_samples);
    print_spread(file, "", &row->times);
    if (row->peer) {
        fprintf(file, ", \"peer\": \"%s\"", row->peer);
        print_spread(file, "peer_", &row->peer_times);
    }
    if (row->limited)
        fprintf(file, ", \"limited\": \"%s\", \"limit_us\": %.2f", row->limited, row->limit_us);
    fprintf(file, "%s}\n", row->more ? row->more : "");
    fflush(file);
}
