/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orc_file.c: reads the tail of an ORC file.
 *
 * An ORC file is read from its end: the last byte gives the size of the postscript, the postscript
 * that of the footer, and the footer lists types and stripes.  Each part is checked to lie before
 * the one that was read last.
 */
#include "encoders/orc/orc_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "encoders/orc/orc_message.h"

/* A file's end while it is read, from its last byte backwards. */
struct tail {
    struct wharf_orc_file *file;
    struct wharf_orc_error *error;
    uint64_t footer_end; /* offset of the postscript */
};

static int fail_at(const struct tail *tail, enum wharf_orc_trouble trouble, const char *where,
                   const char *what, uint64_t offset)
{
    wharf_orc_fail(trouble, what, offset, tail->error);
    tail->error->where = where;
    return -1;
}

static int fail_system(const struct tail *tail, const char *where, int error)
{
    wharf_orc_fail_system(error, tail->footer_end, tail->error);
    tail->error->where = where;
    return -1;
}

/* ---- postscript ---------------------------------------------------------------------------- */

static const char postscript[] = "the postscript";

static int fail_postscript(const struct tail *tail, enum wharf_orc_trouble trouble,
                           const char *what)
{
    return fail_at(tail, trouble, postscript, what, tail->footer_end);
}

static const char *name_of_unknown(uint32_t compression)
{
    if (compression == WHARF_ORC_LZO)
        return "the file is compressed by LZO, which wharf does not have";
    return "the file is compressed by what wharf does not know";
}

static int take_postscript(struct tail *tail, const Wharf__Orc__PostScript *message)
{
    struct wharf_orc_file *file = tail->file;

    if (message->n_version > 0 && message->version[0] > 0)
        return fail_postscript(tail, WHARF_ORC_UNKNOWN, "the format's major version is not 0");
    file->bytes.compression = message->compression;
    if (file->bytes.compression > WHARF_ORC_ZSTD || file->bytes.compression == WHARF_ORC_LZO)
        return fail_postscript(tail, WHARF_ORC_UNKNOWN, name_of_unknown(file->bytes.compression));
    file->bytes.block_nbytes = WHARF_ORC_DEFAULT_BLOCK_NBYTES;
    if (file->bytes.compression != WHARF_ORC_NONE) {
        uint64_t nbytes =
            message->has_block_nbytes ? message->block_nbytes : WHARF_ORC_DEFAULT_BLOCK_NBYTES;
        if (nbytes == 0 || nbytes > WHARF_ORC_MAX_BLOCK_NBYTES)
            return fail_postscript(tail, WHARF_ORC_DAMAGED, "the block size is not possible");
        file->bytes.block_nbytes = (uint32_t)nbytes;
    }
    if (message->footer_nbytes > tail->footer_end)
        return fail_postscript(tail, WHARF_ORC_DAMAGED, "the footer is larger than the file");
    return 0;
}

static bool is_magic(const char *text)
{
    return text && strcmp(text, WHARF_ORC_MAGIC) == 0;
}

/* Old writers put the magic only at the file's beginning, not into the postscript. */
static int check_magic(const struct tail *tail, const Wharf__Orc__PostScript *message)
{
    const struct wharf_orc_source *source = &tail->file->bytes.source;
    char begin[sizeof(WHARF_ORC_MAGIC)] = {0};

    if (message && is_magic(message->magic))
        return 0;
    int r = source->nbytes < 3 ? 0 : source->read(source->context, 0, begin, 3);
    if (r < 0)
        return fail_system(tail, postscript, r);
    if (!is_magic(begin))
        return fail_at(tail, WHARF_ORC_DAMAGED, NULL, "it is no ORC file", 0);
    return message ? 0 : fail_postscript(tail, WHARF_ORC_DAMAGED, "it is no message");
}

/* *ret_footer_nbytes is the size of the footer, which is before the postscript. */
static int read_postscript(struct tail *tail, uint64_t *ret_footer_nbytes)
{
    const struct wharf_orc_source *source = &tail->file->bytes.source;
    uint8_t bytes[WHARF_ORC_MAX_POSTSCRIPT_NBYTES + 1];
    size_t n = source->nbytes < sizeof(bytes) ? (size_t)source->nbytes : sizeof(bytes);

    if (n == 0)
        return fail_at(tail, WHARF_ORC_DAMAGED, NULL, "it is empty", 0);
    int r = source->read(source->context, source->nbytes - n, bytes, n);
    if (r < 0)
        return fail_system(tail, postscript, r);
    size_t nbytes = bytes[n - 1];
    tail->footer_end = source->nbytes - 1;
    if (nbytes > n - 1)
        return check_magic(tail, NULL);
    tail->footer_end -= nbytes;
    Wharf__Orc__PostScript *message = wharf_orc_parse_postscript(bytes + n - 1 - nbytes, nbytes);
    r = check_magic(tail, message);
    if (r == 0)
        r = take_postscript(tail, message);
    if (r == 0)
        *ret_footer_nbytes = message->footer_nbytes;
    wharf_orc_message_free(message);
    return r;
}

/* ---- types --------------------------------------------------------------------------------- */

static const char footer_text[] = "the footer";

static int fail_footer(const struct tail *tail, enum wharf_orc_trouble trouble, const char *what)
{
    if (trouble == WHARF_ORC_SYSTEM)
        return fail_system(tail, footer_text, -ENOMEM);
    return fail_at(tail, trouble, footer_text, what, tail->footer_end);
}

/* Sets the parents of the type's subtypes.  Children have higher numbers and one parent each, so
 * that no cycle is possible. */
static bool take_type(struct wharf_orc_file *file, uint32_t number, const Wharf__Orc__Type *type)
{
    file->types[number].kind = type->kind;
    if (type->kind == WHARF_ORC_STRUCT && type->n_field_names != type->n_subtypes)
        return false;
    for (size_t i = 0; i < type->n_subtypes; i++) {
        uint32_t child = type->subtypes[i];
        if (child <= number || child >= file->n_types ||
            file->types[child].parent != WHARF_ORC_NOWHERE)
            return false;
        file->types[child].parent = number;
        if (type->kind == WHARF_ORC_STRUCT)
            file->types[child].name = type->field_names[i];
    }
    return true;
}

static int take_types(struct tail *tail, const Wharf__Orc__Footer *footer)
{
    struct wharf_orc_file *file = tail->file;

    if (footer->n_types == 0 || footer->n_types >= WHARF_ORC_NOWHERE)
        return fail_footer(tail, WHARF_ORC_DAMAGED, "there are no types");
    file->types = calloc(footer->n_types, sizeof(*file->types));
    if (!file->types)
        return fail_footer(tail, WHARF_ORC_SYSTEM, NULL);
    file->n_types = (uint32_t)footer->n_types;
    for (uint32_t i = 0; i < file->n_types; i++)
        file->types[i].parent = WHARF_ORC_NOWHERE;
    for (uint32_t i = 0; i < file->n_types; i++)
        if (!take_type(file, i, footer->types[i]))
            return fail_footer(tail, WHARF_ORC_DAMAGED, "the types are no tree");
    return 0;
}

/* ---- stripes ------------------------------------------------------------------------------- */

/* Whether the stripe is within the file, before the footer. */
static bool take_stripe(const struct tail *tail, const Wharf__Orc__StripeInformation *from,
                        struct wharf_orc_stripe *stripe)
{
    const uint64_t parts[] = {from->offset, from->index_nbytes, from->data_nbytes,
                              from->footer_nbytes};
    uint64_t left = tail->footer_end;

    for (unsigned i = 0; i < 4; i++) {
        if (parts[i] > left)
            return false;
        left -= parts[i];
    }
    stripe->offset = from->offset;
    stripe->nbytes = from->index_nbytes + from->data_nbytes;
    stripe->footer_nbytes = from->footer_nbytes;
    stripe->n_rows = from->n_rows;
    return true;
}

static int fail_stripe(const struct tail *tail, uint32_t stripe, const char *what)
{
    fail_footer(tail, WHARF_ORC_DAMAGED, what);
    tail->error->stripe = stripe;
    return -1;
}

/* Checks that the stripe begins behind the one before it.  Otherwise many stripes of a small file
 * could share one large footer or stream, which each of them would decode again. */
static int check_order(const struct tail *tail, uint32_t number)
{
    const struct wharf_orc_stripe *stripe = &tail->file->stripes[number];
    uint64_t end_before = 0;

    if (number > 0) {
        const struct wharf_orc_stripe *before = stripe - 1;
        end_before = before->offset + before->nbytes + before->footer_nbytes;
    }
    if (stripe->offset < end_before) {
        fail_stripe(tail, number, "the stripe begins before the end of the one before it, at byte");
        tail->error->offset = stripe->offset;
        tail->error->other = end_before;
        return -1;
    }
    if (stripe->footer_nbytes == 0)
        return fail_stripe(tail, number, "the stripe has no footer");
    return 0;
}

static int take_stripes(struct tail *tail, const Wharf__Orc__Footer *footer)
{
    struct wharf_orc_file *file = tail->file;
    uint64_t n_rows = 0;

    if (footer->n_stripes >= WHARF_ORC_NOWHERE)
        return fail_footer(tail, WHARF_ORC_DAMAGED, "there are too many stripes");
    file->stripes = calloc(footer->n_stripes ? footer->n_stripes : 1, sizeof(*file->stripes));
    if (!file->stripes)
        return fail_footer(tail, WHARF_ORC_SYSTEM, NULL);
    file->n_stripes = (uint32_t)footer->n_stripes;
    for (uint32_t i = 0; i < file->n_stripes; i++) {
        struct wharf_orc_stripe *stripe = &file->stripes[i];
        if (!take_stripe(tail, footer->stripes[i], stripe))
            return fail_stripe(tail, i, "a stripe is outside the file");
        if (check_order(tail, i) < 0)
            return -1;
        stripe->first_row = n_rows;
        /* Leaves 4 bits: also the number of bytes of a column of 8-byte values is below 2^63. */
        if (stripe->n_rows > (INT64_MAX >> 4) - n_rows)
            return fail_footer(tail, WHARF_ORC_DAMAGED, "there are more rows than any file has");
        n_rows += stripe->n_rows;
    }
    file->n_rows = n_rows;
    if (n_rows != footer->n_rows)
        return fail_footer(tail, WHARF_ORC_DAMAGED,
                           "its number of rows is not that of all stripes together");
    return 0;
}

/* ---- the file ------------------------------------------------------------------------------ */

static int take_footer(struct tail *tail, const uint8_t *bytes, size_t nbytes)
{
    Wharf__Orc__Footer *footer = wharf_orc_parse_footer(bytes, nbytes);

    if (!footer)
        return fail_footer(tail, WHARF_ORC_DAMAGED, "it is no message");
    tail->file->message = footer;
    if (footer->has_encryption)
        return fail_footer(tail, WHARF_ORC_UNKNOWN, "the file is encrypted");
    int r = take_types(tail, footer);
    return r < 0 ? r : take_stripes(tail, footer);
}

static int read_footer(struct tail *tail, uint64_t packed_nbytes)
{
    struct wharf_orc_blocks blocks;
    uint8_t *bytes = NULL;
    size_t nbytes = 0;

    tail->footer_end -= packed_nbytes;
    wharf_orc_blocks_init(&blocks, &tail->file->bytes, tail->footer_end, packed_nbytes);
    int r =
        wharf_orc_blocks_all(&blocks, WHARF_ORC_MAX_FOOTER_NBYTES, &bytes, &nbytes, tail->error);
    if (r < 0)
        tail->error->where = footer_text;
    else
        r = take_footer(tail, bytes, nbytes);
    free(bytes);
    wharf_orc_blocks_deinit(&blocks);
    return r;
}

int wharf_orc_file_open(const struct wharf_orc_source *source, struct wharf_orc_file *ret_file,
                        struct wharf_orc_error *ret_error)
{
    struct tail tail = {.file = ret_file, .error = ret_error};
    uint64_t footer_nbytes = 0;

    *ret_file = (struct wharf_orc_file){.bytes.source = *source};
    int r = read_postscript(&tail, &footer_nbytes);
    if (r == 0)
        r = read_footer(&tail, footer_nbytes);
    if (r < 0)
        wharf_orc_file_close(ret_file);
    return r;
}

void wharf_orc_file_close(struct wharf_orc_file *file)
{
    wharf_orc_message_free(file->message);
    free(file->types);
    free(file->stripes);
    file->message = NULL;
    file->types = NULL;
    file->stripes = NULL;
}

const char *wharf_orc_kind_name(uint32_t kind)
{
    static const char *const names[] = {
        "boolean",
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "float",
        "double",
        "string",
        "binary",
        "timestamp",
        "array",
        "map",
        "struct",
        "union",
        "decimal",
        "date",
        "varchar",
        "char",
        "timestamp with local time zone",
    };

    return kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "unknown";
}
