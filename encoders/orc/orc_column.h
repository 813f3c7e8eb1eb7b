/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orc_column.h: reads a column of an ORC file row by row, in one stripe.
 *
 * A column within structures has values only in rows in which all of these have one.  Several
 * readers may run at the same time, for other columns or stripes.  Functions return 0, or -1 with
 * *ret_error filled.
 */
#ifndef WHARF_ENCODERS_ORC_ORC_COLUMN_H
#define WHARF_ENCODERS_ORC_ORC_COLUMN_H

#include "encoders/orc/orc_file.h"
#include "encoders/orc/orc_values.h"

struct wharf_orc_column {
    uint32_t number;
    uint32_t kind;                      /* BOOLEAN to BIGINT */
    unsigned unit_nbytes;               /* size of a value: 1, 2, 4 or 8 */
    unsigned n_levels;                  /* entries of `path` */
    uint32_t path[WHARF_ORC_MAX_DEPTH]; /* column numbers from the root to this column */
};

/* Describes the column `number` in *ret_column.  Returns NULL, or if wharf cannot read such values
 * the reason: "is in a list, a map or a union". */
const char *wharf_orc_column_find(const struct wharf_orc_file *file, uint32_t number,
                                  struct wharf_orc_column *ret_column);

/* The streams of a stripe that some columns need.  Columns in a structure share its PRESENT stream,
 * which has one place. */
struct wharf_orc_wanted {
    uint32_t n_types;
    uint32_t n_places;
    uint32_t *data;    /* by type: its stream's place, or WHARF_ORC_NOWHERE */
    uint32_t *present; /* likewise */
    uint32_t *types;   /* by place: the column with this DATA stream, or WHARF_ORC_NOWHERE */
};

/* 0 or -ENOMEM.  No column is wanted yet. */
int wharf_orc_wanted_init(struct wharf_orc_wanted *wanted, const struct wharf_orc_file *file);
/* Zeros are allowed. */
void wharf_orc_wanted_deinit(struct wharf_orc_wanted *wanted);
void wharf_orc_wanted_add(struct wharf_orc_wanted *wanted, const struct wharf_orc_column *column);

/* Reads the footer of a stripe, in time proportional to its size, and fills ret_places, which has
 * n_places entries. */
int wharf_orc_stripe_read(const struct wharf_orc_file *file, uint32_t stripe,
                          const struct wharf_orc_wanted *wanted, struct wharf_orc_place *ret_places,
                          struct wharf_orc_error *ret_error);

/* Where the streams of a column are in one stripe, by level of its path. */
struct wharf_orc_streams {
    struct wharf_orc_place present[WHARF_ORC_MAX_DEPTH];
    struct wharf_orc_place data;
};
void wharf_orc_streams_of(const struct wharf_orc_wanted *wanted,
                          const struct wharf_orc_place *places,
                          const struct wharf_orc_column *column,
                          struct wharf_orc_streams *ret_streams);

enum { WHARF_ORC_MOST_ROWS = 8192 };

/* Reads one column of one stripe. */
struct wharf_orc_reader {
    const struct wharf_orc_column *column;
    uint32_t stripe;
    uint64_t n_left; /* rows still to read */
    struct wharf_orc_values present[WHARF_ORC_MAX_DEPTH];
    bool has_present[WHARF_ORC_MAX_DEPTH];
    struct wharf_orc_values data;
    bool has_data;
};

int wharf_orc_reader_open(struct wharf_orc_reader *reader, const struct wharf_orc_file *file,
                          uint32_t stripe, const struct wharf_orc_column *column,
                          const struct wharf_orc_streams *streams,
                          struct wharf_orc_error *ret_error);
void wharf_orc_reader_close(struct wharf_orc_reader *reader);

/*
 * Reads the next rows: *ret_n of them, at most WHARF_ORC_MOST_ROWS, or 0 at the end of the stripe.
 * `values` gets a value for each row, 0 for a null.  `nulls` gets a byte for each row, 1 for a
 * null.  *ret_n_nulls is the number of nulls.  Booleans are bytes of 0 and 1; other values are
 * little-endian.
 */
int wharf_orc_reader_next(struct wharf_orc_reader *reader, void *values, uint8_t *nulls,
                          size_t *ret_n, size_t *ret_n_nulls, struct wharf_orc_error *ret_error);

#endif
