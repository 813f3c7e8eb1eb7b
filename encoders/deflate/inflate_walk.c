/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_walk.c: the rules of deflate_format.h, one bit at a time.
 *
 * Written to be compared with RFC 1951 line by line.  It shares nothing with the decoder that it
 * checks.  Codes are read by counting: the words of one length are consecutive numbers.
 */
#include "encoders/deflate/inflate_walk.h"

#include <stdbool.h>
#include <string.h>

#include "encoders/decode_poll.h"
#include "encoders/deflate/deflate_format.h"

/* How often to poll whether to stop: this plain code needs about 10 us for a header of 80 bits. */
#define POLL_NBITS ((uint64_t)WHARF_POLL_IN_NBYTES)

/* A reader of single bits.  Once it has been asked for one past the end, `cut_off` stays. */
struct bit_reader {
    const uint8_t *in;
    uint64_t pos;
    uint64_t end;
    bool cut_off;
    const struct wharf_codec_setting *setting;
    uint64_t asked_at; /* where the last question was asked */
};

/* Whether to end, for the reason in walk->stopped. */
static bool is_stopped(struct bit_reader *bits, struct wharf_inflate_walk *walk)
{
    if (bits->pos - bits->asked_at < POLL_NBITS)
        return false;
    bits->asked_at = bits->pos;
    walk->stopped = wharf_decode_poll(bits->setting);
    return walk->stopped != WHARF_OK;
}

/* Past the end bits are 0, so that a rule can be finished before `cut_off` is looked at: a field
 * that is not all there must not be taken for a wrong one. */
static unsigned read_bit(struct bit_reader *bits)
{
    if (bits->pos == bits->end) {
        bits->cut_off = true;
        return 0;
    }
    unsigned bit = bits->in[bits->pos >> 3] >> (bits->pos & 7) & 1;
    bits->pos++;
    return bit;
}

/* Numbers begin with their lowest bit, unlike code words: RFC 1951 section 3.1.1. */
static unsigned read_field(struct bit_reader *bits, unsigned nbits)
{
    unsigned value = 0;

    for (unsigned i = 0; i < nbits; i++)
        value |= read_bit(bits) << i;
    return value;
}

struct code {
    unsigned n_words[WHARF_DEFLATE_MAX_CODE_NBITS + 1];
    uint16_t symbols[WHARF_DEFLATE_N_LITLEN_FIXED]; /* in order of their words */
    bool complete;
};

enum { NO_SYMBOL = 0xffff };

/* What is left over of the code space, as a share of 2^15; negative when over-subscribed. */
static int make_code(struct code *code, const uint8_t *lengths, unsigned n_symbols)
{
    int left = 1 << WHARF_DEFLATE_MAX_CODE_NBITS;
    unsigned n = 0;

    memset(code->n_words, 0, sizeof(code->n_words));
    for (unsigned nbits = 1; nbits <= WHARF_DEFLATE_MAX_CODE_NBITS; nbits++)
        for (unsigned i = 0; i < n_symbols; i++)
            if (lengths[i] == nbits) {
                code->symbols[n++] = i;
                code->n_words[nbits]++;
                left -= 1 << (WHARF_DEFLATE_MAX_CODE_NBITS - nbits);
            }
    code->complete = left == 0;
    return left;
}

/* No word, or one of one bit: the incomplete codes that are good in some places. */
static bool is_trivial(const struct code *code, int left)
{
    return left == 1 << WHARF_DEFLATE_MAX_CODE_NBITS ||
           (left == 1 << (WHARF_DEFLATE_MAX_CODE_NBITS - 1) && code->n_words[1] == 1);
}

/* RFC 1951 section 3.2.2: words of one length are consecutive numbers, and the first is twice
 * what follows the last of the length before. */
static unsigned read_symbol(struct bit_reader *bits, const struct code *code)
{
    unsigned word = 0;
    unsigned first = 0;
    unsigned n_before = 0;

    for (unsigned nbits = 1; nbits <= WHARF_DEFLATE_MAX_CODE_NBITS; nbits++) {
        word = word << 1 | read_bit(bits);
        /* A word below `first` began with a shorter word and would have ended there. */
        if (word - first < code->n_words[nbits])
            return code->symbols[n_before + word - first];
        /* An incomplete code has words of one bit alone: behind another first bit there is none. */
        if (!code->complete)
            break;
        n_before += code->n_words[nbits];
        first = (first + code->n_words[nbits]) << 1;
    }
    return NO_SYMBOL;
}

static uint32_t read_precode(struct bit_reader *bits, unsigned n_precode, struct code *code)
{
    static const uint8_t order[] = {WHARF_DEFLATE_PRECODE_ORDER};
    uint8_t lengths[WHARF_DEFLATE_N_PRECODE] = {0};

    for (unsigned i = 0; i < n_precode; i++)
        lengths[order[i]] = read_field(bits, 3);
    if (bits->cut_off)
        return WHARF_REASON_INPUT_TRUNCATED;
    /* Complete, or without any word: then all lengths are 0 and cost a bit each, as zlib has it. */
    int left = make_code(code, lengths, WHARF_DEFLATE_N_PRECODE);
    if (left != 0 && left != 1 << WHARF_DEFLATE_MAX_CODE_NBITS)
        return WHARF_REASON_DEFLATE_PRECODE;
    return WHARF_REASON_NONE;
}

/* One sequence for both codes: a repetition may go from the first one's lengths into the second's,
 * but not past the end. */
static uint32_t read_lengths(struct bit_reader *bits, const struct code *precode, uint8_t *lengths,
                             unsigned n_lengths)
{
    for (unsigned i = 0; i < n_lengths;) {
        unsigned symbol = read_symbol(bits, precode);
        unsigned length = 0;
        unsigned n = 1;
        if (symbol < 16)
            length = symbol;
        else if (symbol == 16)
            n = 3 + read_field(bits, 2);
        else if (symbol == 17)
            n = 3 + read_field(bits, 3);
        else if (symbol == 18)
            n = 11 + read_field(bits, 7);
        if (bits->cut_off)
            return WHARF_REASON_INPUT_TRUNCATED;
        if ((symbol == 16 && i == 0) || n > n_lengths - i)
            return WHARF_REASON_DEFLATE_LENGTH_REPEAT;
        if (symbol == 16)
            length = lengths[i - 1];
        memset(lengths + i, (int)length, n);
        i += n;
    }
    return WHARF_REASON_NONE;
}

static uint32_t read_dynamic(struct bit_reader *bits, struct code *litlen, struct code *distance)
{
    unsigned n_litlen = 257 + read_field(bits, 5);
    unsigned n_distance = 1 + read_field(bits, 5);
    unsigned n_precode = 4 + read_field(bits, 4);
    uint8_t lengths[WHARF_DEFLATE_N_LENGTHS];
    struct code precode;

    if (bits->cut_off)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (n_litlen > WHARF_DEFLATE_N_LITLEN || n_distance > WHARF_DEFLATE_N_DISTANCE)
        return WHARF_REASON_DEFLATE_CODE_COUNT;
    uint32_t reason = read_precode(bits, n_precode, &precode);
    if (reason == WHARF_REASON_NONE)
        reason = read_lengths(bits, &precode, lengths, n_litlen + n_distance);
    if (reason != WHARF_REASON_NONE)
        return reason;
    /* In the order of deflate_format.h: of several things that are wrong the first counts. */
    if (lengths[WHARF_DEFLATE_END_OF_BLOCK] == 0)
        return WHARF_REASON_DEFLATE_NO_END;
    int left = make_code(litlen, lengths, n_litlen);
    if (left != 0 && !is_trivial(litlen, left))
        return WHARF_REASON_DEFLATE_LITLEN_CODE;
    left = make_code(distance, lengths + n_litlen, n_distance);
    if (left != 0 && !is_trivial(distance, left))
        return WHARF_REASON_DEFLATE_DISTANCE_CODE;
    return WHARF_REASON_NONE;
}

static void make_fixed(struct code *litlen, struct code *distance)
{
    uint8_t lengths[WHARF_DEFLATE_N_LITLEN_FIXED];

    for (unsigned i = 0; i < WHARF_DEFLATE_N_LITLEN_FIXED; i++)
        lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    make_code(litlen, lengths, WHARF_DEFLATE_N_LITLEN_FIXED);
    memset(lengths, 5, WHARF_DEFLATE_N_DISTANCE_FIXED);
    make_code(distance, lengths, WHARF_DEFLATE_N_DISTANCE_FIXED);
}

/* The rest of a match behind its length symbol. */
static uint32_t walk_match(struct bit_reader *bits, const struct code *distance, unsigned symbol,
                           struct wharf_inflate_walk *walk, unsigned *ret_nbytes)
{
    static const uint16_t length_bases[] = {WHARF_DEFLATE_LENGTH_BASES};
    static const uint8_t length_extras[] = {WHARF_DEFLATE_LENGTH_EXTRAS};
    static const uint16_t distance_bases[] = {WHARF_DEFLATE_DISTANCE_BASES};
    static const uint8_t distance_extras[] = {WHARF_DEFLATE_DISTANCE_EXTRAS};

    symbol -= WHARF_DEFLATE_FIRST_LENGTH;
    *ret_nbytes = length_bases[symbol] + read_field(bits, length_extras[symbol]);
    symbol = read_symbol(bits, distance);
    if (bits->cut_off)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (symbol >= WHARF_DEFLATE_N_DISTANCE)
        return WHARF_REASON_DEFLATE_DISTANCE_SYMBOL;
    unsigned length = distance_bases[symbol] + read_field(bits, distance_extras[symbol]);
    if (bits->cut_off)
        return WHARF_REASON_INPUT_TRUNCATED;
    /* All distances are within the window of 32 KiB; what may be missing is output so far. */
    if (length > walk->out_nbytes)
        return WHARF_REASON_DEFLATE_DISTANCE_TOO_FAR;
    return WHARF_REASON_NONE;
}

static uint32_t walk_coded(struct bit_reader *bits, const struct code *litlen,
                           const struct code *distance, uint64_t out_avail,
                           struct wharf_inflate_walk *walk)
{
    for (;;) {
        unsigned nbytes = 1;
        /* Whatever is wrong with a symbol or its match stands at the symbol's first bit. */
        walk->bit_pos = bits->pos;
        unsigned symbol = read_symbol(bits, litlen);
        if (bits->cut_off)
            return WHARF_REASON_INPUT_TRUNCATED;
        if (symbol >= WHARF_DEFLATE_N_LITLEN)
            return WHARF_REASON_DEFLATE_LITLEN_SYMBOL;
        if (symbol == WHARF_DEFLATE_END_OF_BLOCK || is_stopped(bits, walk))
            return WHARF_REASON_NONE;
        if (symbol > WHARF_DEFLATE_END_OF_BLOCK) {
            uint32_t reason = walk_match(bits, distance, symbol, walk, &nbytes);
            if (reason != WHARF_REASON_NONE)
                return reason;
        }
        if (nbytes > out_avail - walk->out_nbytes)
            return WHARF_REASON_OUTPUT_FULL;
        walk->out_nbytes += nbytes;
    }
}

static uint32_t walk_stored(struct bit_reader *bits, uint64_t out_avail,
                            struct wharf_inflate_walk *walk)
{
    bits->pos = (bits->pos + 7) & ~(uint64_t)7;
    unsigned length = read_field(bits, 16);
    unsigned complement = read_field(bits, 16);

    if (bits->cut_off)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (length != (complement ^ 0xffff))
        return WHARF_REASON_DEFLATE_STORED_LENGTH;
    /* Byte by byte, since either end may come first, and each has its own place. */
    for (; length; length--) {
        walk->bit_pos = bits->pos;
        if (bits->pos == bits->end)
            return WHARF_REASON_INPUT_TRUNCATED;
        if (walk->out_nbytes == out_avail)
            return WHARF_REASON_OUTPUT_FULL;
        bits->pos += 8;
        walk->out_nbytes++;
    }
    return WHARF_REASON_NONE;
}

/* One block, header and body, of the type that was read. */
static uint32_t walk_block(struct bit_reader *bits, unsigned type, uint64_t out_avail,
                           struct wharf_inflate_walk *walk)
{
    struct code litlen, distance;
    uint32_t reason = WHARF_REASON_NONE;

    switch (type) {
    case WHARF_DEFLATE_STORED:
        return walk_stored(bits, out_avail, walk);
    case WHARF_DEFLATE_FIXED:
        make_fixed(&litlen, &distance);
        break;
    case WHARF_DEFLATE_DYNAMIC:
        reason = read_dynamic(bits, &litlen, &distance);
        break;
    default:
        reason = WHARF_REASON_DEFLATE_BLOCK_TYPE;
    }
    if (reason != WHARF_REASON_NONE)
        return reason;
    return walk_coded(bits, &litlen, &distance, out_avail, walk);
}

void wharf_inflate_walk(const uint8_t *in, size_t in_nbytes, size_t at, uint64_t out_avail,
                        const struct wharf_codec_setting *setting,
                        struct wharf_inflate_walk *ret_walk)
{
    struct bit_reader bits = {
        .in = in,
        .pos = 8 * (uint64_t)at,
        .end = 8 * (uint64_t)in_nbytes,
        .setting = setting,
        .asked_at = 8 * (uint64_t)at,
    };
    unsigned final_block;

    ret_walk->out_nbytes = 0;
    ret_walk->stopped = WHARF_OK;
    do {
        ret_walk->bit_pos = bits.pos;
        final_block = read_bit(&bits);
        unsigned type = read_field(&bits, 2);
        ret_walk->reason = bits.cut_off ? WHARF_REASON_INPUT_TRUNCATED
                                        : walk_block(&bits, type, out_avail, ret_walk);
        if (ret_walk->reason != WHARF_REASON_NONE)
            return;
    } while (!final_block && !ret_walk->stopped && !is_stopped(&bits, ret_walk));
    ret_walk->bit_pos = (bits.pos + 7) & ~(uint64_t)7;
}
