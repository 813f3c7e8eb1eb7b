/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_row.h: how benchmark programs measure, and the one form in which they report.
 *
 * A program measures two sides (ours and a peer's) on the same data, turn by turn, so that what
 * else the machine does meanwhile hits both, and prints one row per comparison: one JSON object
 * on a line of standard output.  tests/bench/run-bench adds what is the same for all rows of a
 * run (date, machine, compiler, revision) and keeps them; results/README.md explains the members.
 */
#ifndef WHARF_TESTS_BENCH_ROW_H
#define WHARF_TESTS_BENCH_ROW_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Cannot go on: a benchmark has nobody to tell but who runs it. */
_Noreturn void bench_die(const char *what);

/* Lets this process open as many files as it may at most. */
void bench_raise_open_files(void);

/* Memory that there must be. */
void *bench_check(void *memory);

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

/* From now on by the processor time of the thread that asks, which other work on the machine does
 * not count for; rows then say so. */
void bench_compare_by_processor(void);

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

/* ---- how long single things take ----------------------------------------------------------- */

/* Microseconds: of all samples, and of the medians of ten parts of the time that they took. */
struct bench_spread {
    double min_us;
    double p50_us;
    double p99_us;
    double max_us;
    double p50_least_us;
    double p50_most_us;
};

/* Samples in the order in which they were taken. */
struct bench_samples {
    double *us;
    size_t n;
    size_t room;
};

/* Makes room for so many; ends the program when memory is out. */
struct bench_samples bench_samples_new(size_t room);
void bench_samples_free(struct bench_samples *samples);

/* Takes one; those that there is no room for are forgotten. */
void bench_samples_add(struct bench_samples *samples, double us);

/* n must not be 0.  Sorts the samples. */
struct bench_spread bench_samples_spread(struct bench_samples *samples);

/* Microseconds of a clock that only goes forward. */
double bench_now_us(void);

struct bench_latency_row {
    const char *what;
    const char *data; /* NULL: there is none */
    size_t n_samples;
    struct bench_spread times;
    const char *peer; /* NULL: there is none */
    struct bench_spread peer_times;
    const char *limited; /* the member that has a limit, "p50_us" say; NULL: none has */
    double limit_us;
    const char *more; /* further members, beginning with a comma; NULL: none */
};

void bench_print_latency_row(FILE *file, const struct bench_latency_row *row);

#endif
