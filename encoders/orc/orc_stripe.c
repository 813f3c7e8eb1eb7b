/* SPDX-License-Identifier: Apache-2.0 */
/* orc_stripe.c: finds the columns that wharf can read, and their streams in a stripe. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- streams that are wanted --------------------------------------------------------------- */

int wharf_orc_wanted_init(struct wharf_orc_wanted *wanted, const struct wharf_orc_file *file)
{
    size_t nbytes = file->n_types * sizeof(uint32_t);

    *wanted = (struct wharf_orc_wanted){.n_types = file->n_types};
    wanted->data = malloc(nbytes);
    wanted->present = malloc(nbytes);
    wanted->types = malloc(2 * nbytes); /* each type has two streams at most */
    if (!wanted->data || !wanted->present || !wanted->types) {
        wharf_orc_wanted_deinit(wanted);
        return -ENOMEM;
    }
    memset(wanted->data, 0xff, nbytes);
    memset(wanted->present, 0xff, nbytes);
    return 0;
}

void wharf_orc_wanted_deinit(struct wharf_orc_wanted *wanted)
{
    free(wanted->data);
    free(wanted->present);
    free(wanted->types);
    *wanted = (struct wharf_orc_wanted){0};
}

static void add(struct wharf_orc_wanted *wanted, uint32_t *place, uint32_t type)
{
    if (*place != WHARF_ORC_NOWHERE)
        return;
    wanted->types[wanted->n_places] = type;
    *place = wanted->n_places++;
}

void wharf_orc_wanted_add(struct wharf_orc_wanted *wanted, const struct wharf_orc_column *column)
{
    add(wanted, &wanted->data[column->number], column->number);
    for (unsigned i = 0; i < column->n_levels; i++)
        add(wanted, &wanted->present[column->path[i]], WHARF_ORC_NOWHERE);
}

void wharf_orc_streams_of(const struct wharf_orc_wanted *wanted,
                          const struct wharf_orc_place *places,
                          const struct wharf_orc_column *column,
                          struct wharf_orc_streams *ret_streams)
{
    *ret_streams = (struct wharf_orc_streams){.data = places[wanted->data[column->number]]};
    for (unsigned i = 0; i < column->n_levels; i++)
        ret_streams->present[i] = places[wanted->present[column->path[i]]];
}

/* ---- stripe footers ------------------------------------------------------------------------ */

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

/* The stream's place, or WHARF_ORC_NOWHERE. */
static uint32_t place_of(const struct wharf_orc_wanted *wanted, const Wharf__Orc__Stream *stream)
{
    if (stream->column >= wanted->n_types)
        return WHARF_ORC_NOWHERE;
    if (stream->kind == WHARF_ORC_DATA)
        return wanted->data[stream->column];
    return stream->kind == WHARF_ORC_PRESENT ? wanted->present[stream->column] : WHARF_ORC_NOWHERE;
}

static int take_streams(const struct wharf_orc_file *file, uint32_t number,
                        const Wharf__Orc__StripeFooter *footer,
                        const struct wharf_orc_wanted *wanted, struct wharf_orc_place *ret_places,
                        struct wharf_orc_error *ret_error)
{
    const struct wharf_orc_stripe *stripe = &file->stripes[number];
    uint64_t at = 0;

    for (size_t i = 0; i < footer->n_streams; i++) {
        const Wharf__Orc__Stream *stream = footer->streams[i];
        uint32_t place = place_of(wanted, stream);
        if (stream->nbytes > stripe->nbytes - at)
            return fail(file, number, "the streams are larger than the stripe", ret_error);
        if (place != WHARF_ORC_NOWHERE) {
            if (ret_places[place].is_there)
                return fail(file, number, "a stream is there twice", ret_error);
            ret_places[place].is_there = true;
            ret_places[place].offset = stripe->offset + at;
            ret_places[place].nbytes = stream->nbytes;
        }
        at += stream->nbytes;
    }
    return 0;
}

static void take_encodings(const Wharf__Orc__StripeFooter *footer,
                           const struct wharf_orc_wanted *wanted,
                           struct wharf_orc_place *ret_places)
{
    for (uint32_t i = 0; i < wanted->n_places; i++) {
        uint32_t type = wanted->types[i];
        if (type == WHARF_ORC_NOWHERE || type >= footer->n_encodings)
            continue;
        ret_places[i].has_encoding = true;
        ret_places[i].encoding = footer->encodings[type]->kind;
    }
}

static int take_footer(const struct wharf_orc_file *file, uint32_t stripe, const uint8_t *bytes,
                       size_t nbytes, const struct wharf_orc_wanted *wanted,
                       struct wharf_orc_place *ret_places, struct wharf_orc_error *ret_error)
{
    Wharf__Orc__StripeFooter *footer = wharf_orc_parse_stripe_footer(bytes, nbytes);

    if (!footer)
        return fail(file, stripe, "it is no message", ret_error);
    int r = take_streams(file, stripe, footer, wanted, ret_places, ret_error);
    take_encodings(footer, wanted, ret_places);
    wharf_orc_message_free(footer);
    return r;
}

int wharf_orc_stripe_read(const struct wharf_orc_file *file, uint32_t stripe,
                          const struct wharf_orc_wanted *wanted, struct wharf_orc_place *ret_places,
                          struct wharf_orc_error *ret_error)
{
    const struct wharf_orc_stripe *from = &file->stripes[stripe];
    struct wharf_orc_blocks blocks;
    uint8_t *bytes = NULL;
    size_t nbytes = 0;

    memset(ret_places, 0, wanted->n_places * sizeof(*ret_places));
    wharf_orc_blocks_init(&blocks, &file->bytes, from->offset + from->nbytes, from->footer_nbytes);
    int r = wharf_orc_blocks_all(&blocks, WHARF_ORC_MAX_FOOTER_NBYTES, &bytes, &nbytes, ret_error);
    if (r < 0) {
        ret_error->where = stripe_footer;
        ret_error->stripe = stripe;
    } else {
        r = take_footer(file, stripe, bytes, nbytes, wanted, ret_places, ret_error);
    }
    free(bytes);
    wharf_orc_blocks_deinit(&blocks);
    return r;
}
