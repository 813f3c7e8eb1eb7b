/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zlib_steps_body.c: decodes the bodies of blocks with codes.
 *
 * The fast loop (inflate_loop.h) goes as far as it can.  Near an end of input or output, and at
 * whatever else stopped it, units pass through zlib's states one part at a time.
 *
 * `frozen`: while at least six bytes of input and 258 of output are left, zlib decodes a unit in
 * its own fast loop, which does not change the member `back`.  Units that zlib would decode there
 * must not change `back` here either.
 */
#include <string.h>

#include "encoders/deflate/inflate_loop.h"
#include "encoders/zlib/zlib_steps_parts.h"

enum {
    ZLIB_QUICK_IN = 6,
    ZLIB_QUICK_OUT = 258,
    /* With less, starting the fast loop does not pay. */
    LOOP_IN = 32,
    LOOP_OUT = 384,
};

/* How far back a distance may reach, by zlib's count. */
static size_t reach(const struct wharf_zlib_call *call)
{
    return call->out_first - call->out_left + call->steps->whave;
}

static void run_loop(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;
    struct wharf_inflate *inflate = &steps->inflate;
    const uint64_t start = 8 * (uint64_t)(call->in - call->begin) - steps->bits;

    wharf_zlib_call_make_room(call);
    size_t room = sizeof(steps->out) - steps->pos;
    if (room > call->out_left)
        room = call->out_left;
    const size_t history = reach(call) < steps->pos ? reach(call) : steps->pos;
    inflate->in = call->begin;
    inflate->in_nbytes = (size_t)(call->in - call->begin) + call->in_left;
    inflate->bit_pos = start;
    inflate->out_next = steps->out + steps->pos;
    inflate->out_begin = inflate->out_next - history;
    inflate->out_end = inflate->out_next + room;
    wharf_inflate_loop(inflate);

    const size_t taken = (size_t)((inflate->bit_pos + 7) / 8);
    const size_t n = (size_t)(inflate->out_next - steps->out) - steps->pos;
    inflate->body_nbits += inflate->bit_pos - start;
    steps->pos += n;
    call->out_left -= n;
    call->in_left -= (size_t)(call->begin + taken - call->in);
    call->in = call->begin + taken;
    steps->bits = (unsigned)(8 * taken - inflate->bit_pos);
    steps->hold = steps->bits ? (uint64_t)(call->in[-1] >> (8 - steps->bits)) : 0;
}

/* The bits that are available, at least as many as any part of a unit needs, then zeros. */
static uint64_t peek(const struct wharf_zlib_call *call)
{
    const struct wharf_zlib_steps *steps = call->steps;
    uint64_t word = steps->hold;

    if (steps->bits >= 32)
        return word;
    if (call->in_left >= sizeof(word))
        return word | wharf_load_le64(call->in) << steps->bits;
    for (size_t i = 0; i < call->in_left && steps->bits + 8 * i < 64; i++)
        word |= (uint64_t)call->in[i] << (steps->bits + 8 * i);
    return word;
}

struct part {
    enum { PART_LITERAL, PART_END, PART_LENGTH, PART_INVALID } kind;
    unsigned nbits; /* of the code word */
    unsigned extra; /* extra bits after the word */
    uint32_t base;  /* the literal, or the length or distance without its extra bits */
};

/* Whether the next code word is that of length symbol 285.  Symbol 284 with all extra bits set also
 * means a length of 258. */
static bool is_last_length(const struct wharf_code_lengths *lengths, uint64_t word)
{
    const unsigned nbits = lengths->nbits[285];
    unsigned code = 0;

    if (lengths->n_litlen <= 285 || nbits == 0)
        return false;
    for (unsigned i = 1; i <= nbits; i++)
        code = (code + (i > 1 ? lengths->n_words[WHARF_CODE_LITLEN][i - 1] : 0)) << 1;
    code += lengths->n_words[WHARF_CODE_LITLEN][nbits] - 1u;
    for (unsigned symbol = 286; symbol < lengths->n_litlen; symbol++)
        code -= lengths->nbits[symbol] == nbits;
    return wharf_low_bits(word, nbits) == wharf_code_reverse(code, nbits);
}

/* Separates a length from an entry that holds a length together with its distance. */
static void split_match(const struct wharf_code_lengths *lengths, unsigned length, uint64_t word,
                        struct part *part)
{
    static const uint16_t bases[] = {WHARF_DEFLATE_LENGTH_BASES};
    static const uint8_t extras[] = {WHARF_DEFLATE_LENGTH_EXTRAS};
    unsigned i = 28;

    if (length < WHARF_DEFLATE_MAX_MATCH || !is_last_length(lengths, word))
        for (i = 27; bases[i] > length; i--)
            ;
    part->kind = PART_LENGTH;
    part->nbits = lengths->nbits[WHARF_DEFLATE_FIRST_LENGTH + i];
    part->extra = extras[i];
    part->base = bases[i];
}

static void look_up_litlen(const struct wharf_inflate_tables *tables, uint64_t word,
                           struct part *part)
{
    uint32_t entry = tables->litlen[wharf_low_bits(word, tables->litlen_nbits)];

    if (entry & WHARF_ENTRY_SUBTABLE)
        entry = wharf_entry_follow(tables->litlen, entry, word);
    if (entry & WHARF_ENTRY_SPECIAL) {
        part->kind = wharf_entry_value(entry) == WHARF_ENTRY_END ? PART_END : PART_INVALID;
        part->nbits = wharf_entry_nbits(entry);
    } else if (entry & (WHARF_ENTRY_LITERAL | WHARF_ENTRY_MORE)) {
        part->kind = PART_LITERAL;
        part->base = wharf_entry_value(entry) & 0xff;
        part->nbits = tables->lengths.nbits[part->base];
    } else if (entry & WHARF_ENTRY_FULL) {
        split_match(&tables->lengths, WHARF_DEFLATE_MIN_MATCH + (entry >> 24), word, part);
    } else {
        part->kind = PART_LENGTH;
        part->base = WHARF_DEFLATE_MIN_MATCH + (entry >> 24);
        part->nbits = wharf_entry_code_nbits(entry);
        part->extra = wharf_entry_nbits(entry) - part->nbits;
    }
}

static void look_up_distance(const struct wharf_inflate_tables *tables, uint64_t word,
                             struct part *part)
{
    uint32_t entry = tables->distance[wharf_low_bits(word, WHARF_DISTANCE_TABLE_NBITS)];

    if (entry & WHARF_ENTRY_SUBTABLE)
        entry = wharf_entry_follow(tables->distance, entry, word);
    part->kind = entry & WHARF_ENTRY_SPECIAL ? PART_INVALID : PART_LENGTH;
    part->nbits = wharf_entry_code_nbits(entry);
    part->extra = wharf_entry_nbits(entry) - part->nbits;
    part->base = wharf_entry_value(entry);
}

/* Takes n bits if they are available.  Otherwise only fills the buffer, as zlib does. */
static bool take_part(struct wharf_zlib_call *call, unsigned n, bool frozen)
{
    if (!wharf_zlib_call_need(call, n))
        return false;
    wharf_zlib_call_drop(call, n);
    if (!frozen)
        call->steps->back += (int)n;
    return true;
}

/* State LEN.  `frozen`: see above. */
static enum wharf_zstep take_litlen(struct wharf_zlib_call *call, bool frozen)
{
    struct wharf_zlib_steps *steps = call->steps;
    struct part part = {0};

    if (!frozen)
        steps->back = 0;
    look_up_litlen(steps->inflate.tables, peek(call), &part);
    if (!take_part(call, part.nbits, frozen))
        return WHARF_ZSTEP_LEAVE;
    steps->length = part.base;
    steps->extra = part.extra;
    switch (part.kind) {
    case PART_LITERAL:
        steps->mode = WHARF_ZMODE_LIT;
        break;
    case PART_END:
        steps->back = -1;
        steps->mode = WHARF_ZMODE_TYPE;
        break;
    case PART_LENGTH:
        steps->mode = WHARF_ZMODE_LENEXT;
        break;
    default:
        return wharf_zlib_call_bad(call, "invalid literal/length code");
    }
    return WHARF_ZSTEP_ON;
}

static enum wharf_zstep take_distance(struct wharf_zlib_call *call, bool frozen)
{
    struct wharf_zlib_steps *steps = call->steps;
    struct part part = {0};

    look_up_distance(steps->inflate.tables, peek(call), &part);
    if (!take_part(call, part.nbits, frozen))
        return WHARF_ZSTEP_LEAVE;
    if (part.kind == PART_INVALID)
        return wharf_zlib_call_bad(call, "invalid distance code");
    steps->offset = part.base;
    steps->extra = part.extra;
    steps->mode = WHARF_ZMODE_DISTEXT;
    return WHARF_ZSTEP_ON;
}

/* States LENEXT and DISTEXT. */
static enum wharf_zstep take_extra(struct wharf_zlib_call *call, uint32_t *value, bool frozen)
{
    struct wharf_zlib_steps *steps = call->steps;

    if (!wharf_zlib_call_need(call, steps->extra))
        return WHARF_ZSTEP_LEAVE;
    *value += wharf_zlib_call_take(call, steps->extra);
    if (!frozen)
        steps->back += (int)steps->extra;
    if (steps->mode == WHARF_ZMODE_LENEXT)
        steps->was = steps->length;
    steps->mode = steps->mode == WHARF_ZMODE_LENEXT ? WHARF_ZMODE_DIST : WHARF_ZMODE_MATCH;
    return WHARF_ZSTEP_ON;
}

static enum wharf_zstep copy_match(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;
    size_t n = steps->length;

    if (call->out_left == 0)
        return WHARF_ZSTEP_LEAVE;
    if (steps->offset > reach(call))
        return wharf_zlib_call_bad(call, "invalid distance too far back");
    if (n > call->out_left)
        n = call->out_left;
    wharf_zlib_call_make_room(call);
    uint8_t *to = steps->out + steps->pos;
    const uint8_t *from = to - steps->offset;
    if (steps->offset >= n)
        memcpy(to, from, n);
    else
        for (size_t i = 0; i < n; i++)
            to[i] = from[i];
    steps->pos += n;
    call->out_left -= n;
    steps->length -= (uint32_t)n;
    if (steps->length == 0)
        steps->mode = WHARF_ZMODE_LEN;
    return WHARF_ZSTEP_ON;
}

static enum wharf_zstep put_literal(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;

    if (call->out_left == 0)
        return WHARF_ZSTEP_LEAVE;
    wharf_zlib_call_make_room(call);
    steps->out[steps->pos++] = (uint8_t)steps->length;
    call->out_left--;
    steps->mode = WHARF_ZMODE_LEN;
    return WHARF_ZSTEP_ON;
}

static bool loop_pays(const struct wharf_zlib_call *call)
{
    return call->in_left >= LOOP_IN && call->out_left >= LOOP_OUT && call->steps->bits < 8 &&
           (call->steps->bits == 0 || call->in > call->begin);
}

enum wharf_zstep wharf_zlib_steps_body(struct wharf_zlib_call *call)
{
    struct wharf_zlib_steps *steps = call->steps;
    enum wharf_zstep step = WHARF_ZSTEP_ON;
    bool frozen = false;

    while (step == WHARF_ZSTEP_ON) {
        switch (steps->mode) {
        case WHARF_ZMODE_LEN_BEGIN:
            steps->mode = WHARF_ZMODE_LEN;
            break;
        case WHARF_ZMODE_LEN:
            if (loop_pays(call))
                run_loop(call);
            frozen = call->in_left >= ZLIB_QUICK_IN && call->out_left >= ZLIB_QUICK_OUT;
            step = take_litlen(call, frozen);
            break;
        case WHARF_ZMODE_LENEXT:
            step = take_extra(call, &steps->length, frozen);
            break;
        case WHARF_ZMODE_DIST:
            step = take_distance(call, frozen);
            break;
        case WHARF_ZMODE_DISTEXT:
            step = take_extra(call, &steps->offset, frozen);
            break;
        case WHARF_ZMODE_MATCH:
            step = copy_match(call);
            break;
        case WHARF_ZMODE_LIT:
            step = put_literal(call);
            break;
        default: /* the end of the block, or an error */
            return WHARF_ZSTEP_ON;
        }
    }
    return step;
}
