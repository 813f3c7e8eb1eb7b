/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib_steps_block.c: block headers a field at a time, and stored blocks.
 *
 * encoders/deflate reads a dynamic header at once if the input holds all of it.  If that fails, the
 * header is read again field by field, so that an error is found at the same byte as in zlib.
 */
#include <string.h>

#include "encoders/deflate/inflate_header.h"
#include "encoders/zlib/zlib_steps_parts.h"
#include "proto/wharf_result.h"

static void begin_log(struct wharf_zlib_steps *steps)
{
    struct wharf_zlib_log *log = &steps->logs[++steps->n_headers & 1];

    log->hold = steps->hold;
    log->bits = steps->bits;
    log->nbytes = 0;
}

static void log_pulled(struct wharf_zlib_call *call, const uint8_t *from)
{
    struct wharf_zlib_log *log = &call->steps->logs[call->steps->n_headers & 1];
    size_t n = (size_t)(call->in - from);

    if (n > sizeof(log->in) - log->nbytes)
        n = sizeof(log->in) - log->nbytes; /* never happens: headers are shorter */
    memcpy(log->in + log->nbytes, from, n);
    log->nbytes += (unsigned)n;
}

/* wharf_zlib_call_need within a dynamic header. */
static bool need_logged(struct wharf_zlib_call *call, unsigned n)
{
    const uint8_t *from = call->in;
    const bool there = wharf_zlib_call_need(call, n);

    log_pulled(call, from);
    return there;
}

static void take_whole_header(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;
    struct wharf_inflate *inflate = &steps->inflate;
    const uint8_t *from = call->in;
    const size_t taken = (size_t)((inflate->bit_pos + 7) / 8);

    begin_log(steps);
    steps->last = inflate->final_block;
    steps->nlen = inflate->own_tables.lengths.n_litlen;
    call->in_left -= (size_t)(call->begin + taken - call->in);
    call->in = call->begin + taken;
    log_pulled(call, from);
    steps->bits = (unsigned)(8 * taken - inflate->bit_pos);
    steps->hold = steps->bits ? (uint64_t)(call->in[-1] >> (8 - steps->bits)) : 0;
    steps->is_fixed = false;
    steps->mode = WHARF_ZMODE_LEN_BEGIN;
}

/* Reads a dynamic header at once.  False, with nothing changed: it is none, is bad or may be
 * incomplete. */
static bool read_whole_header(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;
    struct wharf_inflate *inflate = &steps->inflate;

    if (call->in_left < WHARF_ZLIB_STEPS_LOG_NBYTES || call->flush == WHARF_Z_TREES ||
        steps->bits > 7 || (steps->bits && call->in == call->begin))
        return false;
    inflate->in = call->begin;
    inflate->bit_pos = 8 * (uint64_t)(call->in - call->begin) - steps->bits;
    inflate->in_nbytes = (size_t)(call->in - call->begin) + call->in_left;
    const uint64_t word = wharf_peek_bits(inflate->in, inflate->in_nbytes, inflate->bit_pos);
    if ((word >> 1 & 3) != WHARF_DEFLATE_DYNAMIC)
        return false;
    if (wharf_inflate_header(inflate) != WHARF_REASON_NONE)
        return false;
    take_whole_header(call);
    return true;
}

static enum wharf_zstep block_type(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;

    if (steps->last) {
        wharf_zlib_call_drop(call, steps->bits & 7);
        steps->mode = WHARF_ZMODE_CHECK;
        return WHARF_ZSTEP_ON;
    }
    if (read_whole_header(call))
        return WHARF_ZSTEP_ON;
    if (!wharf_zlib_call_need(call, 3))
        return WHARF_ZSTEP_LEAVE;
    if ((steps->hold >> 1 & 3) == WHARF_DEFLATE_DYNAMIC)
        begin_log(steps);
    steps->last = wharf_zlib_call_take(call, 1);
    switch (wharf_zlib_call_take(call, 2)) {
    case WHARF_DEFLATE_STORED:
        steps->mode = WHARF_ZMODE_STORED;
        return WHARF_ZSTEP_ON;
    case WHARF_DEFLATE_FIXED:
        steps->inflate.tables = wharf_inflate_tables_fixed();
        steps->is_fixed = true;
        steps->mode = WHARF_ZMODE_LEN_BEGIN;
        return call->flush == WHARF_Z_TREES ? WHARF_ZSTEP_LEAVE : WHARF_ZSTEP_ON;
    case WHARF_DEFLATE_DYNAMIC:
        steps->mode = WHARF_ZMODE_TABLE;
        return WHARF_ZSTEP_ON;
    default:
        return wharf_zlib_call_bad(call, "invalid block type");
    }
}

static enum wharf_zstep stored_header(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;

    wharf_zlib_call_drop(call, steps->bits & 7);
    if (!wharf_zlib_call_need(call, 32))
        return WHARF_ZSTEP_LEAVE;
    if ((steps->hold & 0xffff) != (~steps->hold >> 16 & 0xffff))
        return wharf_zlib_call_bad(call, "invalid stored block lengths");
    steps->length = (uint32_t)(steps->hold & 0xffff);
    wharf_zlib_call_clear(call);
    steps->mode = WHARF_ZMODE_COPY_BEGIN;
    return call->flush == WHARF_Z_TREES ? WHARF_ZSTEP_LEAVE : WHARF_ZSTEP_ON;
}

static enum wharf_zstep stored_data(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;

    while (steps->length) {
        size_t n = steps->length;
        wharf_zlib_call_make_room(call);
        if (n > call->in_left)
            n = call->in_left;
        if (n > call->out_left)
            n = call->out_left;
        if (n > sizeof(steps->out) - steps->pos)
            n = sizeof(steps->out) - steps->pos;
        if (n == 0)
            return WHARF_ZSTEP_LEAVE;
        memcpy(steps->out + steps->pos, call->in, n);
        steps->pos += n;
        call->in += n;
        call->in_left -= n;
        call->out_left -= n;
        steps->length -= (uint32_t)n;
    }
    steps->mode = WHARF_ZMODE_TYPE;
    return WHARF_ZSTEP_ON;
}

static enum wharf_zstep counts(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;

    if (!need_logged(call, 14))
        return WHARF_ZSTEP_LEAVE;
    steps->nlen = wharf_zlib_call_take(call, 5) + WHARF_DEFLATE_FIRST_LENGTH;
    steps->ndist = wharf_zlib_call_take(call, 5) + 1;
    steps->ncode = wharf_zlib_call_take(call, 4) + 4;
    if (steps->nlen > WHARF_DEFLATE_N_LITLEN || steps->ndist > WHARF_DEFLATE_N_DISTANCE)
        return wharf_zlib_call_bad(call, "too many length or distance symbols");
    steps->have = 0;
    memset(steps->precode_lengths, 0, sizeof(steps->precode_lengths));
    steps->mode = WHARF_ZMODE_LENLENS;
    return WHARF_ZSTEP_ON;
}

/* Entries are symbol << 4 | bits.  If no symbol has a length, every one-bit word is symbol 0, as in
 * zlib. */
static bool fill_precode(struct wharf_zlib_steps *steps)
{
    unsigned word = 0, left = 1u << WHARF_DEFLATE_MAX_PRECODE_NBITS, n_used = 0;

    for (unsigned nbits = 1; nbits <= WHARF_DEFLATE_MAX_PRECODE_NBITS; nbits++, word <<= 1)
        for (unsigned symbol = 0; symbol < WHARF_DEFLATE_N_PRECODE; symbol++) {
            if (steps->precode_lengths[symbol] != nbits)
                continue;
            const unsigned span = 1u << (WHARF_DEFLATE_MAX_PRECODE_NBITS - nbits);
            if (span > left)
                return false;
            left -= span;
            n_used++;
            for (unsigned at = wharf_code_reverse(word, nbits);
                 at < 1u << WHARF_DEFLATE_MAX_PRECODE_NBITS; at += 1u << nbits)
                steps->precode[at] = (uint16_t)(symbol << 4 | nbits);
            word++;
        }
    if (n_used)
        return left == 0;
    for (unsigned at = 0; at < 1u << WHARF_DEFLATE_MAX_PRECODE_NBITS; at++)
        steps->precode[at] = 1;
    return true;
}

static enum wharf_zstep precode_lengths(struct wharf_zlib_call *call)
{
    static const uint8_t order[WHARF_DEFLATE_N_PRECODE] = {WHARF_DEFLATE_PRECODE_ORDER};
    struct wharf_zlib_steps *steps = call->steps;

    while (steps->have < steps->ncode) {
        if (!need_logged(call, 3))
            return WHARF_ZSTEP_LEAVE;
        steps->precode_lengths[order[steps->have++]] = (uint8_t)wharf_zlib_call_take(call, 3);
    }
    if (!fill_precode(steps))
        return wharf_zlib_call_bad(call, "invalid code lengths set");
    steps->have = 0;
    steps->mode = WHARF_ZMODE_CODELENS;
    return WHARF_ZSTEP_ON;
}

/* Prepares the lengths from which encoders/deflate makes its tables. */
static void list_lengths(struct wharf_zlib_steps *steps)
{
    struct wharf_code_lengths *lengths = &steps->inflate.own_tables.lengths;
    unsigned n_used = 0;

    memset(lengths, 0, sizeof(*lengths));
    lengths->n_litlen = steps->nlen;
    for (unsigned i = 0; i < steps->nlen + steps->ndist; i++) {
        const unsigned which = i < steps->nlen ? WHARF_CODE_LITLEN : WHARF_CODE_DISTANCE;
        lengths->nbits[i] = steps->lengths[i];
        lengths->n_words[which][steps->lengths[i]]++;
        if (steps->lengths[i])
            lengths->used[n_used++] = (uint16_t)i;
    }
}

static enum wharf_zstep make_tables(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;
    struct wharf_inflate *inflate = &steps->inflate;
    const uint64_t long_enough = 1 << 24;
    uint64_t expected = 8 * (uint64_t)call->in_left;

    if (steps->lengths[WHARF_DEFLATE_END_OF_BLOCK] == 0)
        return wharf_zlib_call_bad(call, "invalid code -- missing end-of-block");
    if (inflate->body_nbits < long_enough && inflate->body_nbits > expected)
        expected = inflate->body_nbits;
    list_lengths(steps);
    switch (wharf_inflate_tables_dynamic(&inflate->own_tables,
                                         expected < long_enough ? expected : long_enough)) {
    case WHARF_REASON_NONE:
        break;
    case WHARF_REASON_DEFLATE_LITLEN_CODE:
        return wharf_zlib_call_bad(call, "invalid literal/lengths set");
    default:
        return wharf_zlib_call_bad(call, "invalid distances set");
    }
    inflate->tables = &inflate->own_tables;
    inflate->body_nbits = 0;
    steps->is_fixed = false;
    steps->mode = WHARF_ZMODE_LEN_BEGIN;
    return call->flush == WHARF_Z_TREES ? WHARF_ZSTEP_LEAVE : WHARF_ZSTEP_ON;
}

/* Takes one symbol of the code length code, with the lengths that it repeats. */
static enum wharf_zstep take_lengths(struct wharf_zlib_call *call)
{
    static const struct {
        uint8_t extra, least;
    } repeats[] = {{2, 3}, {3, 3}, {7, 11}};
    struct wharf_zlib_steps *steps = call->steps;
    unsigned entry;

    for (;;) {
        entry = steps->precode[steps->hold & ((1u << WHARF_DEFLATE_MAX_PRECODE_NBITS) - 1)];
        if ((entry & 15) <= steps->bits)
            break;
        if (!need_logged(call, steps->bits + 1))
            return WHARF_ZSTEP_LEAVE;
    }
    const unsigned nbits = entry & 15, symbol = entry >> 4;
    if (symbol < 16) {
        wharf_zlib_call_drop(call, nbits);
        steps->lengths[steps->have++] = (uint8_t)symbol;
        return WHARF_ZSTEP_ON;
    }
    if (!need_logged(call, nbits + repeats[symbol - 16].extra))
        return WHARF_ZSTEP_LEAVE;
    wharf_zlib_call_drop(call, nbits);
    if (symbol == 16 && steps->have == 0)
        return wharf_zlib_call_bad(call, "invalid bit length repeat");
    const unsigned n =
        repeats[symbol - 16].least + wharf_zlib_call_take(call, repeats[symbol - 16].extra);
    if (steps->have + n > steps->nlen + steps->ndist)
        return wharf_zlib_call_bad(call, "invalid bit length repeat");
    memset(steps->lengths + steps->have, symbol == 16 ? steps->lengths[steps->have - 1] : 0, n);
    steps->have += n;
    return WHARF_ZSTEP_ON;
}

static enum wharf_zstep code_lengths(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;

    while (steps->have < steps->nlen + steps->ndist) {
        enum wharf_zstep step = take_lengths(call);
        if (step != WHARF_ZSTEP_ON || steps->mode == WHARF_ZMODE_BAD)
            return step;
    }
    return make_tables(call);
}

enum wharf_zstep wharf_zlib_steps_block(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;

    switch (steps->mode) {
    case WHARF_ZMODE_TYPE:
        if (call->flush == WHARF_Z_BLOCK || call->flush == WHARF_Z_TREES)
            return WHARF_ZSTEP_LEAVE;
        return block_type(call); /* the state stays TYPE until all bits of the type are there */
    case WHARF_ZMODE_TYPEDO:
        return block_type(call);
    case WHARF_ZMODE_STORED:
        return stored_header(call);
    case WHARF_ZMODE_COPY_BEGIN:
        steps->mode = WHARF_ZMODE_COPY;
        return stored_data(call);
    case WHARF_ZMODE_COPY:
        return stored_data(call);
    case WHARF_ZMODE_TABLE:
        return counts(call);
    case WHARF_ZMODE_LENLENS:
        return precode_lengths(call);
    default:
        return code_lengths(call);
    }
}
