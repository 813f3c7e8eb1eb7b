/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zstd_block.c: decodes a compressed block, a symbol at a time (zstd_block.h).
 *
 * RFC 8878, sections 3.1.1.3 and 3.1.1.4.  This decoder alone decides: the quick loops stop before
 * whatever is near an end or wrong, and what they leave is done here, with every rule looked at in
 * the order in which zstd_format.h ranks failures.
 */
#include "encoders/zstd/zstd_block.h"

#include <string.h>

#include "encoders/little_endian.h"
#include "encoders/lz_copy.h"

/* ---- literals ------------------------------------------------------------------------------- */

/* The rest of a stream; false: it is not as long as its literals.  Both must end at once: bits that
 * are left are as wrong as literals that are missing. */
static bool finish_stream(const struct wharf_zstd_tables *tables, struct wharf_zstd_stream *stream)
{
    struct wharf_zstd_bits *bits = &stream->bits;

    while (stream->out < stream->out_end && !bits->is_over) {
        uint16_t entry = tables->tree[wharf_zstd_bits_peek(bits, tables->tree_log)];
        wharf_zstd_bits_skip(bits, entry & 15);
        *stream->out++ = (uint8_t)(entry >> 8);
    }
    return !bits->is_over && bits->n_left == 0;
}

static bool decode_one_stream(struct wharf_zstd_walk *walk, size_t at, size_t nbytes, uint8_t *out,
                              size_t n_literals)
{
    struct wharf_zstd_stream stream = {.out = out, .out_end = out + n_literals};

    return (wharf_zstd_bits_init(&stream.bits, walk->in + at, nbytes) &&
            finish_stream(&walk->tables, &stream)) ||
           wharf_zstd_fail(walk, WHARF_REASON_ZSTD_STREAMS, at);
}

/* The sizes of the four streams in the nbytes at `in`, without the table of them.  Only three are
 * said; the fourth has what is left, which must not be less than nothing. */
static bool read_jump_table(const uint8_t *in, size_t nbytes, size_t sizes[4])
{
    size_t sum = WHARF_ZSTD_JUMP_TABLE_NBYTES;

    if (nbytes < WHARF_ZSTD_JUMP_TABLE_NBYTES)
        return false;
    for (unsigned i = 0; i < 3; i++)
        sum += sizes[i] = wharf_load_le16(in + 2 * i);
    sizes[3] = nbytes - sum;
    return sum <= nbytes;
}

static bool decode_four_streams(struct wharf_zstd_walk *walk, size_t at, size_t nbytes,
                                uint8_t *out, size_t n_literals)
{
    struct wharf_zstd_stream streams[4];
    size_t sizes[4], starts[4], n_each = (n_literals + 3) / 4;
    unsigned n_good = 0;

    if (!read_jump_table(walk->in + at, nbytes, sizes))
        return wharf_zstd_fail(walk, WHARF_REASON_ZSTD_STREAMS, at);
    at += WHARF_ZSTD_JUMP_TABLE_NBYTES;
    for (unsigned i = 0; i < 4; i++) {
        /* Each has the same number of literals, rounded up; the last one the rest.  With at least
         * WHARF_ZSTD_MIN_LITERALS_OF_FOUR of them, 3 * n_each is no more than there are. */
        size_t n = i < 3 ? n_each : n_literals;
        streams[i].out = out;
        streams[i].out_end = out += n;
        n_literals -= n;
        starts[i] = at;
        n_good += wharf_zstd_bits_init(&streams[i].bits, walk->in + at, sizes[i]) && n_good == i;
        at += sizes[i];
    }
    /* A stream that cannot be begun is reported only when those before it have been found good: the
     * first failure counts, in the order of the streams. */
    if (n_good == 4 && walk->loops)
        walk->loops->four_streams(&walk->tables, streams);
    for (unsigned i = 0; i < 4; i++)
        if (i == n_good || !finish_stream(&walk->tables, &streams[i]))
            return wharf_zstd_fail(walk, WHARF_REASON_ZSTD_STREAMS, starts[i]);
    return true;
}

/* The tree, unless it is there, and the streams. */
static bool decode_coded_literals(struct wharf_zstd_walk *walk, size_t section_at,
                                  const struct wharf_zstd_literals *section, uint8_t *out)
{
    size_t at = section_at + section->header_nbytes, nbytes = section->nbytes;

    if (section->type == WHARF_ZSTD_LITERALS_TREE) {
        size_t n_tree = wharf_zstd_read_tree(walk->in + at, nbytes, &walk->tables);
        /* A tree and nothing coded by it is no section. */
        if (n_tree == 0 || n_tree == nbytes)
            return wharf_zstd_fail(walk, WHARF_REASON_ZSTD_TREE, at);
        at += n_tree;
        nbytes -= n_tree;
    }
    return (section->has_four_streams ? decode_four_streams : decode_one_stream)(
        walk, at, nbytes, out, section->n_literals);
}

/*
 * The literals section at byte *at of the source, which has in_nbytes to the block's end; *at goes
 * on behind it.  Fills the sequences' literals and room.
 */
static bool decode_literals(struct wharf_zstd_walk *walk, size_t *at, size_t in_nbytes,
                            struct wharf_zstd_sequences *sequences)
{
    struct wharf_zstd_room room = wharf_zstd_room_of_block(walk);
    struct wharf_zstd_literals section;
    enum wharf_reason reason = wharf_zstd_read_literals(walk->in + *at, in_nbytes, &section);

    if (reason != WHARF_REASON_NONE)
        return wharf_zstd_fail(walk, reason, *at);
    if (section.type == WHARF_ZSTD_LITERALS_REPEAT && walk->tables.tree_log == 0)
        return wharf_zstd_fail(walk, WHARF_REASON_ZSTD_TREE, *at);
    if (section.n_literals > room.nbytes)
        return wharf_zstd_fail_room(walk, room.reason, *at);
    /* From here on the room for literals is taken: sequences may add only what is left of it.  So
     * put_literals needs no check, and the literals, which stand at the room's end, are never
     * overtaken by output. */
    sequences->room_nbytes = room.nbytes - section.n_literals;
    sequences->room_reason = room.reason;
    const uint8_t *payload = walk->in + *at + section.header_nbytes;
    uint8_t *out = walk->out + walk->n_out + sequences->room_nbytes;
    sequences->literals = out;
    sequences->readable_end = walk->out + walk->out_avail;
    if (section.type >= WHARF_ZSTD_LITERALS_TREE) {
        if (!decode_coded_literals(walk, *at, &section, out))
            return false;
    } else if (section.type == WHARF_ZSTD_LITERALS_RLE) {
        memset(out, payload[0], section.n_literals);
    } else {
        /* Raw ones are taken from the source, where they stand. */
        sequences->literals = payload;
        sequences->readable_end = walk->in + walk->in_nbytes;
    }
    sequences->literals_end = sequences->literals + section.n_literals;
    *at += section.header_nbytes + section.nbytes;
    return true;
}

static void put_literals(struct wharf_zstd_walk *walk, struct wharf_zstd_sequences *sequences,
                         size_t n)
{
    /* Where the room ends, literals are their own destination, or nearly. */
    memmove(walk->out + walk->n_out, sequences->literals, n);
    walk->n_out += n;
    sequences->literals += n;
}

/* ---- sequences ------------------------------------------------------------------------------ */

/* With spare_nbytes of room behind it.  The quick copy writes up to WHARF_LZ_SPARE_NBYTES too many,
 * which must not reach literals that are still to be taken. */
static void copy_match(uint8_t *op, size_t distance, size_t length, size_t spare_nbytes)
{
    size_t n_quick = length;

    if (spare_nbytes < WHARF_LZ_SPARE_NBYTES)
        n_quick = length > WHARF_LZ_SPARE_NBYTES ? length - WHARF_LZ_SPARE_NBYTES : 0;
    if (n_quick > 0)
        wharf_lz_match_quickly(op, distance, n_quick);
    for (size_t i = n_quick; i < length; i++)
        op[i] = *(op + i - distance);
}

static uint32_t value_of(struct wharf_zstd_bits *bits, const struct wharf_zstd_cell *cell)
{
    return cell->base + wharf_zstd_bits_take(bits, cell->n_extra);
}

static uint32_t next_state(struct wharf_zstd_bits *bits, const struct wharf_zstd_cell *cell)
{
    return cell->next + wharf_zstd_bits_take(bits, cell->n_bits);
}

/* The next sequence: NONE or what is wrong. */
static enum wharf_reason do_sequence(struct wharf_zstd_walk *walk, struct wharf_zstd_sequences *s)
{
    const struct wharf_zstd_cell *literal_length = &walk->tables.literal_lengths[s->literal_length];
    const struct wharf_zstd_cell *offset = &walk->tables.offsets[s->offset];
    const struct wharf_zstd_cell *match_length = &walk->tables.match_lengths[s->match_length];
    /* In this order, and the states below in another one: sections 3.1.1.3.2.1.1 and 3.1.1.4. */
    uint32_t value = value_of(&s->bits, offset);
    uint32_t length = value_of(&s->bits, match_length);
    uint32_t n_literals = value_of(&s->bits, literal_length);

    if (s->bits.is_over)
        return WHARF_REASON_ZSTD_SEQUENCES;
    if (n_literals > (size_t)(s->literals_end - s->literals))
        return WHARF_REASON_ZSTD_SEQUENCE_LITERALS;
    if (length > s->room_nbytes)
        return s->room_reason;
    /* The literals first: a match may reach back into them. */
    put_literals(walk, s, n_literals);
    uint32_t distance = wharf_zstd_offset(walk->offsets, value, n_literals > 0);
    if (distance == 0 || distance > wharf_zstd_reach(walk))
        return WHARF_REASON_ZSTD_OFFSET;
    s->room_nbytes -= length;
    copy_match(walk->out + walk->n_out, distance, length, s->room_nbytes);
    walk->n_out += length;
    /* The last sequence has no states behind it. */
    if (--s->n > 0) {
        s->literal_length = next_state(&s->bits, literal_length);
        s->match_length = next_state(&s->bits, match_length);
        s->offset = next_state(&s->bits, offset);
    }
    return s->bits.is_over ? WHARF_REASON_ZSTD_SEQUENCES : WHARF_REASON_NONE;
}

/* All of them, whose bits are the nbytes at byte `at` of the source. */
static bool do_sequences(struct wharf_zstd_walk *walk, size_t at, size_t nbytes,
                         struct wharf_zstd_sequences *s)
{
    if (!wharf_zstd_bits_init(&s->bits, walk->in + at, nbytes))
        return wharf_zstd_fail(walk, WHARF_REASON_ZSTD_SEQUENCES, at);
    s->literal_length = wharf_zstd_bits_take(&s->bits, walk->tables.literal_length_log);
    s->offset = wharf_zstd_bits_take(&s->bits, walk->tables.offset_log);
    s->match_length = wharf_zstd_bits_take(&s->bits, walk->tables.match_length_log);
    if (s->bits.is_over)
        return wharf_zstd_fail(walk, WHARF_REASON_ZSTD_SEQUENCES, at);
    s->has_bad_offset = false;
    if (walk->loops)
        walk->loops->sequences(walk, s);
    if (s->has_bad_offset)
        return wharf_zstd_fail(walk, WHARF_REASON_ZSTD_OFFSET, at);
    while (s->n > 0) {
        enum wharf_reason reason = do_sequence(walk, s);
        if (reason != WHARF_REASON_NONE)
            return wharf_zstd_fail_room(walk, reason, at);
    }
    /* Like a stream of literals, it must end with its last sequence. */
    if (s->bits.n_left > 0)
        return wharf_zstd_fail(walk, WHARF_REASON_ZSTD_SEQUENCES, at);
    return true;
}

bool wharf_zstd_decode_block(struct wharf_zstd_walk *walk, size_t nbytes)
{
    size_t at = walk->at, end = walk->at + nbytes, header_nbytes;
    struct wharf_zstd_sequences sequences;

    if (!decode_literals(walk, &at, nbytes, &sequences))
        return false;
    enum wharf_reason reason = wharf_zstd_read_sequences(walk->in + at, end - at, &walk->tables,
                                                         &sequences.n, &header_nbytes);
    at += header_nbytes;
    if (reason != WHARF_REASON_NONE)
        return wharf_zstd_fail(walk, reason, at);
    if (sequences.n > 0 && !do_sequences(walk, at, end - at, &sequences))
        return false;
    put_literals(walk, &sequences, (size_t)(sequences.literals_end - sequences.literals));
    return true;
}
