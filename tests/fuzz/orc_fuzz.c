/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orc_fuzz.c: hostile ORC files.
 *
 * The input is a file.  All columns of all stripes are read that can be.  What is wrong is told
 * with a text; what is read has nulls that are counted, with zeros in their places.  A column
 * without nulls is decoded once more, its whole stream at once by the plain decoder, and has to be
 * the same.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/codec.h"
#include "encoders/orc/orc_column.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

enum {
    /* What a small file can have of rows is without end: of each stripe so many are read, */
    MOST_STRIPE_ROWS = 1 << 16,
    /* and of so many columns of so many stripes. */
    MOST_COLUMNS = 16,
    MOST_STRIPES = 8,
    MOST_STREAM_NBYTES = 1 << 20,
};

struct input {
    const uint8_t *data;
    size_t nbytes;
};

static uint64_t values[WHARF_ORC_MOST_ROWS];
static uint8_t nulls[WHARF_ORC_MOST_ROWS];
static uint8_t all[MOST_STRIPE_ROWS * 8 + sizeof(values)];
static uint8_t expected[MOST_STRIPE_ROWS * 8];

static void check(int good)
{
    if (!good)
        abort();
}

static int read_input(void *context, uint64_t offset, void *buf, size_t nbytes)
{
    const struct input *input = context;

    check(offset <= input->nbytes && nbytes <= input->nbytes - offset);
    memcpy(buf, input->data + offset, nbytes);
    return 0;
}

static void check_error(const struct wharf_orc_error *error)
{
    check(error->trouble == WHARF_ORC_DAMAGED || error->trouble == WHARF_ORC_UNKNOWN);
    check(error->what && *error->what);
    check(error->reason == 0 || wharf_reason_string(error->reason) != NULL);
}

static void check_rows(const struct wharf_orc_column *column, size_t n, size_t n_nulls)
{
    static const uint8_t zeros[8];
    const uint8_t *at = (const uint8_t *)values;
    size_t count = 0;

    for (size_t i = 0; i < n; i++, at += column->unit_nbytes) {
        check(nulls[i] <= 1);
        count += nulls[i];
        check(!nulls[i] || memcmp(at, zeros, column->unit_nbytes) == 0);
        check(column->kind != WHARF_ORC_BOOLEAN || *at <= 1);
    }
    check(count == n_nulls);
}

/* The same by the plain decoder, of all of the stream. */
static void check_data(const struct wharf_orc_file *file, const struct wharf_orc_column *column,
                       const struct wharf_orc_streams *streams, uint64_t n_rows)
{
    static const uint32_t types[] = {0, 0, WHARF_RLE_I16, WHARF_RLE_I32, WHARF_RLE_I64};
    uint32_t codec = column->kind == WHARF_ORC_BOOLEAN               ? WHARF_CODEC_BOOLRLE
                     : column->kind == WHARF_ORC_TINYINT             ? WHARF_CODEC_BYTERLE
                     : streams->data.encoding == WHARF_ORC_DIRECT_V2 ? WHARF_CODEC_RLE2
                                                                     : WHARF_CODEC_RLE1;
    const struct wharf_codec_setting setting = {.parameter = types[column->kind]};
    struct wharf_orc_blocks blocks;
    struct wharf_orc_error error;
    struct wharf_outcome outcome;
    uint8_t *stream = NULL;
    size_t nbytes;

    wharf_orc_blocks_init(&blocks, &file->bytes, streams->data.offset, streams->data.nbytes);
    if (wharf_orc_blocks_all(&blocks, MOST_STREAM_NBYTES, &stream, &nbytes, &error) == 0) {
        wharf_codec_find(codec)->ops->decode_reference(stream, nbytes, expected, sizeof(expected),
                                                       &setting, &outcome);
        /* What stands behind the last row can be bad, or more than there is room for. */
        if (outcome.result == WHARF_OK)
            check(outcome.out_nbytes >= n_rows * column->unit_nbytes &&
                  memcmp(all, expected, n_rows * column->unit_nbytes) == 0);
    }
    free(stream);
    wharf_orc_blocks_deinit(&blocks);
}

static bool has_present(const struct wharf_orc_column *column,
                        const struct wharf_orc_streams *streams)
{
    for (unsigned i = 0; i < column->n_levels; i++)
        if (streams->present[i].is_there)
            return true;
    return false;
}

/* Whether all rows were read. */
static bool read_rows(struct wharf_orc_reader *reader, uint64_t n_rows)
{
    struct wharf_orc_error error;
    uint64_t done = 0;
    size_t n, n_nulls;

    do {
        if (done >= MOST_STRIPE_ROWS)
            return false;
        if (wharf_orc_reader_next(reader, values, nulls, &n, &n_nulls, &error) < 0) {
            check_error(&error);
            check(error.stripe == reader->stripe && error.column != WHARF_ORC_NOWHERE);
            return false;
        }
        check_rows(reader->column, n, n_nulls);
        memcpy(all + done * reader->column->unit_nbytes, values, n * reader->column->unit_nbytes);
        done += n;
    } while (n > 0);
    check(done == n_rows);
    return true;
}

static void read_column(const struct wharf_orc_file *file, uint32_t stripe,
                        const struct wharf_orc_column *column,
                        const struct wharf_orc_streams *streams)
{
    static struct wharf_orc_reader reader;
    uint64_t n_rows = file->stripes[stripe].n_rows;
    struct wharf_orc_error error;

    if (wharf_orc_reader_open(&reader, file, stripe, column, streams, &error) < 0) {
        check_error(&error);
        return;
    }
    if (read_rows(&reader, n_rows) && streams->data.is_there && !has_present(column, streams))
        check_data(file, column, streams, n_rows);
    wharf_orc_reader_close(&reader);
}

static void read_stripe(const struct wharf_orc_file *file, uint32_t stripe,
                        const struct wharf_orc_column *columns, size_t n,
                        const struct wharf_orc_wanted *wanted)
{
    static struct wharf_orc_place places[MOST_COLUMNS * (1 + WHARF_ORC_MAX_DEPTH)];
    struct wharf_orc_streams streams;
    struct wharf_orc_error error;

    if (wharf_orc_stripe_read(file, stripe, wanted, places, &error) < 0) {
        check_error(&error);
        check(error.stripe == stripe);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        wharf_orc_streams_of(wanted, places, &columns[i], &streams);
        read_column(file, stripe, &columns[i], &streams);
    }
}

/* That no byte is read for two of them. */
static void check_stripes(const struct wharf_orc_file *file)
{
    uint64_t end = 0;

    for (uint32_t i = 0; i < file->n_stripes; i++) {
        const struct wharf_orc_stripe *stripe = &file->stripes[i];
        check(stripe->offset >= end && stripe->footer_nbytes > 0);
        end = stripe->offset + stripe->nbytes + stripe->footer_nbytes;
        check(end <= file->bytes.source.nbytes);
    }
}

static void read_file(const struct wharf_orc_file *file)
{
    static struct wharf_orc_column columns[MOST_COLUMNS];
    struct wharf_orc_wanted wanted;
    size_t n = 0;

    check_stripes(file);
    for (uint32_t i = 0; i < file->n_types && n < MOST_COLUMNS; i++)
        n += wharf_orc_column_find(file, i, &columns[n]) == NULL;
    check(wharf_orc_wanted_init(&wanted, file) == 0);
    for (size_t i = 0; i < n; i++)
        wharf_orc_wanted_add(&wanted, &columns[i]);
    for (uint32_t stripe = 0; stripe < file->n_stripes && stripe < MOST_STRIPES; stripe++)
        read_stripe(file, stripe, columns, n, &wanted);
    wharf_orc_wanted_deinit(&wanted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    struct input input = {data, nbytes};
    const struct wharf_orc_source source = {read_input, &input, nbytes};
    struct wharf_orc_file file;
    struct wharf_orc_error error;

    if (wharf_orc_file_open(&source, &file, &error) < 0) {
        check_error(&error);
        return 0;
    }
    read_file(&file);
    wharf_orc_file_close(&file);
    return 0;
}
