/* SPDX-License-Identifier: Apache-2.0 */
/* orc_stripe.c: finds the columns that wharf can read, and their streams in a stripe. */
#include <stdlib.h>

#include "encoders/orc/orc_column.h"
#include "encoders/orc/orc_message.h"

static const char stripe_footer[] = "the stripe footer";

/* ---- columns ------------------------------------------------------------------------------- */

static bool is_known(uint32_t kind)
{
    return kind <= WHARF_ORC_BIGINT;
}

/* Fills the path, which the parents give from its end to the root. */
static const char *find_path(const struct wharf_orc_file *file, uint32_t number,
                             struct wharf_orc_column *column)
{
    uint32_t path[WHARF_ORC_MAX_DEPTH];
    unsigned n = 0;

    for (uint32_t at = number; at != WHARF_ORC_NOWHERE; at = file->types[at].parent) {
        if (n == WHARF_ORC_MAX_DEPTH)
            return "is in structures that are nested too deeply";
        if (at != number && file->types[at].kind != WHARF_ORC_STRUCT)
            return "is in a list, a map or a union";
        path[n++] = at;
    }
    if (path[n - 1] != 0)
        return "is part of no row";
    column->n_levels = n;
    for (unsigned i = 0; i < n; i++)
        column->path[i] = path[n - 1 - i];
    return NULL;
}

const char *wharf_orc_column_find(const struct wharf_orc_file *file, uint32_t number,
                                  struct wharf_orc_column *ret_column)
{
    static const unsigned nbytes[] = {1, 1, 2, 4, 8};
    struct wharf_orc_column column = {.number = number, .kind = file->types[number].kind};

    if (!is_known(column.kind))
        return "holds neither integers nor booleans nor bytes";
    const char *why = find_path(file, number, &column);
    if (why)
        return why;
    column.unit_nbytes = nbytes[column.kind];
    *ret_column = column;
    return NULL;
}

/* ---- streams ------------------------------------------------------------------------------- */

static int fail(const struct wharf_orc_file *file, uint32_t stripe, const char *what,
                struct wharf_orc_error *ret_error)
{
    *ret_error = (struct wharf_orc_error){
        .trouble = WHARF_ORC_DAMAGED,
        .what = what,
        .offset = file->stripes[stripe].offset + file->stripes[stripe].nbytes,
        .stripe = stripe,
        .column = WHARF_ORC_NOWHERE,
        .where = stripe_footer,
    };
    return -1;
}

/* Whether the stream belongs to the column; *ret_place is then the entry for it in `streams`. */
static bool is_of(const struct wharf_orc_column *column, const Wharf__Orc__Stream *stream,
                  struct wharf_orc_streams *streams, struct wharf_orc_place **ret_place)
{
    if (stream->kind == WHARF_ORC_DATA && stream->column == column->number) {
        *ret_place = &streams->data;
        return true;
    }
    if (stream->kind != WHARF_ORC_PRESENT)
        return false;
    for (unsigned i = 0; i < column->n_levels; i++)
        if (stream->column == column->path[i]) {
            *ret_place = &streams->present[i];
            return true;
        }
    return false;
}

static bool note(const struct wharf_orc_column *columns, size_t n_columns,
                 const Wharf__Orc__Stream *stream, uint64_t offset,
                 struct wharf_orc_streams *ret_streams)
{
    struct wharf_orc_place *place;

    for (size_t i = 0; i < n_columns; i++) {
        if (!is_of(&columns[i], stream, &ret_streams[i], &place))
            continue;
        if (place->is_there)
            return false;
        *place = (struct wharf_orc_place){true, offset, stream->nbytes};
    }
    return true;
}

static int take_footer(const struct wharf_orc_file *file, uint32_t number,
                       const Wharf__Orc__StripeFooter *footer,
                       const struct wharf_orc_column *columns, size_t n_columns,
                       struct wharf_orc_streams *ret_streams, struct wharf_orc_error *ret_error)
{
    const struct wharf_orc_stripe *stripe = &file->stripes[number];
    uint64_t at = 0;

    for (size_t i = 0; i < footer->n_streams; i++) {
        const Wharf__Orc__Stream *stream = footer->streams[i];
        if (stream->nbytes > stripe->nbytes - at)
            return fail(file, number, "the streams are larger than the stripe", ret_error);
        if (!note(columns, n_columns, stream, stripe->offset + at, ret_streams))
            return fail(file, number, "a stream is there twice", ret_error);
        at += stream->nbytes;
    }
    for (size_t i = 0; i < n_columns; i++) {
        ret_streams[i].has_encoding = columns[i].number < footer->n_encodings;
        if (ret_streams[i].has_encoding)
            ret_streams[i].encoding = footer->encodings[columns[i].number]->kind;
    }
    return 0;
}

static int parse_footer(const struct wharf_orc_file *file, uint32_t stripe, const uint8_t *bytes,
                        size_t nbytes, const struct wharf_orc_column *columns, size_t n_columns,
                        struct wharf_orc_streams *ret_streams, struct wharf_orc_error *ret_error)
{
    Wharf__Orc__StripeFooter *footer = wharf_orc_parse_stripe_footer(bytes, nbytes);

    if (!footer)
        return fail(file, stripe, "it is no message", ret_error);
    int r = take_footer(file, stripe, footer, columns, n_columns, ret_streams, ret_error);
    wharf_orc_message_free(footer);
    return r;
}

int wharf_orc_stripe_read(const struct wharf_orc_file *file, uint32_t stripe,
                          const struct wharf_orc_column *columns, size_t n_columns,
                          struct wharf_orc_streams *ret_streams, struct wharf_orc_error *ret_error)
{
    const struct wharf_orc_stripe *from = &file->stripes[stripe];
    struct wharf_orc_blocks blocks;
    uint8_t *bytes = NULL;
    size_t nbytes = 0;

    for (size_t i = 0; i < n_columns; i++)
        ret_streams[i] = (struct wharf_orc_streams){0};
    wharf_orc_blocks_init(&blocks, &file->bytes, from->offset + from->nbytes, from->footer_nbytes);
    int r = wharf_orc_blocks_all(&blocks, WHARF_ORC_MAX_FOOTER_NBYTES, &bytes, &nbytes, ret_error);
    if (r < 0) {
        ret_error->where = stripe_footer;
        ret_error->stripe = stripe;
    } else {
        r = parse_footer(file, stripe, bytes, nbytes, columns, n_columns, ret_streams, ret_error);
    }
    free(bytes);
    wharf_orc_blocks_deinit(&blocks);
    return r;
}
