/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_code.c: canonical codes from lengths: counts, order, words (RFC 1951, section 3.2.2).
 *
 * Whether a code is good follows from its counts alone: what the shorter words leave over doubles
 * with each bit, and must be used up at the end.
 */
#include "encoders/deflate/inflate_code.h"

#include <string.h>

/* Fills first[] and max_nbits from n_words[], and checks the code. */
static enum wharf_code_kind check_counts(struct wharf_code *code)
{
    int left = 1; /* words of the length at hand that the shorter ones leave over */
    unsigned n = 0;

    code->max_nbits = 0;
    for (unsigned nbits = 1; nbits <= WHARF_DEFLATE_MAX_CODE_NBITS; nbits++) {
        code->first[nbits] = (uint16_t)n;
        n += code->n_words[nbits];
        left = 2 * left - (int)code->n_words[nbits];
        if (left < 0)
            return WHARF_CODE_BAD;
        if (code->n_words[nbits])
            code->max_nbits = nbits;
    }
    code->first[WHARF_DEFLATE_MAX_CODE_NBITS + 1] = (uint16_t)n;
    if (left == 0)
        return WHARF_CODE_COMPLETE;
    return code->max_nbits <= 1 ? WHARF_CODE_TRIVIAL : WHARF_CODE_BAD;
}

/*
 * Puts the symbols into their order, from both ends: each end is a chain of loads and stores of
 * one counter as long as there are symbols of the same length in a row.
 */
static void sort_symbols(struct wharf_code *code, const struct wharf_code_lengths *lengths,
                         const uint16_t *used, unsigned n_used, unsigned first_symbol)
{
    uint16_t up[WHARF_DEFLATE_MAX_CODE_NBITS + 1];
    uint16_t down[WHARF_DEFLATE_MAX_CODE_NBITS + 1];
    const uint16_t *last = used + n_used;

    memcpy(up, code->first, sizeof(up));
    memcpy(down, code->first + 1, sizeof(down));
    for (unsigned n = n_used / 2; n; n--) {
        unsigned symbol = *used++;
        code->symbols[up[lengths->nbits[symbol]]++] = (uint16_t)(symbol - first_symbol);
        symbol = *--last;
        code->symbols[--down[lengths->nbits[symbol]]] = (uint16_t)(symbol - first_symbol);
    }
    if (n_used & 1)
        code->symbols[up[lengths->nbits[*used]]] = (uint16_t)(*used - first_symbol);
}

#define REVERSED_4(v) (v), (v) + 0x80, (v) + 0x40, (v) + 0xc0
#define REVERSED_16(v)                                                                             \
    REVERSED_4(v), REVERSED_4((v) + 0x20), REVERSED_4((v) + 0x10), REVERSED_4((v) + 0x30)
#define REVERSED_64(v)                                                                             \
    REVERSED_16(v), REVERSED_16((v) + 8), REVERSED_16((v) + 4), REVERSED_16((v) + 12)

static const uint8_t reversed_bytes[256] = {
    REVERSED_64(0),
    REVERSED_64(2),
    REVERSED_64(1),
    REVERSED_64(3),
};

unsigned wharf_code_reverse(unsigned word, unsigned nbits)
{
    word <<= 16 - nbits;
    return reversed_bytes[word >> 8] | (unsigned)reversed_bytes[word & 0xff] << 8;
}

/* Words of all lengths, written from the top of 16 bits on, are one ascending sequence. */
static void make_words(struct wharf_code *code)
{
    unsigned word = 0;
    unsigned i = 0;

    for (unsigned nbits = 1; nbits <= code->max_nbits; nbits++)
        for (unsigned end = code->first[nbits + 1]; i < end; i++) {
            code->words[i] =
                (uint16_t)(reversed_bytes[word >> 8] | reversed_bytes[word & 0xff] << 8);
            word += 0x10000u >> nbits;
        }
}

enum wharf_code_kind wharf_code_init(struct wharf_code *code,
                                     const struct wharf_code_lengths *lengths, unsigned which)
{
    const uint16_t *used = lengths->used;
    unsigned first_symbol = 0;

    memcpy(code->n_words, lengths->n_words[which], sizeof(code->n_words));
    code->n_words[0] = code->first[0] = 0;
    enum wharf_code_kind kind = check_counts(code);
    if (kind == WHARF_CODE_BAD)
        return kind;
    if (which == WHARF_CODE_DISTANCE) {
        first_symbol = lengths->n_litlen;
        for (unsigned nbits = 1; nbits <= WHARF_DEFLATE_MAX_CODE_NBITS; nbits++)
            used += lengths->n_words[WHARF_CODE_LITLEN][nbits];
    }
    sort_symbols(code, lengths, used, code->first[WHARF_DEFLATE_MAX_CODE_NBITS + 1], first_symbol);
    make_words(code);
    return kind;
}
