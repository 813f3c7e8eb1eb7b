/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate.c: the core of the inflater (RFC 1951), and the exact loop, which alone reports errors.
 *
 * wharf_inflate_loop (inflate_loop.h) decodes without bounds checks while source and output have
 * room to spare, and stops before anything unusual.  run_exact continues there, one unit a turn,
 * with all checks.
 *
 * INVARIANT: bit_pos and out_next are at the first unit that is not decoded yet; a unit is decoded
 * as a whole or not at all.  So a decode can stop anywhere and continue with more source or room.
 */
#include "encoders/deflate/inflate.h"

#include "encoders/decode_poll.h"
#include "encoders/deflate/deflate_format.h"
#include "encoders/deflate/inflate_header.h"
#include "encoders/deflate/inflate_loop.h"

/* Units of output that stand between two places. */
static size_t n_units(const struct wharf_inflate *inflate, const uint8_t *from, const uint8_t *to)
{
    return (size_t)(to - from) >> inflate->is_wide;
}

/* A literal, a whole match, or the end of a block. */
struct unit {
    unsigned nbits;
    unsigned length; /* 0: the end of the block; 1: a literal */
    uint32_t value;  /* the literal, or the distance of a match */
};

/* The distance of a match, its code at the front of `word` and `left` bits to the source's end. */
static uint32_t read_distance(const struct wharf_inflate_tables *tables, uint64_t word,
                              uint64_t left, struct unit *unit)
{
    uint32_t entry = tables->distance[wharf_low_bits(word, WHARF_DISTANCE_TABLE_NBITS)];

    if (entry & WHARF_ENTRY_SUBTABLE)
        entry = wharf_entry_follow(tables->distance, entry, word);
    if (wharf_entry_code_nbits(entry) > left)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (entry & WHARF_ENTRY_SPECIAL)
        return WHARF_REASON_DEFLATE_DISTANCE_SYMBOL;
    if (wharf_entry_nbits(entry) > left)
        return WHARF_REASON_INPUT_TRUNCATED;
    unit->nbits += wharf_entry_nbits(entry);
    unit->value = wharf_entry_value(entry) + wharf_entry_extra(entry, word);
    return WHARF_REASON_NONE;
}

/* A match whose length, or length and distance, are in `entry`. */
static uint32_t read_match(const struct wharf_inflate_tables *tables, uint32_t entry, uint64_t word,
                           uint64_t left, struct unit *unit)
{
    unit->nbits = wharf_entry_nbits(entry);
    if (unit->nbits > left)
        return WHARF_REASON_INPUT_TRUNCATED;
    unit->length = WHARF_DEFLATE_MIN_MATCH + (entry >> 24);
    if (entry & WHARF_ENTRY_FULL) {
        uint32_t distance = wharf_inflate_distances[(uint8_t)(entry >> 8)];
        unit->value =
            wharf_entry_value(distance) + (uint32_t)(wharf_low_bits(word, unit->nbits) >>
                                                     (unit->nbits - wharf_entry_nbits(distance)));
        return WHARF_REASON_NONE;
    }
    unit->length += wharf_entry_extra(entry, word);
    return read_distance(tables, word >> unit->nbits, left - unit->nbits, unit);
}

static uint32_t read_special(uint32_t entry, uint64_t left, struct unit *unit)
{
    unit->nbits = wharf_entry_nbits(entry);
    unit->length = 0;
    if (unit->nbits > left)
        return WHARF_REASON_INPUT_TRUNCATED;
    if (wharf_entry_value(entry) != WHARF_ENTRY_END)
        return WHARF_REASON_DEFLATE_LITLEN_SYMBOL;
    return WHARF_REASON_NONE;
}

/* Reads the unit at bit_pos, which stays.  Whether it fits the output is not looked at. */
static uint32_t read_unit(const struct wharf_inflate *inflate, struct unit *unit)
{
    const struct wharf_inflate_tables *tables = inflate->tables;
    uint64_t left = 8 * (uint64_t)inflate->in_nbytes - inflate->bit_pos;
    uint64_t word = wharf_peek_bits(inflate->in, inflate->in_nbytes, inflate->bit_pos);
    uint32_t entry = tables->litlen[wharf_low_bits(word, tables->litlen_nbits)];

    if (entry & WHARF_ENTRY_SUBTABLE)
        entry = wharf_entry_follow(tables->litlen, entry, word);
    if (entry & WHARF_ENTRY_SPECIAL)
        return read_special(entry, left, unit);
    if (entry & (WHARF_ENTRY_LITERAL | WHARF_ENTRY_MORE)) {
        /* The first literal alone: what comes with it is the next unit. */
        unit->value = wharf_entry_value(entry) & 0xff;
        unit->length = 1;
        unit->nbits = tables->lengths.nbits[unit->value];
        return unit->nbits > left ? WHARF_REASON_INPUT_TRUNCATED : WHARF_REASON_NONE;
    }
    uint32_t reason = read_match(tables, entry, word, left, unit);
    if (reason == WHARF_REASON_NONE &&
        unit->value > n_units(inflate, inflate->out_begin, inflate->out_next))
        return WHARF_REASON_DEFLATE_DISTANCE_TOO_FAR;
    return reason;
}

/* Exactly `length` bytes: what has been copied is a longer period, to be copied at once. */
static void copy_match(uint8_t *out, size_t distance, size_t length)
{
    const uint8_t *from = out - distance;

    while (length > distance) {
        memcpy(out, from, distance);
        out += distance;
        length -= distance;
        distance *= 2;
    }
    memcpy(out, from, length);
}

/* What has been read and fits. */
static void put_unit(struct wharf_inflate *inflate, const struct unit *unit)
{
    const unsigned wide = inflate->is_wide;

    if (unit->length > 1)
        copy_match(inflate->out_next, (size_t)unit->value << wide, (size_t)unit->length << wide);
    else if (wide)
        *(uint16_t *)(void *)inflate->out_next = (uint8_t)unit->value;
    else
        *inflate->out_next = (uint8_t)unit->value;
    inflate->out_next += (size_t)unit->length << wide;
}

/* The careful loop: decodes to the block's end or to whatever stops it. */
static uint32_t run_exact(struct wharf_inflate *inflate)
{
    struct unit unit;

    for (;;) {
        uint32_t reason = read_unit(inflate, &unit);
        if (reason != WHARF_REASON_NONE)
            return reason;
        if (unit.length > n_units(inflate, inflate->out_next, inflate->out_end))
            return WHARF_REASON_OUTPUT_FULL;
        inflate->bit_pos += unit.nbits;
        if (unit.length == 0)
            return WHARF_REASON_NONE;
        put_unit(inflate, &unit);
    }
}

static uint32_t run_coded(struct wharf_inflate *inflate)
{
    const uint64_t start = inflate->bit_pos;

    wharf_inflate_loop(inflate);
    uint32_t reason = run_exact(inflate);
    inflate->body_nbits += inflate->bit_pos - start;
    if (reason == WHARF_REASON_NONE)
        inflate->phase = WHARF_INFLATE_HEADER;
    return reason;
}

static void put_stored(struct wharf_inflate *inflate, const uint8_t *in, size_t n)
{
    if (inflate->is_wide)
        for (size_t i = 0; i < n; i++)
            ((uint16_t *)(void *)inflate->out_next)[i] = in[i];
    else if (n)
        memcpy(inflate->out_next, in, n);
    inflate->out_next += n << inflate->is_wide;
}

static uint32_t run_stored(struct wharf_inflate *inflate)
{
    size_t at = inflate->bit_pos >> 3;
    size_t in_left = inflate->in_nbytes - at;
    size_t out_left = n_units(inflate, inflate->out_next, inflate->out_end);
    size_t n = inflate->stored_left;

    if (n > in_left)
        n = in_left;
    if (n > out_left)
        n = out_left;
    put_stored(inflate, inflate->in + at, n);
    inflate->bit_pos += 8 * (uint64_t)n;
    inflate->stored_left -= n;
    if (inflate->stored_left)
        return n == in_left ? WHARF_REASON_INPUT_TRUNCATED : WHARF_REASON_OUTPUT_FULL;
    inflate->phase = WHARF_INFLATE_HEADER;
    return WHARF_REASON_NONE;
}

uint32_t wharf_inflate_run(struct wharf_inflate *inflate)
{
    return wharf_inflate_run_until(inflate, UINT64_MAX);
}

uint32_t wharf_inflate_run_until(struct wharf_inflate *inflate, uint64_t stop_bit)
{
    uint32_t reason = WHARF_REASON_NONE;

    while (reason == WHARF_REASON_NONE && inflate->phase != WHARF_INFLATE_DONE) {
        if (inflate->phase == WHARF_INFLATE_STORED)
            reason = run_stored(inflate);
        else if (inflate->phase == WHARF_INFLATE_CODED)
            reason = run_coded(inflate);
        else if (inflate->final_block)
            inflate->phase = WHARF_INFLATE_DONE;
        else if (inflate->bit_pos >= stop_bit)
            return WHARF_REASON_NONE;
        else
            reason = wharf_inflate_header(inflate);
    }
    if (inflate->phase == WHARF_INFLATE_DONE)
        inflate->bit_pos = (inflate->bit_pos + 7) & ~(uint64_t)7;
    return reason;
}

/* Whether all that stopped the run is that it was not given everything yet. */
static bool can_go_on(const struct wharf_inflate *inflate, uint32_t reason, const uint8_t *out_end)
{
    if (reason == WHARF_REASON_INPUT_TRUNCATED)
        return inflate->in_more;
    return reason == WHARF_REASON_OUTPUT_FULL && inflate->out_end != out_end;
}

uint32_t wharf_inflate_run_polled(struct wharf_inflate *inflate,
                                  const struct wharf_codec_setting *setting, uint32_t *ret_reason)
{
    const size_t in_nbytes = inflate->in_nbytes;
    uint8_t *const out_end = inflate->out_end;
    uint32_t result = WHARF_OK;

    for (;;) {
        size_t in_left = in_nbytes - (size_t)(inflate->bit_pos >> 3);
        inflate->in_more = in_left > WHARF_POLL_IN_NBYTES;
        inflate->in_nbytes = in_nbytes - (inflate->in_more ? in_left - WHARF_POLL_IN_NBYTES : 0);
        if (out_end - inflate->out_next > WHARF_POLL_OUT_NBYTES)
            inflate->out_end = inflate->out_next + WHARF_POLL_OUT_NBYTES;
        else
            inflate->out_end = out_end;
        *ret_reason = wharf_inflate_run(inflate);
        if (!can_go_on(inflate, *ret_reason, out_end))
            break;
        result = wharf_decode_poll(setting);
        if (result != WHARF_OK) {
            *ret_reason = WHARF_REASON_NONE;
            break;
        }
    }
    inflate->in_nbytes = in_nbytes;
    inflate->out_end = out_end;
    inflate->in_more = false;
    return result;
}
