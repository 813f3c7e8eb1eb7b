/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.c: columns whose statistics follow what papers tell of their data, as its help says.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/test_help.h"

static const char help[] =
    "usage: columns NAME NBYTES SEED > FILE\n"
    "\n"
    "Makes columns whose statistics follow what the CODAG and Recoil papers tell of their\n"
    "data: run lengths, value ranges, entropies.  The same name, size and seed always give\n"
    "the same bytes.\n"
    "\n"
    "  mc0     uint64  sorted loan numbers in runs of about 30\n"
    "  mc3     float   interest rates in runs of about 40\n"
    "  tpc     int8    passenger counts, drawn one by one\n"
    "  tpt     char    payment types as text, \"CRD\\n\" and others\n"
    "  cd2     uint32  log-uniform counts between long runs of zero\n"
    "  tc2     uint64  sorted edge sources of power-law degrees\n"
    "  hrg     char    A, C, G, T and N, with repeated stretches\n"
    "  rand_L  byte    whole parts of exponentially distributed numbers of mean 256 / L\n";

struct column {
    uint64_t state[2];
    uint8_t *out;
    size_t nbytes;
    size_t at;
};

/* xorshift128+ */
static uint64_t next(struct column *column)
{
    uint64_t a = column->state[0];
    uint64_t b = column->state[1];
    column->state[0] = b;
    a ^= a << 23;
    column->state[1] = a ^ b ^ (a >> 17) ^ (b >> 26);
    return column->state[1] + b;
}

static void seed(struct column *column, uint64_t number)
{
    column->state[0] = number * 0x9e3779b97f4a7c15u + 1;
    column->state[1] = 0xda3e39cb94b95bdbu ^ column->state[0];
    for (int i = 0; i < 20; i++)
        next(column);
}

/* In the open interval from 0 to 1: 53 random bits and a half, over 2^53. */
static double uniform(struct column *column)
{
    return ((double)(next(column) >> 11) + 0.5) / 9007199254740992.0;
}

static double exponential(struct column *column, double mean)
{
    return -mean * log(uniform(column));
}

static uint64_t geometric(struct column *column, double mean)
{
    return 1 + (uint64_t)exponential(column, mean - 0.5);
}

static uint64_t pareto(struct column *column, double alpha, double most)
{
    double x = pow(uniform(column), -1.0 / alpha);
    return (uint64_t)(x < most ? x : most);
}

static int is_full(const struct column *column)
{
    return column->at >= column->nbytes;
}

static void put(struct column *column, const void *value, size_t nbytes)
{
    size_t room = column->nbytes - column->at;
    nbytes = nbytes < room ? nbytes : room;
    memcpy(column->out + column->at, value, nbytes);
    column->at += nbytes;
}

static void put_run(struct column *column, const void *value, size_t nbytes, uint64_t count)
{
    while (count-- > 0 && !is_full(column))
        put(column, value, nbytes);
}

static void make_mc0(struct column *column)
{
    uint64_t id = 100000000000u;
    while (!is_full(column)) {
        uint64_t run = geometric(column, 30);
        id += 1 + next(column) % 90000;
        put_run(column, &id, sizeof(id), run);
    }
}

static void make_mc3(struct column *column)
{
    while (!is_full(column)) {
        uint64_t run = geometric(column, 40);
        float rate = 2.0f + 0.125f * (float)(next(column) % 48);
        put_run(column, &rate, sizeof(rate), run);
    }
}

static void make_tpc(struct column *column)
{
    static const double cumulative[] = {.003, .90, .955, .97, .976, .996, .9999};
    while (!is_full(column)) {
        double u = uniform(column);
        uint8_t count = 0;
        while (count < 6 && u > cumulative[count])
            count++;
        put(column, &count, 1);
    }
}

static void make_tpt(struct column *column)
{
    while (!is_full(column)) {
        double u = uniform(column);
        put(column,
            u < .80    ? "CRD\n"
            : u < .985 ? "CSH\n"
            : u < .993 ? "NOC\n"
            : u < .998 ? "DIS\n"
                       : "UNK\n",
            4);
    }
}

static void make_cd2(struct column *column)
{
    static const uint32_t zero = 0;
    while (!is_full(column)) {
        if (uniform(column) < .3) {
            put_run(column, &zero, sizeof(zero), geometric(column, 60));
            continue;
        }
        for (uint64_t n = 1 + next(column) % 40; n > 0 && !is_full(column); n--) {
            uint32_t count = (uint32_t)exp(uniform(column) * 22.0);
            put(column, &count, sizeof(count));
        }
    }
}

static void make_tc2(struct column *column)
{
    uint64_t source = 12;
    while (!is_full(column)) {
        uint64_t degree = pareto(column, 1.25, 3e4) * 8;
        source += 1 + next(column) % 7;
        put_run(column, &source, sizeof(source), degree);
    }
}

/* Single bases, and now and then a CG more, as genomes have them in islands. */
static void put_bases(struct column *column)
{
    for (uint64_t n = 100 + next(column) % 800; n > 0 && !is_full(column); n--) {
        double u = uniform(column);
        put(column, u < .295 ? "A" : u < .59 ? "T" : u < .795 ? "C" : "G", 1);
        if (next(column) % 61 == 0 && column->at + 4 < column->nbytes)
            put(column, "CG", 2);
    }
}

static void make_hrg(struct column *column)
{
    while (!is_full(column)) {
        double u = uniform(column);
        if (u < .0005) {
            put_run(column, "N", 1, 200 + next(column) % 4000);
        } else if (u < .02 && column->at > 100000) {
            size_t n = 60 + next(column) % 600;
            size_t from = next(column) % (column->at - n);
            put(column, column->out + from, n);
        } else {
            put_bases(column);
        }
    }
}

static void make_rand(struct column *column, double lambda)
{
    while (!is_full(column)) {
        double x = exponential(column, 256.0 / lambda);
        uint8_t byte = x > 255 ? 255 : (uint8_t)x;
        put(column, &byte, 1);
    }
}

static const struct {
    const char *name;
    void (*make)(struct column *column);
} makers[] = {
    {"mc0", make_mc0}, {"mc3", make_mc3}, {"tpc", make_tpc}, {"tpt", make_tpt},
    {"cd2", make_cd2}, {"tc2", make_tc2}, {"hrg", make_hrg},
};

static int make(struct column *column, const char *name)
{
    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        if (strcmp(makers[i].name, name) == 0) {
            makers[i].make(column);
            return 0;
        }
    }
    if (strncmp(name, "rand_", 5) == 0 && atof(name + 5) > 0) {
        make_rand(column, atof(name + 5));
        return 0;
    }
    fprintf(stderr, "columns: unknown column %s\n", name);
    return -1;
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    if (argc != 4) {
        return test_usage(help);
    }
    struct column column = {.nbytes = strtoull(argv[2], NULL, 10)};
    column.out = malloc(column.nbytes ? column.nbytes : 1);
    if (!column.out) {
        perror("columns");
        return 1;
    }
    seed(&column, strtoull(argv[3], NULL, 10));
    if (make(&column, argv[1]) < 0)
        return 2;
    if (fwrite(column.out, 1, column.nbytes, stdout) != column.nbytes || fflush(stdout) != 0) {
        perror("columns");
        return 1;
    }
    free(column.out);
    return 0;
}
