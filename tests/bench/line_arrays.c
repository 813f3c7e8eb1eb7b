/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line_arrays.c: arrays as numerical programs have them in memory, for the study of assist warps.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/wharf_codec.h"
#include "tests/bench/bench_row.h"
#include "tests/lib/test_help.h"
#include "tests/lib/test_lines_mix.h"
#include "tests/lib/test_random.h"

static const char help[] =
    "usage: line_arrays NAME NBYTES > FILE\n"
    "\n"
    "Makes an array.  The same name and size always give the same bytes.\n"
    "\n"
    "  grid-columns    uint32  columns of a sparse matrix, 32 a row: a point's 27 neighbours in\n"
    "                          a grid of 32 x 32 x 32, itself in the places left\n"
    "  csr-columns     uint32  columns of the five-point Laplacian of a square grid\n"
    "  csr-values      double  its values, 4 and -1\n"
    "  csr-offsets     uint32  where its rows begin\n"
    "  graph-columns   uint32  the neighbours in an R-MAT graph, vertex by vertex: 2^18\n"
    "                          vertices, 16 edges each, a = 0.57, b = c = 0.19, d = 0.05\n"
    "  graph-offsets   uint32  where those of each vertex begin\n"
    "  field           float   temperatures of a square plate: smooth, with noise of 0.1 %\n"
    "  dense           double  uniformly distributed in 0 to 1\n"
    "  relu            float   normally distributed, negative ones 0\n"
    "  weights         bf16    normally distributed in rows of 4096, of a standard deviation\n"
    "                          around 0.02 that is log-normally distributed (sigma 0.3)\n"
    "  CODEC-lines     bytes   what suits bdi, fpc, cpack or best, another kind for each line\n"
    "  CODEC-runs      bytes   16 KiB of one kind after the other\n"
    "  random          bytes   nothing to compress\n";

enum { GRID = 32, GRID_ROW = 32, PLATE = 1024, LOG2_NVERTICES = 18, EDGES_EACH = 16 };

struct array {
    struct test_random random;
    uint8_t *out;
    size_t nbytes;
    size_t at;
};

static bool is_full(const struct array *a)
{
    return a->at >= a->nbytes;
}

static void put(struct array *a, const void *value, size_t nbytes)
{
    size_t room = a->nbytes - a->at;
    nbytes = nbytes < room ? nbytes : room;
    memcpy(a->out + a->at, value, nbytes);
    a->at += nbytes;
}

static void put_u32(struct array *a, uint32_t value)
{
    put(a, &value, sizeof(value));
}

/* In the open interval from 0 to 1. */
static double uniform(struct array *a)
{
    return ((double)(test_random_next(&a->random) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(struct array *a)
{
    double radius = sqrt(-2 * log(uniform(a)));
    return radius * cos(6.283185307179586 * uniform(a));
}

/* ---- sparse matrices ------------------------------------------------------------------------ */

static int clamp(int x)
{
    return x < 0 ? 0 : x >= GRID ? GRID - 1 : x;
}

static void make_grid_columns(struct array *a)
{
    for (int point = 0; !is_full(a); point = (point + 1) % (GRID * GRID * GRID)) {
        int x = point % GRID, y = point / GRID % GRID, z = point / GRID / GRID, n = 0;
        for (int k = -1; k <= 1; k++)
            for (int j = -1; j <= 1; j++)
                for (int i = -1; i <= 1; i++, n++)
                    put_u32(a,
                            (uint32_t)((clamp(z + k) * GRID + clamp(y + j)) * GRID + clamp(x + i)));
        for (; n < GRID_ROW; n++)
            put_u32(a, (uint32_t)point);
    }
}

/* The columns of a row; how many there are. */
static unsigned laplacian(uint32_t row, uint32_t columns[5])
{
    uint32_t x = row % PLATE, y = row / PLATE;
    unsigned n = 0;
    if (y > 0)
        columns[n++] = row - PLATE;
    if (x > 0)
        columns[n++] = row - 1;
    columns[n++] = row;
    if (x + 1 < PLATE)
        columns[n++] = row + 1;
    if (y + 1 < PLATE)
        columns[n++] = row + PLATE;
    return n;
}

static void make_csr_columns(struct array *a)
{
    for (uint32_t row = 0; !is_full(a); row = (row + 1) % (PLATE * PLATE)) {
        uint32_t columns[5];
        unsigned n = laplacian(row, columns);
        put(a, columns, n * sizeof(columns[0]));
    }
}

static void make_csr_values(struct array *a)
{
    for (uint32_t row = 0; !is_full(a); row = (row + 1) % (PLATE * PLATE)) {
        uint32_t columns[5];
        unsigned n = laplacian(row, columns);
        for (unsigned i = 0; i < n; i++) {
            double value = columns[i] == row ? 4 : -1;
            put(a, &value, sizeof(value));
        }
    }
}

static void make_csr_offsets(struct array *a)
{
    uint32_t columns[5], sum = 0;
    for (uint32_t row = 0; !is_full(a); row = (row + 1) % (PLATE * PLATE)) {
        put_u32(a, sum);
        sum += laplacian(row, columns);
    }
}

/* ---- graphs --------------------------------------------------------------------------------- */

/* An edge as source and, in the lower half, destination. */
static uint64_t some_edge(struct array *a)
{
    uint64_t source = 0, destination = 0;
    for (unsigned i = 0; i < LOG2_NVERTICES; i++) {
        double u = uniform(a);
        source = 2 * source + (u >= 0.76);
        destination = 2 * destination + ((u >= 0.57 && u < 0.76) || u >= 0.95);
    }
    return source << 32 | destination;
}

static int by_edge(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void make_graph(struct array *a, bool wants_offsets)
{
    size_t n = (size_t)EDGES_EACH << LOG2_NVERTICES, edge = 0;
    uint64_t *edges = bench_check(malloc(n * sizeof(*edges)));
    for (size_t i = 0; i < n; i++)
        edges[i] = some_edge(a);
    qsort(edges, n, sizeof(*edges), by_edge);
    for (size_t i = 0; !wants_offsets && !is_full(a); i = (i + 1) % n)
        put_u32(a, (uint32_t)edges[i]);
    for (uint32_t v = 0; wants_offsets && !is_full(a); v++) {
        while (edge < n && edges[edge] >> 32 < v)
            edge++;
        put_u32(a, (uint32_t)edge);
    }
    free(edges);
}

static void make_graph_columns(struct array *a)
{
    make_graph(a, false);
}

static void make_graph_offsets(struct array *a)
{
    make_graph(a, true);
}

/* ---- numbers -------------------------------------------------------------------------------- */

static void make_field(struct array *a)
{
    for (uint32_t point = 0; !is_full(a); point++) {
        double x = (double)(point % PLATE) / PLATE, y = (double)(point / PLATE % PLATE) / PLATE;
        double t = 300 + 40 * sin(3 * x) * cos(2 * y) + 5 * sin(17 * x + 11 * y);
        float value = (float)(t * (1 + 0.001 * (uniform(a) - 0.5)));
        put(a, &value, sizeof(value));
    }
}

static void make_dense(struct array *a)
{
    while (!is_full(a)) {
        double value = uniform(a);
        put(a, &value, sizeof(value));
    }
}

static void make_relu(struct array *a)
{
    while (!is_full(a)) {
        double value = normal(a);
        float kept = value > 0 ? (float)value : 0;
        put(a, &kept, sizeof(kept));
    }
}

/* Rounded to nearest, ties to even. */
static uint16_t bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void make_weights(struct array *a)
{
    while (!is_full(a)) {
        double deviation = 0.02 * exp(0.3 * normal(a));
        for (unsigned i = 0; i < 4096 && !is_full(a); i++) {
            uint16_t value = bf16((float)(deviation * normal(a)));
            put(a, &value, sizeof(value));
        }
    }
}

static void make_random(struct array *a)
{
    test_lines_mix_fill(WHARF_CODEC_BDI, TEST_LINES_MIX_RANDOM, a->out, a->nbytes);
}

static const struct {
    const char *name;
    void (*make)(struct array *a);
} makers[] = {
    {"grid-columns", make_grid_columns},
    {"csr-columns", make_csr_columns},
    {"csr-values", make_csr_values},
    {"csr-offsets", make_csr_offsets},
    {"graph-columns", make_graph_columns},
    {"graph-offsets", make_graph_offsets},
    {"field", make_field},
    {"dense", make_dense},
    {"relu", make_relu},
    {"weights", make_weights},
    {"random", make_random},
};

static const struct {
    const char *name;
    uint32_t codec;
} mixes[] = {
    {"bdi", WHARF_CODEC_BDI},
    {"fpc", WHARF_CODEC_FPC},
    {"cpack", WHARF_CODEC_CPACK},
    {"best", WHARF_CODEC_BEST},
};

/* CODEC-lines or CODEC-runs. */
static bool make_mix(struct array *a, const char *name)
{
    for (size_t i = 0; i < sizeof(mixes) / sizeof(mixes[0]); i++) {
        size_t n = strlen(mixes[i].name);
        bool is_lines = strcmp(name + (strlen(name) > n ? n : 0), "-lines") == 0;
        bool is_runs = strcmp(name + (strlen(name) > n ? n : 0), "-runs") == 0;
        if (strncmp(name, mixes[i].name, n) == 0 && (is_lines || is_runs)) {
            test_lines_mix_fill(mixes[i].codec,
                                is_lines ? TEST_LINES_MIX_LINES : TEST_LINES_MIX_RUNS, a->out,
                                a->nbytes);
            return true;
        }
    }
    return false;
}

static bool make(struct array *a, const char *name)
{
    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++)
        if (strcmp(name, makers[i].name) == 0) {
            makers[i].make(a);
            return true;
        }
    return make_mix(a, name);
}

int main(int argc, char **argv)
{
    test_help(argc, argv, help);
    if (argc != 3)
        return test_usage(help);
    struct array a = {.random = {1}, .nbytes = strtoull(argv[2], NULL, 10)};
    a.out = bench_check(calloc(1, a.nbytes + 1));
    if (!make(&a, argv[1]))
        return test_usage(help);
    size_t n = fwrite(a.out, 1, a.nbytes, stdout);
    free(a.out);
    return n == a.nbytes && fflush(stdout) == 0 ? 0 : 1;
}
