/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_row.h: how benchmark programs measure, and the one form in which they report.
 *
 * A program measures two sides (ours and a peer's) on the same data, turn by turn, so that what
 * else the machine does meanwhile hits both, and prints one row per comparison: one JSON object
 * on a line of standard output.  tests/bench/run-bench adds what is the same for all rows of a
 * run (date, machine, compiler, revision) and keeps them; tests/README.md explains the members.
 */
#ifndef WHARF_TESTS_BENCH_ROW_H
#define WHARF_TESTS_BENCH_ROW_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Seconds that one run took: the shortest, the middle and the longest of all repetitions. */
struct bench_times {
    double min_s;
    double median_s;
    double max_s;
};

struct bench_side {
    void (*run)(void *context);
    void *context;
};

/*
 * Runs every side once to warm up, then all of them in turn, repetitions times (1 to 1000), and
 * fills ret_times[i] for sides[i].  n_sides is 1 to 8.
 */
void bench_compare(const struct bench_side *sides, size_t n_sides, unsigned repetitions,
                   struct bench_times *ret_times);

struct bench_row {
    const char *what;  /* what is measured: "decode", "cat", ... */
    const char *codec; /* by its name in the codec list */
    const char *data;  /* name of the data set */
    int level;         /* of the encoder that made the input; -1: does not matter */
    unsigned threads;
    unsigned repetitions;
    uint64_t chunk_nbytes; /* output of one chunk; 0: not in chunks */
    uint64_t in_nbytes;    /* compressed size of all that one run decodes */
    uint64_t out_nbytes;   /* its size after decoding: what GB/s count */
    const char *peer;      /* name and version */
    struct bench_times times;
    struct bench_times peer_times;
};

/* Prints the row; its strings hold nothing that JSON would need escaped. */
void bench_print_row(FILE *file, const struct bench_row *row);

#endif
