/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orc_column.c: reads the rows of a column.
 *
 * A column that is nested in structures has a value only where all of these have one.  Each level
 * of the path may have a PRESENT stream, which holds one bit for each row in which the level above
 * has a value.  So the levels are read from the root down, and each can only turn more rows into
 * nulls.  The DATA stream then holds values for the remaining rows alone, in order.
 */
#include "encoders/orc/orc_column.h"

#include <string.h>

#include "encoders/wharf_codec.h"

static const char data_text[] = "stream DATA", present_text[] = "stream PRESENT";

/* Completes an error that a stream has set, by the place of the stream. */
static int fail_in(const struct wharf_orc_reader *reader, uint32_t column, const char *where,
                   struct wharf_orc_error *ret_error)
{
    ret_error->stripe = reader->stripe;
    ret_error->column = column;
    ret_error->where = where;
    return -1;
}

static int fail(const struct wharf_orc_reader *reader, enum wharf_orc_trouble trouble,
                const char *what, uint64_t offset, struct wharf_orc_error *ret_error)
{
    *ret_error = (struct wharf_orc_error){.trouble = trouble, .what = what, .offset = offset};
    return fail_in(reader, reader->column->number, NULL, ret_error);
}

/* ---- beginning and end --------------------------------------------------------------------- */

static int open_present(struct wharf_orc_reader *reader, const struct wharf_orc_file *file,
                        const struct wharf_orc_streams *streams, struct wharf_orc_error *ret_error)
{
    for (unsigned i = 0; i < reader->column->n_levels; i++) {
        if (!streams->present[i].is_there)
            continue;
        if (wharf_orc_values_open(&reader->present[i], &file->bytes, &streams->present[i],
                                  WHARF_CODEC_BYTERLE, 0, ret_error) < 0)
            return fail_in(reader, reader->column->path[i], present_text, ret_error);
        reader->has_present[i] = true;
    }
    return 0;
}

static int open_data(struct wharf_orc_reader *reader, const struct wharf_orc_file *file,
                     const struct wharf_orc_streams *streams, struct wharf_orc_error *ret_error)
{
    static const uint32_t types[] = {0, 0, WHARF_RLE_I16, WHARF_RLE_I32, WHARF_RLE_I64};
    uint32_t kind = reader->column->kind;
    uint32_t codec = kind <= WHARF_ORC_TINYINT                       ? WHARF_CODEC_BYTERLE
                     : streams->data.encoding == WHARF_ORC_DIRECT_V2 ? WHARF_CODEC_RLE2
                                                                     : WHARF_CODEC_RLE1;

    if (wharf_orc_values_open(&reader->data, &file->bytes, &streams->data, codec, types[kind],
                              ret_error) < 0)
        return fail_in(reader, reader->column->number, data_text, ret_error);
    reader->has_data = true;
    return 0;
}

/* Bytes and booleans have a single encoding, whatever the version. */
static bool knows_encoding(const struct wharf_orc_column *column, uint32_t encoding)
{
    return encoding == WHARF_ORC_DIRECT ||
           (encoding == WHARF_ORC_DIRECT_V2 && column->kind > WHARF_ORC_TINYINT);
}

int wharf_orc_reader_open(struct wharf_orc_reader *reader, const struct wharf_orc_file *file,
                          uint32_t stripe, const struct wharf_orc_column *column,
                          const struct wharf_orc_streams *streams,
                          struct wharf_orc_error *ret_error)
{
    const struct wharf_orc_stripe *from = &file->stripes[stripe];
    uint64_t footer_at = from->offset + from->nbytes;
    int r = 0;

    memset(reader, 0, sizeof(*reader));
    reader->column = column;
    reader->stripe = stripe;
    reader->n_left = from->n_rows;
    if (!streams->data.has_encoding)
        return fail(reader, WHARF_ORC_DAMAGED, "the stripe footer does not say how it is coded",
                    footer_at, ret_error);
    if (!knows_encoding(column, streams->data.encoding))
        return fail(reader, WHARF_ORC_UNKNOWN, "it is coded in a way that wharf does not know",
                    footer_at, ret_error);
    r = open_present(reader, file, streams, ret_error);
    if (r == 0 && streams->data.is_there)
        r = open_data(reader, file, streams, ret_error);
    if (r < 0)
        wharf_orc_reader_close(reader);
    return r;
}

void wharf_orc_reader_close(struct wharf_orc_reader *reader)
{
    for (unsigned i = 0; i < WHARF_ORC_MAX_DEPTH; i++)
        wharf_orc_values_close(&reader->present[i]);
    wharf_orc_values_close(&reader->data);
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* Sets nulls[0] to nulls[n - 1], and *ret_n_present to the number of rows that have a value. */
static int next_present(struct wharf_orc_reader *reader, uint8_t *nulls, size_t n,
                        size_t *ret_n_present, struct wharf_orc_error *ret_error)
{
    uint8_t bits[WHARF_ORC_MOST_ROWS];
    size_t n_present = n;

    memset(nulls, 0, n);
    for (unsigned i = 0; i < reader->column->n_levels; i++) {
        if (!reader->has_present[i])
            continue;
        if (wharf_orc_bits_next(&reader->present[i], bits, n_present, ret_error) < 0)
            return fail_in(reader, reader->column->path[i], present_text, ret_error);
        size_t at = 0;
        n_present = 0;
        for (size_t row = 0; row < n; row++)
            if (!nulls[row]) {
                nulls[row] = !bits[at++];
                n_present += !nulls[row];
            }
    }
    *ret_n_present = n_present;
    return 0;
}

/* Moves the packed values to their rows.  It goes backwards, so that no value is overwritten before
 * it has been moved. */
#define SPREAD(type)                                                                               \
    do {                                                                                           \
        type *to = values;                                                                         \
        for (size_t row = n, at = n_present; row-- > 0;)                                           \
            to[row] = nulls[row] ? 0 : to[--at];                                                   \
    } while (0)

static void spread(void *values, unsigned unit_nbytes, const uint8_t *nulls, size_t n,
                   size_t n_present)
{
    switch (unit_nbytes) {
    case 1:
        SPREAD(uint8_t);
        break;
    case 2:
        SPREAD(uint16_t);
        break;
    case 4:
        SPREAD(uint32_t);
        break;
    default:
        SPREAD(uint64_t);
    }
}

static int next_values(struct wharf_orc_reader *reader, void *values, size_t n_present,
                       struct wharf_orc_error *ret_error)
{
    if (n_present == 0)
        return 0;
    if (!reader->has_data)
        return fail(reader, WHARF_ORC_DAMAGED, "there are values, and no stream DATA", 0,
                    ret_error);
    int r = reader->column->kind == WHARF_ORC_BOOLEAN
                ? wharf_orc_bits_next(&reader->data, values, n_present, ret_error)
                : wharf_orc_values_next(&reader->data, values, n_present, ret_error);
    return r < 0 ? fail_in(reader, reader->column->number, data_text, ret_error) : 0;
}

int wharf_orc_reader_next(struct wharf_orc_reader *reader, void *values, uint8_t *nulls,
                          size_t *ret_n, size_t *ret_n_nulls, struct wharf_orc_error *ret_error)
{
    size_t n = reader->n_left < WHARF_ORC_MOST_ROWS ? (size_t)reader->n_left : WHARF_ORC_MOST_ROWS;
    size_t n_present;

    *ret_n = n;
    *ret_n_nulls = 0;
    if (n == 0)
        return 0;
    if (next_present(reader, nulls, n, &n_present, ret_error) < 0 ||
        next_values(reader, values, n_present, ret_error) < 0)
        return -1;
    if (n_present < n)
        spread(values, reader->column->unit_nbytes, nulls, n, n_present);
    reader->n_left -= n;
    *ret_n_nulls = n - n_present;
    return 0;
}
