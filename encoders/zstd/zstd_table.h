/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_table.h: the tables that a block is decoded by: finite state entropy (FSE) for sequences and
 * for the weights of a tree, and the tree (Huffman) of literals.  They are read and verified as
 * zstd_format.h says, and made.
 */
#ifndef WHARF_ENCODERS_ZSTD_ZSTD_TABLE_H
#define WHARF_ENCODERS_ZSTD_ZSTD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "encoders/zstd/zstd_format.h"

/* How often each symbol has a state; -1: once, at the end of the table. */
struct wharf_zstd_counts {
    unsigned log;       /* the counts add up to 2^log */
    unsigned n_symbols; /* up to the last that has a state */
    int16_t counts[256];
};

/* One state: what it stands for, and how the next one is found: next + n_bits bits. */
struct wharf_zstd_cell {
    uint32_t base;   /* the symbol's value, */
    uint16_t next;   /*  */
    uint8_t n_bits;  /*  */
    uint8_t n_extra; /* to which so many bits are added */
};

/* What a symbol's value is: base + n_extra bits. */
struct wharf_zstd_symbol {
    uint32_t base;
    uint8_t n_extra;
};

/* What blocks hand on to later ones of their frame. */
struct wharf_zstd_tables {
    bool has_sequence_tables;
    uint8_t literal_length_log, offset_log, match_length_log;
    uint8_t tree_log; /* 0: there is no tree */
    struct wharf_zstd_cell literal_lengths[1 << WHARF_ZSTD_LITERAL_LENGTH_LOG];
    struct wharf_zstd_cell offsets[1 << WHARF_ZSTD_OFFSET_LOG];
    struct wharf_zstd_cell match_lengths[1 << WHARF_ZSTD_MATCH_LENGTH_LOG];
    /* By the next tree_log bits: the literal << 8 | how many of them it has. */
    uint16_t tree[1 << WHARF_ZSTD_TREE_MAX_NBITS];
};

/*
 * The description of a table of symbols 0 to max_symbol with at most 2^max_log states at `in`:
 * returns how many bytes it has, or 0 if it is not good or goes past in_nbytes.
 */
size_t wharf_zstd_read_counts(const uint8_t *in, size_t in_nbytes, unsigned max_symbol,
                              unsigned max_log, struct wharf_zstd_counts *ret_counts);

/* Makes the 2^log cells. */
void wharf_zstd_make_cells(const struct wharf_zstd_counts *counts,
                           const struct wharf_zstd_symbol *symbols, struct wharf_zstd_cell *cells);

/* Reads the tree at `in` and makes its table: returns how many bytes its description has, or 0 if
 * it is not good or goes past in_nbytes. */
size_t wharf_zstd_read_tree(const uint8_t *in, size_t in_nbytes, struct wharf_zstd_tables *tables);

/*
 * Reads the header of the sequences section in the in_nbytes at `in`, and makes its tables.
 *   ret_n_sequences  how many there are
 *   ret_nbytes       NONE: where the sequences' bits begin; else where the error stands
 */
enum wharf_reason wharf_zstd_read_sequences(const uint8_t *in, size_t in_nbytes,
                                            struct wharf_zstd_tables *tables,
                                            uint32_t *ret_n_sequences, size_t *ret_nbytes);

#endif
