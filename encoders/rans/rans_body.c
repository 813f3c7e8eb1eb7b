/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_body.c: a body taken apart, and its splits one after the other.
 *
 * Splits are fields of varying width: cuts and groups have one width for all, so any of them is
 * found at once; starts have a width for each split, so they are found through those before
 * (struct wharf_rans_cursor).  Nothing is allocated, however many splits there are.
 *
 * What is read is not believed: rule 4 (wharf_rans_split_follows) says only that windows lie in
 * order inside the stream.  Whether they are true shows when a decoder passes them.
 */
#include "encoders/rans/rans_body.h"

#include "encoders/decode_poll.h"
#include "encoders/rans/rans_bits.h"

/* Fields in the order in which they stand, as far as they are there. */
struct field_reader {
    const uint8_t *in;
    uint64_t at;
    uint64_t n_bits;
    bool truncated;
};

/* Steps over n_bits; false, from then on always, when they are not all there. */
static bool skip_fields(struct field_reader *reader, uint64_t n_bits)
{
    if (reader->truncated || n_bits > reader->n_bits - reader->at) {
        reader->truncated = true;
        return false;
    }
    reader->at += n_bits;
    return true;
}

/* A field, or 0 when it is cut off. */
static uint32_t read_field(struct field_reader *reader, uint32_t n_bits)
{
    uint64_t at = reader->at;

    return skip_fields(reader, n_bits) ? wharf_rans_bits(reader->in, at, n_bits) : 0;
}

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
    return (a + b - 1) / b;
}

/* Past the starts of all splits; the result of the last question whether to go on. */
static uint32_t skip_starts(struct field_reader *reader, uint64_t n,
                            const struct wharf_codec_setting *setting)
{
    uint32_t result = WHARF_OK;

    for (uint64_t s = 0; s < n && !reader->truncated && result == WHARF_OK; s++) {
        skip_fields(reader, (uint64_t)WHARF_RANS_N_LANES * (read_field(reader, 4) + 1));
        if (s % WHARF_RANS_POLL_NSKIPPED == WHARF_RANS_POLL_NSKIPPED - 1)
            result = wharf_decode_poll(setting);
    }
    return result;
}

/* Items 4 to 8: one length each for the cuts and the groups, one length a split for the starts. */
static uint32_t read_split_fields(struct field_reader *reader,
                                  const struct wharf_codec_setting *setting,
                                  struct wharf_rans_body *body)
{
    uint64_t n = body->n_splits - 1;

    body->cut_nbits = read_field(reader, 5) + 1;
    body->cuts_at = reader->at;
    skip_fields(reader, n * (1 + body->cut_nbits));
    body->group_nbits = read_field(reader, 5) + 1;
    body->groups_at = reader->at;
    skip_fields(reader, n * (1 + body->group_nbits));
    body->starts_at = reader->at;
    return skip_starts(reader, n, setting);
}

/* Items 2 and 3. */
static bool read_sizes(struct field_reader *reader, struct wharf_rans_body *body)
{
    uint32_t n_symbols;

    body->n_splits = read_field(reader, read_field(reader, 4) + 1);
    n_symbols = read_field(reader, read_field(reader, 5) + 1);
    body->n_symbols = n_symbols;
    body->n_groups = (uint32_t)ceil_div(n_symbols, WHARF_RANS_N_LANES);
    return body->n_splits > 0 && n_symbols <= WHARF_RANS_MAX_SYMBOLS;
}

void wharf_rans_skip_split(const struct wharf_rans_body *body, struct wharf_rans_cursor *cursor)
{
    uint32_t n_bits = wharf_rans_bits(body->in, cursor->starts_at, 4) + 1;

    cursor->starts_at += 4 + (uint64_t)WHARF_RANS_N_LANES * n_bits;
    cursor->number++;
}

/* Adds to each start a field of n_bits (1 to 16), from bit `at` on: word by word, since streams
 * have a great many of them. */
static void add_starts(const uint8_t *in, uint64_t at, uint32_t n_bits, uint32_t *starts)
{
    const uint8_t *word = in + 2 * (at / 16);
    uint32_t n_left = 16 - at % 16; /* bits of `gathered` that are not used up */
    uint64_t gathered = wharf_load_le16(word);

    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++) {
        if (n_left < n_bits) {
            word += 2;
            gathered = gathered << 16 | wharf_load_le16(word);
            n_left += 16;
        }
        n_left -= n_bits;
        starts[lane] += (uint32_t)(gathered >> n_left) & ((1u << n_bits) - 1);
    }
}

bool wharf_rans_next_split(const struct wharf_rans_body *body, struct wharf_rans_cursor *cursor,
                           struct wharf_rans_split *ret_split)
{
    uint32_t number = cursor->number;
    const uint8_t *states;
    uint32_t start_nbits;
    int64_t first_group;

    if (number >= body->n_splits)
        return false;
    ret_split->first_word = wharf_rans_signed_bits(
        body->in, body->cuts_at + (number - 1) * (1 + (uint64_t)body->cut_nbits), body->cut_nbits);
    ret_split->first_word +=
        (int64_t)((body->n_splits - number) * ceil_div(body->n_words, body->n_splits));
    first_group = wharf_rans_signed_bits(
        body->in, body->groups_at + (number - 1) * (1 + (uint64_t)body->group_nbits),
        body->group_nbits);
    first_group += (int64_t)(number * ceil_div(body->n_groups, body->n_splits));

    /* Out of 32 bits: in any case behind the last group. */
    if (first_group < 0 || first_group > UINT32_MAX - WHARF_RANS_MAX_ALPHABET)
        first_group = UINT32_MAX - WHARF_RANS_MAX_ALPHABET;
    start_nbits = wharf_rans_bits(body->in, cursor->starts_at, 4) + 1;
    cursor->starts_at += 4;
    states = body->split_states + (uint64_t)(number - 1) * WHARF_RANS_SPLIT_STATES_NBYTES;
    ret_split->first_group = UINT32_MAX;
    ret_split->last_group = 0;
    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++)
        ret_split->start[lane] = (uint32_t)first_group;
    add_starts(body->in, cursor->starts_at, start_nbits, ret_split->start);
    cursor->starts_at += (uint64_t)WHARF_RANS_N_LANES * start_nbits;
    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++) {
        uint32_t start = ret_split->start[lane];

        ret_split->state[lane] = (uint16_t)wharf_load_le16(states + 2 * lane);
        if (start < ret_split->first_group)
            ret_split->first_group = start;
        if (start > ret_split->last_group)
            ret_split->last_group = start;
    }
    cursor->number++;
    return true;
}

bool wharf_rans_split_follows(const struct wharf_rans_body *body,
                              const struct wharf_rans_split *split, int64_t word_before,
                              int64_t group_before)
{
    return split->first_word >= 0 && split->first_word < word_before &&
           (int64_t)split->first_group > group_before && split->last_group < body->n_groups;
}

void wharf_rans_order_init(struct wharf_rans_order *order, const struct wharf_rans_body *body)
{
    *order = (struct wharf_rans_order){
        .cursor = wharf_rans_first_split(body),
        .word_before = (int64_t)body->n_words,
        .group_before = -1,
    };
}

bool wharf_rans_order_keeps(struct wharf_rans_order *order, const struct wharf_rans_body *body,
                            uint32_t n)
{
    struct wharf_rans_split split;

    for (uint32_t i = 0; i < n && wharf_rans_next_split(body, &order->cursor, &split); i++) {
        if (!wharf_rans_split_follows(body, &split, order->word_before, order->group_before))
            return false;
        order->word_before = split.first_word;
        order->group_before = split.last_group;
    }
    return true;
}

bool wharf_rans_body_take_apart(const uint8_t *in, uint64_t in_nbytes,
                                const struct wharf_codec_setting *setting,
                                struct wharf_rans_body *ret_body, enum wharf_reason *ret_reason,
                                uint32_t *ret_result)
{
    struct field_reader reader = {.in = in, .n_bits = 8 * in_nbytes};
    struct wharf_rans_body body = {.in = in};
    uint64_t words_at;
    uint64_t n_split_words;

    *ret_reason = WHARF_REASON_INPUT_TRUNCATED;
    *ret_result = WHARF_BAD_DATA;
    if (in_nbytes % WHARF_RANS_WORD_NBYTES != 0 ||
        !skip_fields(&reader, 8 * WHARF_RANS_STATES_NBYTES))
        return false;
    if (!read_sizes(&reader, &body)) {
        if (!reader.truncated)
            *ret_reason = WHARF_REASON_RANS_HEADER;
        return false;
    }
    uint32_t answer = body.n_splits > 1 ? read_split_fields(&reader, setting, &body) : WHARF_OK;
    if (answer != WHARF_OK) {
        *ret_reason = WHARF_REASON_NONE;
        *ret_result = answer;
        return false;
    }
    /* A word's end is stepped to even from a word's end: item 9. */
    words_at = reader.at / WHARF_RANS_WORD_NBITS + 1;
    n_split_words = (uint64_t)(body.n_splits - 1) * WHARF_RANS_N_LANES;
    if (reader.truncated || words_at + n_split_words > in_nbytes / WHARF_RANS_WORD_NBYTES)
        return false;
    body.split_states = in + WHARF_RANS_WORD_NBYTES * words_at;
    body.words = body.split_states + WHARF_RANS_WORD_NBYTES * n_split_words;
    body.n_words = in_nbytes / WHARF_RANS_WORD_NBYTES - words_at - n_split_words;
    *ret_body = body;
    return true;
}

bool wharf_rans_body_parse(const uint8_t *in, uint64_t in_nbytes, struct wharf_rans_body *ret_body,
                           enum wharf_reason *ret_reason)
{
    struct wharf_rans_order order;
    uint32_t result;

    if (!wharf_rans_body_take_apart(in, in_nbytes, NULL, ret_body, ret_reason, &result))
        return false;
    *ret_reason = WHARF_REASON_RANS_SPLIT;
    wharf_rans_order_init(&order, ret_body);
    return wharf_rans_order_keeps(&order, ret_body, ret_body->n_splits);
}
