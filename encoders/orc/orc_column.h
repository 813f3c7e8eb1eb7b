/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orc_column.h: the rows of a column of an ORC file, stripe by stripe.
 *
 * Columns within structures have a value where these have one.  Several stripes and columns can be
 * read at the same time.  Functions return 0, or -1 with *ret_error filled.
 */
#ifndef WHARF_ENCODERS_ORC_ORC_COLUMN_H
#define WHARF_ENCODERS_ORC_ORC_COLUMN_H

#include "encoders/orc/orc_file.h"
#include "encoders/orc/orc_values.h"

struct wharf_orc_column {
    uint32_t number;
    uint32_t kind;                      /* BOOLEAN to BIGINT */
    unsigned unit_nbytes;               /* of a value: 1, 2, 4 or 8 */
    unsigned n_levels;                  /* of the path */
    uint32_t path[WHARF_ORC_MAX_DEPTH]; /* from the root to the column itself */
};

/* Looks at the type with this number.  NULL if its values can be read, with *ret_column filled;
 * else why not: "is a column of strings". */
const char *wharf_orc_column_find(const struct wharf_orc_file *file, uint32_t number,
                                  struct wharf_orc_column *ret_column);

/* Of a column in a stripe: the streams, by levels of its path, and how integers are coded. */
struct wharf_orc_streams {
    struct wharf_orc_place present[WHARF_ORC_MAX_DEPTH];
    struct wharf_orc_place data;
    uint32_t encoding;
    bool has_encoding;
};

/* Reads the footer of a stripe, for n_columns columns. */
int wharf_orc_stripe_read(const struct wharf_orc_file *file, uint32_t stripe,
                          const struct wharf_orc_column *columns, size_t n_columns,
                          struct wharf_orc_streams *ret_streams, struct wharf_orc_error *ret_error);

enum { WHARF_ORC_MOST_ROWS = 8192 };

/* Reads one column of one stripe. */
struct wharf_orc_reader {
    const struct wharf_orc_column *column;
    uint32_t stripe;
    uint64_t n_left; /* rows */
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
 * The next rows, *ret_n of them, at most WHARF_ORC_MOST_ROWS; 0 at the stripe's end.  `values` gets
 * a value for each row, 0 where there is none, and `nulls` a byte, 1 where there is none; in
 * *ret_n_nulls how many of these.  Booleans are bytes of 0 and 1, the others little-endian.
 */
int wharf_orc_reader_next(struct wharf_orc_reader *reader, void *values, uint8_t *nulls,
                          size_t *ret_n, size_t *ret_n_nulls, struct wharf_orc_error *ret_error);

#endif
