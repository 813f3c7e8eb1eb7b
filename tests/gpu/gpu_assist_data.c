/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/gpu/gpu_assist_data.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/line/line_shape.h"

const char *const assist_consumer_names[ASSIST_N_CONSUMERS] = {"sum", "filter", "histogram",
                                                               "sparse", "matrix"};

enum {
    UNIT_NBYTES = (4 << 20) / ASSIST_GRAIN_NBYTES * ASSIST_GRAIN_NBYTES,
    MOST_COLUMNS = 1 << 22,
};

static uint32_t load_u32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

/* ---- arrays --------------------------------------------------------------------------------- */

/*
 * A stream of n units from that of one: groups do not know of each other but by the offsets in
 * their records, which count from the first group's content on.
 */
static int repeat_stream(struct assist_array *array, const uint8_t *one, size_t one_nbytes)
{
    const struct wharf_line_choice *choice = &array->choice;
    struct wharf_line_shape unit, whole;
    wharf_line_shape_set(&unit, choice->codec, choice->line_nbytes, choice->layout, choice->type,
                         array->unit_nbytes);
    wharf_line_shape_set(&whole, choice->codec, choice->line_nbytes, choice->layout, choice->type,
                         assist_raw_nbytes(array));
    size_t content = one_nbytes - unit.data_at;
    size_t index = unit.n_groups * unit.record_nbytes, heads = unit.n_groups * unit.head_nbytes;
    array->stream_nbytes = whole.data_at + array->n_units * content;
    array->stream = calloc(1, array->stream_nbytes);
    if (!array->stream)
        return -ENOMEM;
    wharf_line_shape_write(&whole, array->stream);
    for (size_t i = 0; i < array->n_units; i++) {
        uint8_t *records = array->stream + WHARF_LINE_HEADER_NBYTES + i * index;
        memcpy(records, one + WHARF_LINE_HEADER_NBYTES, index);
        for (size_t g = 0; choice->layout == WHARF_LINE_PACKED && g < unit.n_groups; g++) {
            uint8_t *record = records + g * unit.record_nbytes;
            uint32_t offset = load_u32(record) + (uint32_t)(i * content / WHARF_LINE_UNIT_NBYTES);
            memcpy(record, &offset, sizeof(offset));
        }
        memcpy(array->stream + whole.heads_at + i * heads, one + unit.heads_at, heads);
        memcpy(array->stream + whole.data_at + i * content, one + unit.data_at, content);
    }
    return 0;
}

int assist_array_init(struct assist_array *array, const struct wharf_line_choice *choice,
                      const uint8_t *data, size_t nbytes, size_t raw_nbytes)
{
    size_t unit_nbytes = nbytes < UNIT_NBYTES ? nbytes : UNIT_NBYTES, one_nbytes;
    memset(array, 0, sizeof(*array));
    unit_nbytes -= unit_nbytes % ASSIST_GRAIN_NBYTES;
    if (unit_nbytes == 0)
        return -EINVAL;
    array->choice = *choice;
    array->unit_nbytes = unit_nbytes;
    array->n_units = raw_nbytes < unit_nbytes ? 1 : raw_nbytes / unit_nbytes;
    size_t bound = wharf_line_bound(choice, unit_nbytes);
    uint8_t *one = malloc(bound);
    array->unit = malloc(unit_nbytes);
    int r = one && array->unit ? 0 : -ENOMEM;
    if (r == 0) {
        memcpy(array->unit, data, unit_nbytes);
        r = wharf_line_encode(choice, data, unit_nbytes, one, bound, &one_nbytes);
    }
    if (r == 0)
        r = repeat_stream(array, one, one_nbytes);
    free(one);
    if (r < 0)
        assist_array_deinit(array);
    return r;
}

void assist_array_deinit(struct assist_array *array)
{
    free(array->unit);
    free(array->stream);
    memset(array, 0, sizeof(*array));
}

void assist_array_write_raw(const struct assist_array *array, uint8_t *out)
{
    for (size_t i = 0; i < array->n_units; i++)
        memcpy(out + i * array->unit_nbytes, array->unit, array->unit_nbytes);
}

/* ---- results -------------------------------------------------------------------------------- */

float assist_vector(enum assist_consumer consumer, uint32_t i)
{
    return consumer == ASSIST_SPARSE ? (float)(i * 2654435761u >> 24)
                                     : (float)(i * 2654435761u >> 16) / 32768 - 1;
}

uint32_t assist_n_vector(enum assist_consumer consumer, const struct assist_array *array)
{
    if (consumer == ASSIST_MATRIX)
        return ASSIST_MATRIX_NCOLUMNS;
    if (consumer != ASSIST_SPARSE)
        return 0;
    uint32_t most = 0;
    for (size_t at = 0; at < array->unit_nbytes; at += 4) {
        uint32_t column = load_u32(array->unit + at);
        most = column > most ? column : most;
    }
    return most < MOST_COLUMNS ? most + 1 : MOST_COLUMNS;
}

uint32_t assist_n_rows(enum assist_consumer consumer, const struct assist_array *array)
{
    size_t nbytes = assist_raw_nbytes(array);
    if (consumer == ASSIST_MATRIX)
        return (uint32_t)(nbytes / 2 / ASSIST_MATRIX_NCOLUMNS);
    return consumer == ASSIST_SPARSE ? (uint32_t)(nbytes / 4 / ASSIST_SPARSE_NCOLUMNS) : 0;
}

/* Of one unit. */
static void add_up(enum assist_consumer consumer, const struct assist_array *array,
                   uint64_t *totals)
{
    for (size_t at = 0; at < array->unit_nbytes; at += 4) {
        uint32_t v = load_u32(array->unit + at);
        if (consumer == ASSIST_SUM)
            totals[0] += at % 8 ? (uint64_t)v << 32 : v;
        if (consumer == ASSIST_FILTER && v < 1 << 16) {
            totals[0] += v;
            totals[1]++;
        }
        if (consumer == ASSIST_HISTOGRAM)
            totals[v & 255]++;
    }
}

/* Row number r of a unit.  *ret_most: the sum of the amounts of what is added. */
static double row_of(enum assist_consumer consumer, const struct assist_array *array, size_t r,
                     const float *vector, uint32_t n_vector, double *ret_most)
{
    double sum = 0, most = 0;
    uint32_t n = consumer == ASSIST_MATRIX ? ASSIST_MATRIX_NCOLUMNS : ASSIST_SPARSE_NCOLUMNS;
    for (uint32_t k = 0; k < n; k++) {
        double term;
        if (consumer == ASSIST_SPARSE) {
            uint32_t column = load_u32(array->unit + 4 * (r * n + k));
            term = vector[column < n_vector ? column : n_vector - 1];
        } else {
            const uint8_t *at = array->unit + 2 * (r * n + k);
            uint32_t bits = (uint32_t)at[0] << 16 | (uint32_t)at[1] << 24;
            float weight;
            memcpy(&weight, &bits, sizeof(weight));
            term = (double)weight * vector[k];
        }
        sum += term;
        most += fabs(term);
    }
    *ret_most = most;
    return sum;
}

/* Sums of fewer than 2^14 products in any order, each step rounded to 24 bits. */
static bool is_near(double got, double want, double most)
{
    return fabs(got - want) <= most / (1 << 15);
}

static bool rows_are_right(enum assist_consumer consumer, const struct assist_array *array,
                           const float *rows)
{
    uint32_t n_vector = assist_n_vector(consumer, array);
    size_t n_rows = assist_n_rows(consumer, array) / array->n_units;
    float *vector = malloc(n_vector * sizeof(*vector));
    bool is_right = vector != NULL;
    for (uint32_t i = 0; is_right && i < n_vector; i++)
        vector[i] = assist_vector(consumer, i);
    for (size_t r = 0; is_right && r < n_rows; r++) {
        double most, want = row_of(consumer, array, r, vector, n_vector, &most);
        for (size_t u = 0; u < array->n_units; u++) {
            double got = rows[u * n_rows + r];
            is_right =
                is_right && (consumer == ASSIST_SPARSE ? got == want : is_near(got, want, most));
        }
    }
    free(vector);
    return is_right;
}

bool assist_is_right(enum assist_consumer consumer, const struct assist_array *array,
                     const uint64_t *totals, const float *rows)
{
    uint64_t want[ASSIST_N_TOTALS] = {0};
    if (assist_n_rows(consumer, array) > 0)
        return rows_are_right(consumer, array, rows);
    add_up(consumer, array, want);
    for (size_t i = 0; i < ASSIST_N_TOTALS; i++)
        if (totals[i] != want[i] * array->n_units)
            return false;
    return true;
}
