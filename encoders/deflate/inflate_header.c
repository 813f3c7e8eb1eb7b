/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_header.c: block headers, and the code lengths of dynamic blocks.
 *
 * Between small blocks headers are most of the time.  The code length code has a table of 128
 * entries, by the next 7 bits, of which each says length, repetition and bits to take.  Lengths
 * are written eight at a time and corrected by the next ones.
 */
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

/*
 * The code length code, by the next 7 bits of the source:
 *
 *     0..3    bits to take, extra bits included
 *     4..6    extra bits
 *     7..10   how often the length comes, without the extra bits
 *     11..14  the length
 *     15      the length is that of the symbol before
 */
enum { PRECODE_ENTRIES = 1 << WHARF_DEFLATE_MAX_PRECODE_NBITS, PRECODE_REPEATS = 0x8000 };

#define PRECODE(length, repeat, extra) ((length) << 11 | (repeat) << 7 | (extra) << 4 | (extra))

static const uint16_t precode_templates[WHARF_DEFLATE_N_PRECODE] = {
    PRECODE(0, 1, 0),
    PRECODE(1, 1, 0),
    PRECODE(2, 1, 0),
    PRECODE(3, 1, 0),
    PRECODE(4, 1, 0),
    PRECODE(5, 1, 0),
    PRECODE(6, 1, 0),
    PRECODE(7, 1, 0),
    PRECODE(8, 1, 0),
    PRECODE(9, 1, 0),
    PRECODE(10, 1, 0),
    PRECODE(11, 1, 0),
    PRECODE(12, 1, 0),
    PRECODE(13, 1, 0),
    PRECODE(14, 1, 0),
    PRECODE(15, 1, 0),
    PRECODE(0, 3, 2) | PRECODE_REPEATS,
    PRECODE(0, 3, 3),
    PRECODE(0, 11, 7),
};

/* With lengths of three bits, the counters of all fit one word, eight bits each. */
static uint32_t fill_precode(uint16_t table[PRECODE_ENTRIES],
                             const uint8_t lengths[WHARF_DEFLATE_N_PRECODE])
{
    uint64_t n_words = 0;
    uint64_t next = 0; /* the next word of each length, from the top of eight bits on */
    unsigned end = 0;

    for (unsigned symbol = 0; symbol < WHARF_DEFLATE_N_PRECODE; symbol++)
        n_words += (uint64_t)1 << 8 * lengths[symbol];
    /* Words as the first of eight bits: word w of length n is w << (8 - n).  So the next word of a
     * length begins where those of the shorter ones end, and a complete code ends at 256. */
    for (unsigned nbits = 1; nbits <= WHARF_DEFLATE_MAX_PRECODE_NBITS; nbits++) {
        next |= (uint64_t)(end & 0xff) << 8 * nbits;
        end += (n_words >> 8 * nbits & 0xff) << (8 - nbits);
    }
    /* Without any word each length is 0 and takes a bit: zlib has it so. */
    if (end == 0) {
        for (unsigned at = 0; at < PRECODE_ENTRIES; at++)
            table[at] = precode_templates[0] + 1;
        return WHARF_REASON_NONE;
    }
    if (end != 0x100)
        return WHARF_REASON_DEFLATE_PRECODE;
    for (unsigned symbol = 0; symbol < WHARF_DEFLATE_N_PRECODE; symbol++) {
        unsigned nbits = lengths[symbol];
        if (nbits == 0)
            continue;
        unsigned word = wharf_code_reverse(next >> 8 * nbits & 0xff, 8);
        next += (uint64_t)1 << (8 * nbits + 8 - nbits);
        for (unsigned at = word; at < PRECODE_ENTRIES; at += 1u << nbits)
            table[at] = (uint16_t)(precode_templates[symbol] + nbits);
    }
    return WHARF_REASON_NONE;
}

static uint32_t read_precode(struct header_bits *bits, unsigned n_precode,
                             uint16_t table[PRECODE_ENTRIES])
{
    static const uint8_t order[WHARF_DEFLATE_N_PRECODE] = {WHARF_DEFLATE_PRECODE_ORDER};
    uint8_t lengths[WHARF_DEFLATE_N_PRECODE] = {0};
    unsigned length;

    for (unsigned i = 0; i < n_precode; i++) {
        if (!take_field(bits, 3, &length))
            return WHARF_REASON_INPUT_TRUNCATED;
        lengths[order[i]] = (uint8_t)length;
    }
    return fill_precode(table, lengths);
}

/*
 * The code lengths, litlen and distance in one sequence of n_lengths.  What a symbol says is
 * written eight times over, for the most that are not zeros is six; the next ones write over
 * what was too much.  Longer runs are of zeros, which are there.
 */
static uint32_t read_lengths(struct header_bits *bits, const uint16_t table[PRECODE_ENTRIES],
                             struct wharf_code_lengths *lengths, unsigned n_lengths)
{
    const uint64_t end = 8 * (uint64_t)bits->in_nbytes;
    uint64_t bit_pos = bits->bit_pos;
    uint64_t word = 0;
    unsigned word_nbits = 0;
    unsigned previous = PRECODE_REPEATS; /* no length: there is none to repeat */
    unsigned n_used = 0;
    uint16_t *n_words = lengths->n_words[WHARF_CODE_LITLEN];

    memset(lengths->nbits, 0, sizeof(lengths->nbits));
    memset(lengths->n_words, 0, sizeof(lengths->n_words));
    for (unsigned i = 0; i < n_lengths;) {
        /* A word and the most extra bits. */
        if (word_nbits < WHARF_DEFLATE_MAX_PRECODE_NBITS + 7) {
            word = wharf_peek_bits(bits->in, bits->in_nbytes, bit_pos);
            word_nbits = 57;
        }
        unsigned entry = table[wharf_low_bits(word, WHARF_DEFLATE_MAX_PRECODE_NBITS)];
        unsigned nbits = entry & 15;
        unsigned extra_nbits = entry >> 4 & 7;
        unsigned repeat =
            (entry >> 7 & 15) + ((unsigned)wharf_low_bits(word, nbits) >> (nbits - extra_nbits));
        unsigned length = entry & PRECODE_REPEATS ? previous : entry >> 11 & 15;
        /* Past the end `word` has zeros, which are a word too: what was looked up is used only when
         * it is known that its bits were there. */
        word >>= nbits;
        word_nbits -= nbits;
        bit_pos += nbits;
        if (bit_pos > end)
            return WHARF_REASON_INPUT_TRUNCATED;
        if (length == PRECODE_REPEATS || repeat > n_lengths - i)
            return WHARF_REASON_DEFLATE_LENGTH_REPEAT;
        /* The length eight times over, and the numbers of the next eight symbols; of these only as
         * many stay as have a length. */
        uint64_t eight = length * 0x0101010101010101u;
        uint64_t four = i * 0x0001000100010001u + 0x0003000200010000u;
        memcpy(lengths->nbits + i, &eight, sizeof(eight));
        memcpy(lengths->used + n_used, &four, sizeof(four));
        four += 0x0004000400040004u;
        memcpy(lengths->used + n_used + 4, &four, sizeof(four));
        n_used += length ? repeat : 0;
        previous = length;
        i += repeat;
        /* A run may go from the litlen code's lengths into the distance code's: each counts its
         * own. */
        if (i >= lengths->n_litlen && n_words == lengths->n_words[WHARF_CODE_LITLEN]) {
            n_words[length] += repeat - (i - lengths->n_litlen);
            n_words = lengths->n_words[WHARF_CODE_DISTANCE];
            repeat = i - lengths->n_litlen;
        }
        n_words[length] += repeat;
    }
    bits->bit_pos = bit_pos;
    bits->nbits = 0;
    return WHARF_REASON_NONE;
}

/* About how long the block's body will be: no longer than what is there, if no more will come, nor
 * twice the last one; and so long that any table pays is long enough. */
static uint64_t expected_nbits(const struct wharf_inflate *inflate, const struct header_bits *bits)
{
    const uint64_t long_enough = 1 << 24;
    uint64_t expected =
        inflate->in_more ? long_enough : 8 * (uint64_t)bits->in_nbytes - bits->bit_pos;

    if (expected > long_enough)
        expected = long_enough;
    if (inflate->body_nbits < long_enough && expected > 2 * inflate->body_nbits)
        expected = 2 * inflate->body_nbits;
    return expected;
}

static uint32_t read_dynamic(struct header_bits *bits, struct wharf_inflate *inflate)
{
    struct wharf_inflate_tables *tables = &inflate->own_tables;
    uint16_t table[PRECODE_ENTRIES];
    unsigned counts;

    if (!take_field(bits, 14, &counts))
        return WHARF_REASON_INPUT_TRUNCATED;
    unsigned n_litlen = (counts & 31) + WHARF_DEFLATE_FIRST_LENGTH;
    unsigned n_distance = (counts >> 5 & 31) + 1;
    if (n_litlen > WHARF_DEFLATE_N_LITLEN || n_distance > WHARF_DEFLATE_N_DISTANCE)
        return WHARF_REASON_DEFLATE_CODE_COUNT;
    uint32_t reason = read_precode(bits, (counts >> 10) + 4, table);
    inflate->tables = tables;
    tables->lengths.n_litlen = n_litlen;
    if (reason == WHARF_REASON_NONE)
        reason = read_lengths(bits, table, &tables->lengths, n_litlen + n_distance);
    if (reason != WHARF_REASON_NONE)
        return reason;
    if (tables->lengths.nbits[WHARF_DEFLATE_END_OF_BLOCK] == 0)
        return WHARF_REASON_DEFLATE_NO_END;
    reason = wharf_inflate_tables_dynamic(tables, expected_nbits(inflate, bits));
    if (reason == WHARF_REASON_NONE)
        inflate->body_nbits = 0;
    return reason;
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
        inflate->tables = wharf_inflate_tables_fixed();
        return WHARF_REASON_NONE;
    case WHARF_DEFLATE_DYNAMIC:
        return read_dynamic(bits, inflate);
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
