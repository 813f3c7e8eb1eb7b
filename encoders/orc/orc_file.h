/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orc_file.h: reads the tail of an ORC file: its types and stripes, from postscript and footer.
 *
 * The file may be hostile.  Memory is bounded by the footer's size, and time by the bytes that are
 * read.  Stripes must lie in file order, must not overlap, and must have a footer each.  So a file
 * has at most as many stripes as bytes, and no byte belongs to two stripes.
 *
 * Functions return 0, or -1 with *ret_error filled.
 */
#ifndef WHARF_ENCODERS_ORC_ORC_FILE_H
#define WHARF_ENCODERS_ORC_ORC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/orc/orc_blocks.h"

struct wharf_orc_type {
    uint32_t kind;    /* as in the file; enum wharf_orc_kind has those that wharf knows */
    uint32_t parent;  /* WHARF_ORC_NOWHERE for the root, and for a type that is part of none */
    const char *name; /* a structure's field: its name, without 0 bytes; else NULL */
};

struct wharf_orc_stripe {
    uint64_t offset;        /* in the file: where the first stream begins */
    uint64_t nbytes;        /* all streams together */
    uint64_t footer_nbytes; /* the stripe footer, which follows the streams */
    uint64_t first_row;
    uint64_t n_rows;
};

struct wharf_orc_file {
    struct wharf_orc_bytes bytes;
    uint64_t n_rows;
    uint32_t n_types;
    struct wharf_orc_type *types;
    uint32_t n_stripes;
    struct wharf_orc_stripe *stripes;
    void *message; /* the parsed footer, which owns the names */
};

/* Reads the tail of a file.  Copies *source. */
int wharf_orc_file_open(const struct wharf_orc_source *source, struct wharf_orc_file *ret_file,
                        struct wharf_orc_error *ret_error);
void wharf_orc_file_close(struct wharf_orc_file *file);

/* The SQL name of a type: "bigint". */
const char *wharf_orc_kind_name(uint32_t kind);

#endif
