/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/bench/bench_row.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_SIDES = 8, MAX_REPETITIONS = 1000 };

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
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
    print_times(file, "", &row->times);
    fprintf(file, ", \"peer\": \"%s\"", row->peer);
    print_times(file, "peer_", &row->peer_times);
    /* Of the best runs: both sides undisturbed. */
    fprintf(file, ", \"gbps\": %.4g, \"peer_gbps\": %.4g, \"ratio\": %.4g}\n",
            1e-9 * (double)row->out_nbytes / row->times.min_s,
            1e-9 * (double)row->out_nbytes / row->peer_times.min_s,
            row->peer_times.min_s / row->times.min_s);
    fflush(file);
}
