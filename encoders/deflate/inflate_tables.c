/* SPDX-License-Identifier: Apache-2.0 */
#include "encoders/deflate/inflate_tables.h"

#include <string.h>

#include "proto/wharf_result.h"

/* Entries without their code bits: extra bits, flags and value. */
#define LITERAL(value) (WHARF_ENTRY_LITERAL | (uint32_t)(value) << 16)
#define BASE(base, extra) ((uint32_t)(base) << 16 | (extra))
#define END (WHARF_ENTRY_SPECIAL | WHARF_ENTRY_END << 16)
#define INVALID (WHARF_ENTRY_SPECIAL | WHARF_ENTRY_INVALID << 16)

#define LITERALS_4(v) LITERAL(v), LITERAL((v) + 1), LITERAL((v) + 2), LITERAL((v) + 3)
#define LITERALS_16(v) LITERALS_4(v), LITERALS_4((v) + 4), LITERALS_4((v) + 8), LITERALS_4((v) + 12)
#define LITERALS_64(v)                                                                             \
    LITERALS_16(v), LITERALS_16((v) + 16), LITERALS_16((v) + 32), LITERALS_16((v) + 48)

static const uint32_t litlen_templates[WHARF_DEFLATE_N_LITLEN_FIXED] = {
    LITERALS_64(0),
    LITERALS_64(64),
    LITERALS_64(128),
    LITERALS_64(192),
    END,
    WHARF_DEFLATE_LENGTH_LIST(BASE),
    INVALID,
    INVALID,
};
static const uint32_t distance_templates[WHARF_DEFLATE_N_DISTANCE_FIXED] = {
    WHARF_DEFLATE_DISTANCE_LIST(BASE),
    INVALID,
    INVALID,
};

/* The code words of a code, in order of length and symbol. */
struct code {
    unsigned n_words[WHARF_DEFLATE_MAX_CODE_NBITS + 1];
    unsigned max_nbits;
    uint16_t symbols[WHARF_DEFLATE_N_LITLEN_FIXED];
};

/* The words left over in the code, in units of the longest possible word: 0 when it is complete;
 * negative when it is over-subscribed, and then *code is undefined. */
static int count_words(struct code *code, const uint8_t *lengths, unsigned n_symbols)
{
    int left = 1;

    memset(code->n_words, 0, sizeof(code->n_words));
    for (unsigned i = 0; i < n_symbols; i++)
        code->n_words[lengths[i]]++;
    code->n_words[0] = 0;
    code->max_nbits = 0;
    for (unsigned nbits = 1; nbits <= WHARF_DEFLATE_MAX_CODE_NBITS; nbits++) {
        left = 2 * left - (int)code->n_words[nbits];
        if (left < 0)
            return left;
        if (code->n_words[nbits])
            code->max_nbits = nbits;
    }
    return left;
}

static void sort_symbols(struct code *code, const uint8_t *lengths, unsigned n_symbols)
{
    unsigned at[WHARF_DEFLATE_MAX_CODE_NBITS + 1];

    at[1] = 0;
    for (unsigned nbits = 1; nbits < WHARF_DEFLATE_MAX_CODE_NBITS; nbits++)
        at[nbits + 1] = at[nbits] + code->n_words[nbits];
    for (unsigned i = 0; i < n_symbols; i++)
        if (lengths[i])
            code->symbols[at[lengths[i]]++] = i;
}

/* The word after `word` of nbits in canonical order, both with their bits reversed: adds one at
 * the far end.  The last word, all ones, has none: then it is 0. */
static unsigned next_word(unsigned word, unsigned nbits)
{
    unsigned zeros = word ^ ((1u << nbits) - 1);

    if (!zeros)
        return 0;
    unsigned top = 1u << (31 - __builtin_clz(zeros));
    return (word & (top - 1)) | top;
}

/*
 * Second tables for the words longer than table_nbits, of which `word` is the first and
 * code->symbols[i] its symbol.  Words that share their first table_nbits bits are neighbours, and
 * the longest comes last: the second table is as wide as the words from here on need to fill it.
 */
static void fill_subtables(uint32_t *table, unsigned table_nbits, const struct code *code,
                           const uint32_t *templates, unsigned i, unsigned word, unsigned nbits)
{
    unsigned end = 1u << table_nbits;
    unsigned start = 0;
    unsigned sub_nbits = 0;
    unsigned prefix = ~0u;
    unsigned left = code->n_words[nbits];

    for (;;) {
        while (left == 0) {
            if (nbits == code->max_nbits)
                return;
            left = code->n_words[++nbits];
        }
        if ((word & ((1u << table_nbits) - 1)) != prefix) {
            prefix = word & ((1u << table_nbits) - 1);
            start = end;
            sub_nbits = nbits - table_nbits;
            unsigned room = (1u << sub_nbits) - (left < (1u << sub_nbits) ? left : 1u << sub_nbits);
            while (room) {
                sub_nbits++;
                unsigned n = code->n_words[table_nbits + sub_nbits];
                room = 2 * room - (n < 2 * room ? n : 2 * room);
            }
            end += 1u << sub_nbits;
            table[prefix] = WHARF_ENTRY_SPECIAL | WHARF_ENTRY_SUBTABLE | start << 16 |
                            table_nbits << 8 | (table_nbits + sub_nbits);
        }
        uint32_t entry = templates[code->symbols[i++]] + nbits * 0x101;
        for (unsigned at = word >> table_nbits; at < 1u << sub_nbits;
             at += 1u << (nbits - table_nbits))
            table[start + at] = entry;
        word = next_word(word, nbits);
        left--;
    }
}

/*
 * The first table, at most max_nbits wide: filled for the shortest words, then doubled for each
 * further bit.  Returns its width.
 */
static unsigned fill_table(uint32_t *table, unsigned max_nbits, const struct code *code,
                           const uint32_t *templates)
{
    unsigned width = code->max_nbits < max_nbits ? code->max_nbits : max_nbits;
    unsigned nbits = 1;
    unsigned word = 0;
    unsigned i = 0;

    while (code->n_words[nbits] == 0)
        nbits++;
    for (;; nbits++) {
        for (unsigned n = nbits <= width ? code->n_words[nbits] : 0; n; n--) {
            table[word] = templates[code->symbols[i++]] + nbits * 0x101;
            word = next_word(word, nbits);
        }
        if (nbits >= width)
            break;
        memcpy(table + (1u << nbits), table, sizeof(*table) << nbits);
    }
    if (width < code->max_nbits)
        fill_subtables(table, width, code, templates, i, word, width + 1);
    return width;
}

/*
 * The whole table of one code.  Incomplete codes that are good all the same, see
 * deflate_format.h: a single word of one bit, and no word at all.
 */
static bool build_code(uint32_t *table, unsigned *table_nbits, unsigned max_nbits,
                       const uint8_t *lengths, unsigned n_symbols, const uint32_t *templates)
{
    struct code code;
    int left = count_words(&code, lengths, n_symbols);

    if (left < 0 || (left > 0 && code.max_nbits > 1))
        return false;
    if (left > 0)
        table[0] = table[1] = INVALID + 0x101;
    *table_nbits = 1;
    if (code.max_nbits == 0)
        return true;
    sort_symbols(&code, lengths, n_symbols);
    *table_nbits = fill_table(table, max_nbits, &code, templates);
    return true;
}

uint32_t wharf_inflate_tables_dynamic(struct wharf_inflate_tables *tables,
                                      const uint8_t *litlen_lengths, unsigned n_litlen,
                                      const uint8_t *distance_lengths, unsigned n_distance)
{
    tables->fixed = false;
    if (!build_code(tables->litlen, &tables->litlen_nbits, WHARF_LITLEN_TABLE_NBITS, litlen_lengths,
                    n_litlen, litlen_templates))
        return WHARF_REASON_DEFLATE_LITLEN_CODE;
    if (!build_code(tables->distance, &tables->distance_nbits, WHARF_DISTANCE_TABLE_NBITS,
                    distance_lengths, n_distance, distance_templates))
        return WHARF_REASON_DEFLATE_DISTANCE_CODE;
    return WHARF_REASON_NONE;
}

void wharf_inflate_tables_fixed(struct wharf_inflate_tables *tables)
{
    uint8_t lengths[WHARF_DEFLATE_N_LITLEN_FIXED + WHARF_DEFLATE_N_DISTANCE_FIXED];
    uint8_t *distance_lengths = lengths + WHARF_DEFLATE_N_LITLEN_FIXED;

    if (tables->fixed)
        return;
    /* RFC 1951 section 3.2.6. */
    memset(lengths, 8, 144);
    memset(lengths + 144, 9, 256 - 144);
    memset(lengths + 256, 7, 280 - 256);
    memset(lengths + 280, 8, WHARF_DEFLATE_N_LITLEN_FIXED - 280);
    memset(distance_lengths, 5, WHARF_DEFLATE_N_DISTANCE_FIXED);
    wharf_inflate_tables_dynamic(tables, lengths, WHARF_DEFLATE_N_LITLEN_FIXED, distance_lengths,
                                 WHARF_DEFLATE_N_DISTANCE_FIXED);
    tables->fixed = true;
}

uint32_t wharf_inflate_precode_table(uint8_t table[WHARF_PRECODE_ENTRIES],
                                     const uint8_t lengths[WHARF_DEFLATE_N_PRECODE])
{
    struct code code;
    int left = count_words(&code, lengths, WHARF_DEFLATE_N_PRECODE);
    unsigned word = 0;

    if (left > 0 && code.max_nbits == 0) {
        memset(table, 0 << 3 | 1, WHARF_PRECODE_ENTRIES);
        return WHARF_REASON_NONE;
    }
    if (left != 0)
        return WHARF_REASON_DEFLATE_PRECODE;
    sort_symbols(&code, lengths, WHARF_DEFLATE_N_PRECODE);
    for (unsigned nbits = 1, i = 0; nbits <= WHARF_DEFLATE_MAX_PRECODE_NBITS; nbits++)
        for (unsigned n = code.n_words[nbits]; n; n--) {
            uint8_t entry = code.symbols[i++] << 3 | nbits;
            for (unsigned at = word; at < WHARF_PRECODE_ENTRIES; at += 1u << nbits)
                table[at] = entry;
            word = next_word(word, nbits);
        }
    return WHARF_REASON_NONE;
}
