/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_assist_data.h: arrays of the study of assist warps, and what its consumers have to come to.
 *
 * An array is a unit of some megabytes again and again, so that one is encoded quickly.
 */
#ifndef WHARF_TESTS_GPU_ASSIST_DATA_H
#define WHARF_TESTS_GPU_ASSIST_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/line/line.h"

#ifdef __cplusplus
extern "C" {
#endif

enum assist_consumer {
    ASSIST_SUM,
    ASSIST_FILTER,
    ASSIST_HISTOGRAM,
    ASSIST_SPARSE,
    ASSIST_MATRIX,
    ASSIST_N_CONSUMERS,
};

extern const char *const assist_consumer_names[ASSIST_N_CONSUMERS];

/* Of units: whole groups, and whole rows of the matrix of bf16. */
enum {
    ASSIST_GRAIN_NBYTES = 7 * WHARF_LINE_GROUP_NBYTES,
    ASSIST_N_TOTALS = 256,
    ASSIST_MATRIX_NCOLUMNS = 14336,
    ASSIST_SPARSE_NCOLUMNS = 32,
};

struct assist_array {
    uint8_t *unit;
    size_t unit_nbytes;
    size_t n_units;
    uint8_t *stream; /* of the whole array */
    size_t stream_nbytes;
    struct wharf_line_choice choice;
};

/* The array's size without compression. */
static inline size_t assist_raw_nbytes(const struct assist_array *array)
{
    return array->unit_nbytes * array->n_units;
}

/*
 * Makes an array of at least one unit and about raw_nbytes, of the first bytes of `data`: of as
 * many whole grains of them as there are, and at most 4 MiB.  The stream is the one that
 * wharf_line_encode() gives.  Returns 0 or -errno; -EINVAL for less than a grain of data.
 */
int assist_array_init(struct assist_array *array, const struct wharf_line_choice *choice,
                      const uint8_t *data, size_t nbytes, size_t raw_nbytes);
void assist_array_deinit(struct assist_array *array);

/* Writes the array without compression. */
void assist_array_write_raw(const struct assist_array *array, uint8_t *out);

/* The vector's value number i: small whole numbers for sparse matrices, whose sums are exact. */
float assist_vector(enum assist_consumer consumer, uint32_t i);

/* How many values the vector has, of sparse matrices as many as their columns ask for, at most
 * 2^22; and how many rows the result has.  0 where there are none. */
uint32_t assist_n_vector(enum assist_consumer consumer, const struct assist_array *array);
uint32_t assist_n_rows(enum assist_consumer consumer, const struct assist_array *array);

/* Whether totals (ASSIST_N_TOTALS) and rows are what the consumer has to come to.  Matrices of
 * bf16 are compared to within rounding. */
bool assist_is_right(enum assist_consumer consumer, const struct assist_array *array,
                     const uint64_t *totals, const float *rows);

#ifdef __cplusplus
}
#endif

#endif
