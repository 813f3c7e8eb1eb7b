/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_sequences.c: the header of a sequences section, and its three tables.
 *
 * RFC 8878, section 3.1.1.3.2.  A sequence is a code for each of literal length, offset and match
 * length, and some further bits for each, which are added to what the code stands for.  Each kind
 * has a table of states (FSE, zstd_table.h), whose cells here hold that base and number of bits
 * straight away, so that the loop over sequences looks nothing else up.
 */
#include "encoders/little_endian.h"
#include "encoders/zstd/zstd_table.h"

#include "proto/wharf_result.h"

/* Base and further bits of each code: the RFC's tables in section 3.1.1.3.2.1.1. */
static const struct wharf_zstd_symbol literal_lengths[WHARF_ZSTD_N_LITERAL_LENGTHS] = {
    {0, 0},     {1, 0},      {2, 0},      {3, 0},      {4, 0},   {5, 0},     {6, 0},     {7, 0},
    {8, 0},     {9, 0},      {10, 0},     {11, 0},     {12, 0},  {13, 0},    {14, 0},    {15, 0},
    {16, 1},    {18, 1},     {20, 1},     {22, 1},     {24, 2},  {28, 2},    {32, 3},    {40, 3},
    {48, 4},    {64, 6},     {128, 7},    {256, 8},    {512, 9}, {1024, 10}, {2048, 11}, {4096, 12},
    {8192, 13}, {16384, 14}, {32768, 15}, {65536, 16},
};

static const struct wharf_zstd_symbol match_lengths[WHARF_ZSTD_N_MATCH_LENGTHS] = {
    {3, 0},     {4, 0},     {5, 0},      {6, 0},      {7, 0},      {8, 0},   {9, 0},     {10, 0},
    {11, 0},    {12, 0},    {13, 0},     {14, 0},     {15, 0},     {16, 0},  {17, 0},    {18, 0},
    {19, 0},    {20, 0},    {21, 0},     {22, 0},     {23, 0},     {24, 0},  {25, 0},    {26, 0},
    {27, 0},    {28, 0},    {29, 0},     {30, 0},     {31, 0},     {32, 0},  {33, 0},    {34, 0},
    {35, 1},    {37, 1},    {39, 1},     {41, 1},     {43, 2},     {47, 2},  {51, 3},    {59, 3},
    {67, 4},    {83, 4},    {99, 5},     {131, 7},    {259, 8},    {515, 9}, {1027, 10}, {2051, 11},
    {4099, 12}, {8195, 13}, {16387, 14}, {32771, 15}, {65539, 16},
};

/* Of code n: 2^n and n bits. */
#define OFFSET(n)                                                                                  \
    {                                                                                              \
        UINT32_C(1) << (n), n                                                                      \
    }
static const struct wharf_zstd_symbol offsets[WHARF_ZSTD_N_OFFSETS] = {
    OFFSET(0),  OFFSET(1),  OFFSET(2),  OFFSET(3),  OFFSET(4),  OFFSET(5),  OFFSET(6),  OFFSET(7),
    OFFSET(8),  OFFSET(9),  OFFSET(10), OFFSET(11), OFFSET(12), OFFSET(13), OFFSET(14), OFFSET(15),
    OFFSET(16), OFFSET(17), OFFSET(18), OFFSET(19), OFFSET(20), OFFSET(21), OFFSET(22), OFFSET(23),
    OFFSET(24), OFFSET(25), OFFSET(26), OFFSET(27), OFFSET(28), OFFSET(29), OFFSET(30), OFFSET(31),
};

/* What a table is without a description: the RFC's section 3.1.1.3.2.2, log and number of symbols
 * first.  -1 is a probability below 1, which has one cell at the table's end. */
static const struct wharf_zstd_counts usual_literal_lengths = {
    6, 36, {4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1,  1,  2,  2,
            2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1}};
static const struct wharf_zstd_counts usual_match_lengths = {
    6, 53, {1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,  1,  1,  1,  1,  1,  1, 1,
            1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1}};
static const struct wharf_zstd_counts usual_offsets = {5, 29, {1, 1, 1, 1, 1,  1,  2,  2,  2, 1,
                                                               1, 1, 1, 1, 1,  1,  1,  1,  1, 1,
                                                               1, 1, 1, 1, -1, -1, -1, -1, -1}};

/* The three kinds of table: what their symbols are, and where the cells and their log go. */
struct kind {
    const struct wharf_zstd_symbol *symbols;
    unsigned n_symbols;
    unsigned max_log;
    const struct wharf_zstd_counts *usual;
};

static const struct kind literal_length_kind = {literal_lengths, WHARF_ZSTD_N_LITERAL_LENGTHS,
                                                WHARF_ZSTD_LITERAL_LENGTH_LOG,
                                                &usual_literal_lengths};
static const struct kind offset_kind = {offsets, WHARF_ZSTD_N_OFFSETS, WHARF_ZSTD_OFFSET_LOG,
                                        &usual_offsets};
static const struct kind match_length_kind = {match_lengths, WHARF_ZSTD_N_MATCH_LENGTHS,
                                              WHARF_ZSTD_MATCH_LENGTH_LOG, &usual_match_lengths};

/* Two bits for each table in the byte behind the number of sequences. */
enum { MODE_USUAL = 0, MODE_ONE = 1, MODE_DESCRIBED = 2, MODE_REPEAT = 3 };

/* One table at in[*at], where *at goes on behind its description; false: it is not good. */
static bool read_table(const struct kind *kind, unsigned mode, bool has_one, const uint8_t *in,
                       size_t in_nbytes, size_t *at, struct wharf_zstd_cell *cells, uint8_t *log)
{
    struct wharf_zstd_counts counts;

    /* The tables of the block before are still in `cells`.  At a frame's beginning there are none,
     * and what an earlier frame left must not be used: the stream would decode otherwise than when
     * the frame stands alone. */
    if (mode == MODE_REPEAT)
        return has_one;
    if (mode == MODE_USUAL) {
        *log = (uint8_t)kind->usual->log;
        wharf_zstd_make_cells(kind->usual, kind->symbols, cells);
        return true;
    }
    if (mode == MODE_ONE) {
        uint8_t symbol = *at < in_nbytes ? in[*at] : UINT8_MAX;
        if (symbol >= kind->n_symbols)
            return false;
        /* One state that takes no bits and leads to itself. */
        cells[0] = (struct wharf_zstd_cell){.base = kind->symbols[symbol].base,
                                            .n_extra = kind->symbols[symbol].n_extra};
        *log = 0;
        *at += 1;
        return true;
    }
    /* Bounds what is read before a cell is made: the number of symbols by the kind, and the log by
     * the room that `cells` has. */
    size_t nbytes = wharf_zstd_read_counts(in + *at, in_nbytes - *at, kind->n_symbols - 1,
                                           kind->max_log, &counts);
    if (nbytes == 0)
        return false;
    wharf_zstd_make_cells(&counts, kind->symbols, cells);
    *log = (uint8_t)counts.log;
    *at += nbytes;
    return true;
}

static bool read_tables(unsigned modes, const uint8_t *in, size_t in_nbytes, size_t *at,
                        struct wharf_zstd_tables *tables)
{
    bool has = tables->has_sequence_tables;

    return read_table(&literal_length_kind, modes >> 6, has, in, in_nbytes, at,
                      tables->literal_lengths, &tables->literal_length_log) &&
           read_table(&offset_kind, modes >> 4 & 3, has, in, in_nbytes, at, tables->offsets,
                      &tables->offset_log) &&
           read_table(&match_length_kind, modes >> 2 & 3, has, in, in_nbytes, at,
                      tables->match_lengths, &tables->match_length_log);
}

/* The number of sequences, of which *ret_nbytes say it; false: they are not all there. */
static bool read_number(const uint8_t *in, size_t in_nbytes, uint32_t *ret_n, size_t *ret_nbytes)
{
    /* One, two or three bytes, as the first one says; a small number may come in two. */
    uint32_t first = in_nbytes > 0 ? in[0] : 0;
    size_t nbytes = first < 128 ? 1 : first < 255 ? 2 : 3;

    if (nbytes > in_nbytes)
        return false;
    if (nbytes == 1)
        *ret_n = first;
    else if (nbytes == 2)
        *ret_n = (first - 128) << 8 | in[1];
    else
        *ret_n = wharf_load_le16(in + 1) + 0x7f00;
    *ret_nbytes = nbytes;
    return true;
}

enum wharf_reason wharf_zstd_read_sequences(const uint8_t *in, size_t in_nbytes,
                                            struct wharf_zstd_tables *tables,
                                            uint32_t *ret_n_sequences, size_t *ret_nbytes)
{
    size_t at;

    *ret_nbytes = 0;
    if (!read_number(in, in_nbytes, ret_n_sequences, &at))
        return WHARF_REASON_ZSTD_SEQUENCES_HEADER;
    /* Without sequences the section ends here: all output is literals. */
    if (*ret_n_sequences == 0) {
        *ret_nbytes = at == in_nbytes ? at : 0;
        return at == in_nbytes ? WHARF_REASON_NONE : WHARF_REASON_ZSTD_SEQUENCES_HEADER;
    }
    /* The lowest two bits are reserved; a byte that is not there fails with them. */
    uint8_t modes = at < in_nbytes ? in[at] : UINT8_MAX;
    if (modes & 3)
        return WHARF_REASON_ZSTD_SEQUENCES_HEADER;
    at++;
    bool is_good = read_tables(modes, in, in_nbytes, &at, tables);
    *ret_nbytes = at;
    if (!is_good)
        return WHARF_REASON_ZSTD_TABLE;
    tables->has_sequence_tables = true;
    return WHARF_REASON_NONE;
}
