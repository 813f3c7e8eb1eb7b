/* SPDX-License-Identifier: Apache-2.0 */
#include "encoders/deflate/inflate_header.h"

#include "encoders/deflate/deflate_format.h"

/* Header bits on their way in: `word` holds at least 57 of those from bit_pos on (zeros past the
 * end) of which `nbits` are still to be used. */
struct header_bits {
    const uint8_t *in;
    size_t in_nbytes;
    uint64_t bit_pos;
    uint64_t word;
    unsigned nbits;
};

static void need_bits(struct header_bits *bits, unsigned nbits)
{
    if (bits->nbits >= nbits)
        return;
    bits->word = wharf_peek_bits(bits->in, bits->in_nbytes, bits->bit_pos);
    bits->nbits = 57;
}

/* Uses nbits, of those that need_bits provided.  False: the source ends before. */
static bool take_bits(struct header_bits *bits, unsigned nbits)
{
    if (8 * (uint64_t)bits->in_nbytes - bits->bit_pos < nbits)
        return false;
    bits->bit_pos += nbits;
    bits->word >>= nbits;
    bits->nbits -= nbits;
    return true;
}

static bool take_field(struct header_bits *bits, unsigned nbits, unsigned *ret_value)
{
    need_bits(bits, nbits);
    unsigned value = (unsigned)wharf_low_bits(bits->word, nbits);
    if (!take_bits(bits, nbits))
        return false;
    *ret_value = value;
    return true;
}

static uint32_t read_precode(struct header_bits *bits, unsigned n_precode,
                             uint8_t table[WHARF_PRECODE_ENTRIES])
{
    static const uint8_t order[WHARF_DEFLATE_N_PRECODE] = {WHARF_DEFLATE_PRECODE_ORDER};
    uint8_t lengths[WHARF_DEFLATE_N_PRECODE] = {0};
    unsigned length;

    for (unsigned i = 0; i < n_precode; i++) {
        if (!take_field(bits, 3, &length))
            return WHARF_REASON_INPUT_TRUNCATED;
        lengths[order[i]] = length;
    }
    return wharf_inflate_precode_table(table, lengths);
}

/* The code lengths, litlen and distance in one sequence of n_lengths. */
static uint32_t read_lengths(struct header_bits *bits, const uint8_t table[WHARF_PRECODE_ENTRIES],
                             uint8_t *lengths, unsigned n_lengths)
{
    /* Symbols 16, 17, 18: repeat the last length, or zero, so often and as extra bits say. */
    static const uint8_t repeat_bases[] = {3, 3, 11};
    static const uint8_t repeat_extras[] = {2, 3, 7};

    for (unsigned i = 0; i < n_lengths;) {
        need_bits(bits, WHARF_DEFLATE_MAX_PRECODE_NBITS + 7);
        unsigned entry = table[wharf_low_bits(bits->word, WHARF_DEFLATE_MAX_PRECODE_NBITS)];
        unsigned symbol = entry >> 3;
        if (!take_bits(bits, entry & 7))
            return WHARF_REASON_INPUT_TRUNCATED;
        if (symbol < 16) {
            lengths[i++] = symbol;
            continue;
        }
        unsigned repeat;
        if (!take_field(bits, repeat_extras[symbol - 16], &repeat))
            return WHARF_REASON_INPUT_TRUNCATED;
        repeat += repeat_bases[symbol - 16];
        if ((symbol == 16 && i == 0) || repeat > n_lengths - i)
            return WHARF_REASON_DEFLATE_LENGTH_REPEAT;
        memset(lengths + i, symbol == 16 ? lengths[i - 1] : 0, repeat);
        i += repeat;
    }
    return WHARF_REASON_NONE;
}

static uint32_t read_dynamic(struct header_bits *bits, struct wharf_inflate_tables *tables)
{
    uint8_t lengths[WHARF_DEFLATE_N_LENGTHS];
    uint8_t table[WHARF_PRECODE_ENTRIES];
    unsigned counts;

    if (!take_field(bits, 14, &counts))
        return WHARF_REASON_INPUT_TRUNCATED;
    unsigned n_litlen = (counts & 31) + WHARF_DEFLATE_FIRST_LENGTH;
    unsigned n_distance = (counts >> 5 & 31) + 1;
    if (n_litlen > WHARF_DEFLATE_N_LITLEN || n_distance > WHARF_DEFLATE_N_DISTANCE)
        return WHARF_REASON_DEFLATE_CODE_COUNT;
    uint32_t reason = read_precode(bits, (counts >> 10) + 4, table);
    if (reason == WHARF_REASON_NONE)
        reason = read_lengths(bits, table, lengths, n_litlen + n_distance);
    if (reason != WHARF_REASON_NONE)
        return reason;
    if (lengths[WHARF_DEFLATE_END_OF_BLOCK] == 0)
        return WHARF_REASON_DEFLATE_NO_END;
    return wharf_inflate_tables_dynamic(tables, lengths, n_litlen, lengths + n_litlen, n_distance);
}

static uint32_t read_stored(struct header_bits *bits, uint32_t *ret_nbytes)
{
    unsigned lengths;

    /* At most 7 bits, of a byte that BTYPE is in: they are there. */
    need_bits(bits, 7);
    take_bits(bits, (unsigned)(-bits->bit_pos & 7));
    if (!take_field(bits, 32, &lengths))
        return WHARF_REASON_INPUT_TRUNCATED;
    if ((lengths & 0xffff) != (~lengths >> 16))
        return WHARF_REASON_DEFLATE_STORED_LENGTH;
    *ret_nbytes = lengths & 0xffff;
    return WHARF_REASON_NONE;
}

/* What follows BFINAL and BTYPE. */
static uint32_t read_block_type(struct wharf_inflate *inflate, struct header_bits *bits,
                                unsigned type)
{
    switch (type) {
    case WHARF_DEFLATE_STORED:
        return read_stored(bits, &inflate->stored_left);
    case WHARF_DEFLATE_FIXED:
        wharf_inflate_tables_fixed(&inflate->tables);
        return WHARF_REASON_NONE;
    case WHARF_DEFLATE_DYNAMIC:
        return read_dynamic(bits, &inflate->tables);
    default:
        return WHARF_REASON_DEFLATE_BLOCK_TYPE;
    }
}

uint32_t wharf_inflate_header(struct wharf_inflate *inflate)
{
    struct header_bits bits = {inflate->in, inflate->in_nbytes, inflate->bit_pos, 0, 0};
    unsigned first;

    if (!take_field(&bits, 3, &first))
        return WHARF_REASON_INPUT_TRUNCATED;
    uint32_t reason = read_block_type(inflate, &bits, first >> 1);
    if (reason != WHARF_REASON_NONE)
        return reason;
    inflate->bit_pos = bits.bit_pos;
    inflate->final_block = first & 1;
    inflate->phase =
        first >> 1 == WHARF_DEFLATE_STORED ? WHARF_INFLATE_STORED : WHARF_INFLATE_CODED;
    return WHARF_REASON_NONE;
}
