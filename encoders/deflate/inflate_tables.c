/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_tables.c: decoding tables from code lengths.
 *
 * A table of 2^n entries is filled by doubling: code words are entered in the order of their
 * lengths, and the table so far is copied once for each further bit.  Words longer than n bits go
 * to second tables behind the first.  inflate_litlen.c fills the first table of literals and
 * lengths, whose entries may hold several symbols.
 */
#include "encoders/deflate/inflate_tables.h"

#include <pthread.h>
#include <string.h>

#include "encoders/deflate/inflate_litlen.h"
#include "proto/wharf_result.h"

/* The width of the second table that begins with a word of nbits: the least that its words, the
 * next ones in canonical order, fill. */
static unsigned subtable_width(const struct wharf_code *code, unsigned table_nbits, unsigned nbits,
                               unsigned left)
{
    unsigned width = nbits - table_nbits;
    unsigned room = 1u << width;

    while (room > left) {
        room = 2 * (room - left);
        width++;
        left = code->n_words[table_nbits + width];
    }
    return width;
}

/*
 * Second tables, for the words longer than table_nbits.  Words that share their first bits are
 * neighbours in canonical order, so each table is finished before the next one begins.
 */
static void fill_subtables(uint32_t *table, unsigned table_nbits, const struct wharf_code *code,
                           const uint32_t *templates)
{
    const unsigned mask = (1u << table_nbits) - 1;
    unsigned end = 1u << table_nbits;
    unsigned start = end;
    unsigned width = 0;
    unsigned prefix = ~0u;

    for (unsigned nbits = table_nbits + 1; nbits <= code->max_nbits; nbits++)
        for (unsigned i = code->first[nbits]; i < code->first[nbits + 1]; i++) {
            unsigned word = code->words[i];
            if ((word & mask) != prefix) {
                prefix = word & mask;
                start = end;
                width = subtable_width(code, table_nbits, nbits, code->first[nbits + 1] - i);
                end += 1u << width;
                table[prefix] = WHARF_ENTRY_SPECIAL | WHARF_ENTRY_SUBTABLE | start << 16 |
                                table_nbits << 8 | (table_nbits + width);
            }
            uint32_t entry = wharf_inflate_entry(templates[code->symbols[i]], nbits);
            unsigned step = 1u << (nbits - table_nbits);
            for (unsigned at = word >> table_nbits; at < 1u << width; at += step)
                table[start + at] = entry;
        }
}

/* Always of its full width, so that the index is a byte. */
static void fill_distance(uint32_t *table, const struct wharf_code *code)
{
    table[0] = table[1] = WHARF_ENTRY_OF_INVALID | 1 << 8 | 1;
    for (unsigned nbits = 1; nbits <= WHARF_DISTANCE_TABLE_NBITS; nbits++) {
        if (nbits > 1)
            memcpy(table + (1u << (nbits - 1)), table, sizeof(*table) << (nbits - 1));
        for (unsigned i = code->first[nbits]; i < code->first[nbits + 1]; i++)
            table[code->words[i]] =
                wharf_inflate_entry(wharf_inflate_distances[code->symbols[i]], nbits);
    }
    fill_subtables(table, WHARF_DISTANCE_TABLE_NBITS, code, wharf_inflate_distances);
}

uint32_t wharf_inflate_tables_dynamic(struct wharf_inflate_tables *tables, uint64_t expected_nbits)
{
    struct wharf_code litlen, distance;

    enum wharf_code_kind kind = wharf_code_init(&litlen, &tables->lengths, WHARF_CODE_LITLEN);
    if (kind == WHARF_CODE_BAD)
        return WHARF_REASON_DEFLATE_LITLEN_CODE;
    if (wharf_code_init(&distance, &tables->lengths, WHARF_CODE_DISTANCE) == WHARF_CODE_BAD)
        return WHARF_REASON_DEFLATE_DISTANCE_CODE;
    fill_distance(tables->distance, &distance);
    if (kind == WHARF_CODE_TRIVIAL) {
        tables->litlen[0] = wharf_inflate_entry(WHARF_ENTRY_OF_END, 1);
        tables->litlen[1] = wharf_inflate_entry(WHARF_ENTRY_OF_INVALID, 1);
        tables->litlen_nbits = 1;
        return WHARF_REASON_NONE;
    }
    tables->litlen_nbits =
        wharf_inflate_fill_litlen(tables->litlen, &litlen, &distance, expected_nbits);
    fill_subtables(tables->litlen, tables->litlen_nbits, &litlen, wharf_inflate_litlen_templates);
    return WHARF_REASON_NONE;
}

static struct wharf_inflate_tables fixed_tables;

static void make_fixed_tables(void)
{
    struct wharf_code_lengths *lengths = &fixed_tables.lengths;

    /* RFC 1951 section 3.2.6. */
    memset(lengths->nbits, 8, 144);
    memset(lengths->nbits + 144, 9, 256 - 144);
    memset(lengths->nbits + 256, 7, 280 - 256);
    memset(lengths->nbits + 280, 8, WHARF_DEFLATE_N_LITLEN_FIXED - 280);
    memset(lengths->nbits + WHARF_DEFLATE_N_LITLEN_FIXED, 5, WHARF_DEFLATE_N_DISTANCE_FIXED);
    lengths->n_litlen = WHARF_DEFLATE_N_LITLEN_FIXED;
    for (unsigned i = 0; i < WHARF_DEFLATE_N_LITLEN_FIXED + WHARF_DEFLATE_N_DISTANCE_FIXED; i++)
        lengths->used[i] = (uint16_t)i;
    lengths->n_words[WHARF_CODE_LITLEN][7] = 280 - 256;
    lengths->n_words[WHARF_CODE_LITLEN][8] = 144 + (WHARF_DEFLATE_N_LITLEN_FIXED - 280);
    lengths->n_words[WHARF_CODE_LITLEN][9] = 256 - 144;
    lengths->n_words[WHARF_CODE_DISTANCE][5] = WHARF_DEFLATE_N_DISTANCE_FIXED;
    wharf_inflate_tables_dynamic(&fixed_tables, 0);
}

const struct wharf_inflate_tables *wharf_inflate_tables_fixed(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, make_fixed_tables);
    return &fixed_tables;
}
