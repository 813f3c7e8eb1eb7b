/* SPDX-License-Identifier: Apache-2.0 */
#include "encoders/deflate/inflate.h"

#include "encoders/deflate/deflate_format.h"
#include "encoders/deflate/inflate_header.h"
#include "encoders/deflate/inflate_loop.h"

/* A literal, a whole match, or the end of a block. */
struct unit {
    unsigned nbits;
    unsigned length; /* 0: the end of the block; 1: a literal */
    uint32_t value;  /* the literal, or the distance of a match */
};

/* The entry of the code at the front of `word`, second table included. */
static uint32_t look_up(const uint32_t *table, unsigned table_nbits, uint64_t word)
{
    uint32_t entry = table[wharf_low_bits(word, table_nbits)];

    if (entry & WHARF_ENTRY_SUBTABLE)
        entry = table[wharf_entry_sum(entry, word)];
    return entry;
}

/* The distance of a match, its code at the front of `word` and `left` bits to the source's end. */
static uint32_t read_distance(const struct wharf_inflate *inflate, uint64_t word, uint64_t left,
                              struct unit *unit)
{
    const struct wharf_inflate_tables *tables = &inflate->tables;
    uint32_t entry = look_up(tables->distance, tables->distance_nbits, word);

    if (wharf_entry_code_nbits(entry) > left)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (entry & WHARF_ENTRY_SPECIAL)
        return WHARF_REASON_DEFLATE_DISTANCE_SYMBOL;
    if (wharf_entry_nbits(entry) > left)
        return WHARF_REASON_INPUT_TRUNCATED;
    unit->nbits += wharf_entry_nbits(entry);
    unit->value = wharf_entry_sum(entry, word);
    if (unit->value > (size_t)(inflate->out_next - inflate->out_begin))
        return WHARF_REASON_DEFLATE_DISTANCE_TOO_FAR;
    return WHARF_REASON_NONE;
}

/* Reads the unit at bit_pos, which stays.  Whether it fits the output is not looked at. */
static uint32_t read_unit(const struct wharf_inflate *inflate, struct unit *unit)
{
    const struct wharf_inflate_tables *tables = &inflate->tables;
    uint64_t left = 8 * (uint64_t)inflate->in_nbytes - inflate->bit_pos;
    uint64_t word = wharf_peek_bits(inflate->in, inflate->in_nbytes, inflate->bit_pos);
    uint32_t entry = look_up(tables->litlen, tables->litlen_nbits, word);

    unit->nbits = wharf_entry_code_nbits(entry);
    if (unit->nbits > left)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (entry & WHARF_ENTRY_LITERAL) {
        unit->length = 1;
        unit->value = wharf_entry_value(entry) & 0xff;
        return WHARF_REASON_NONE;
    }
    if (entry & WHARF_ENTRY_SPECIAL) {
        unit->length = 0;
        return wharf_entry_value(entry) == WHARF_ENTRY_END ? WHARF_REASON_NONE
                                                           : WHARF_REASON_DEFLATE_LITLEN_SYMBOL;
    }
    unit->nbits = wharf_entry_nbits(entry);
    if (unit->nbits > left)
        return WHARF_REASON_INPUT_TRUNCATED;
    unit->length = wharf_entry_sum(entry, word);
    return read_distance(inflate, word >> unit->nbits, left - unit->nbits, unit);
}

static void copy_match(uint8_t *out, uint32_t distance, unsigned length)
{
    if (distance >= length) {
        memcpy(out, out - distance, length);
        return;
    }
    while (length--) {
        *out = *(out - distance);
        out++;
    }
}

/* The careful loop: the rest of a block, to its end or to whatever stops it. */
static uint32_t run_coded(struct wharf_inflate *inflate)
{
    struct unit unit;

    wharf_inflate_loop(inflate);
    for (;;) {
        uint32_t reason = read_unit(inflate, &unit);
        if (reason != WHARF_REASON_NONE)
            return reason;
        if (unit.length > (size_t)(inflate->out_end - inflate->out_next))
            return WHARF_REASON_OUTPUT_FULL;
        inflate->bit_pos += unit.nbits;
        if (unit.length == 0)
            break;
        if (unit.length == 1)
            *inflate->out_next = (uint8_t)unit.value;
        else
            copy_match(inflate->out_next, unit.value, unit.length);
        inflate->out_next += unit.length;
    }
    inflate->phase = WHARF_INFLATE_HEADER;
    return WHARF_REASON_NONE;
}

static uint32_t run_stored(struct wharf_inflate *inflate)
{
    size_t at = inflate->bit_pos >> 3;
    size_t in_left = inflate->in_nbytes - at;
    size_t out_left = (size_t)(inflate->out_end - inflate->out_next);
    size_t n = inflate->stored_left;

    if (n > in_left)
        n = in_left;
    if (n > out_left)
        n = out_left;
    if (n)
        memcpy(inflate->out_next, inflate->in + at, n);
    inflate->out_next += n;
    inflate->bit_pos += 8 * (uint64_t)n;
    inflate->stored_left -= n;
    if (inflate->stored_left)
        return n == in_left ? WHARF_REASON_INPUT_TRUNCATED : WHARF_REASON_OUTPUT_FULL;
    inflate->phase = WHARF_INFLATE_HEADER;
    return WHARF_REASON_NONE;
}

uint32_t wharf_inflate_run(struct wharf_inflate *inflate)
{
    uint32_t reason = WHARF_REASON_NONE;

    while (reason == WHARF_REASON_NONE && inflate->phase != WHARF_INFLATE_DONE) {
        if (inflate->phase == WHARF_INFLATE_STORED)
            reason = run_stored(inflate);
        else if (inflate->phase == WHARF_INFLATE_CODED)
            reason = run_coded(inflate);
        else if (inflate->final_block)
            inflate->phase = WHARF_INFLATE_DONE;
        else
            reason = wharf_inflate_header(inflate);
    }
    if (inflate->phase == WHARF_INFLATE_DONE)
        inflate->bit_pos = (inflate->bit_pos + 7) & ~(uint64_t)7;
    return reason;
}
