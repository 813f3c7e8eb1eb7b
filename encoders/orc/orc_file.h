/* SPDX-License-Identifier: Apache-2.0 */
/*
 * orc_file.h: what an ORC file has: types and stripes, by its footer (orc_format.h).
 *
 * Every byte of the file is hostile.  Memory is bounded by the size of the footer, and time by that
 * of what is read.  All functions return 0, or -1 with *ret_error filled.
 */
#ifndef WHARF_ENCODERS_ORC_ORC_FILE_H
#define WHARF_ENCODERS_ORC_ORC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/orc/orc_blocks.h"

struct wharf_orc_type {
    uint32_t kind;    /* any number: enum wharf_orc_kind has those that wharf knows */
    uint32_t parent;  /* WHARF_ORC_NOWHERE for the root, and for what is in nothing */
    const char *name; /* of a structure's field, without a 0 byte in it; else NULL */
};

struct wharf_orc_stripe {
    uint64_t offset;        /* in the file, of its first stream */
    uint64_t nbytes;        /* of all streams */
    uint64_t footer_nbytes; /* of the stripe footer behind them */
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
    void *message; /* the footer, which has the names */
};

/* Reads the end of a file.  The source is copied. */
int wharf_orc_file_open(const struct wharf_orc_source *source, struct wharf_orc_file *ret_file,
                        struct wharf_orc_error *ret_error);
void wharf_orc_file_close(struct wharf_orc_file *file);

/* What a kind is called, as in SQL: "bigint". */
const char *wharf_orc_kind_name(uint32_t kind);

#endif
