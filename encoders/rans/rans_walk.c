/* SPDX-License-Identifier: Apache-2.0 */
#include "encoders/rans/rans_walk.h"

/* One decoder on its way through the groups. */
struct walk {
    const struct wharf_rans_body *body;
    const struct wharf_rans_model *model;
    const uint8_t *indexes;
    uint8_t *out;
    uint32_t states[WHARF_RANS_N_LANES];
    int64_t next_word;

    /* The split whose window comes next, if one does. */
    struct wharf_rans_cursor cursor;
    struct wharf_rans_split split;
    bool has_split;
    bool cut_seen; /* its first word was taken */
};

static void put_symbol(struct walk *walk, uint64_t number, uint32_t symbol)
{
    if (walk->model->shape.symbol_nbytes == 1) {
        walk->out[number] = (uint8_t)symbol;
    } else {
        walk->out[2 * number] = (uint8_t)symbol;
        walk->out[2 * number + 1] = (uint8_t)(symbol >> 8);
    }
}

/* Decodes symbol `number` without taking a word; false when its slot is nobody's. */
static bool decode_symbol(struct walk *walk, uint64_t number)
{
    const struct wharf_rans_model *model = walk->model;
    uint32_t distribution = walk->indexes ? walk->indexes[number] : 0;
    uint32_t *state = &walk->states[number % WHARF_RANS_N_LANES];
    uint32_t slot = *state & ((1u << model->shape.n_bits) - 1);
    uint32_t symbol;
    struct wharf_rans_range range;

    if (slot >= model->totals[distribution])
        return false;
    symbol = model->slot_symbols[((size_t)distribution << model->shape.n_bits) + slot];
    range = model->ranges[(size_t)distribution * model->shape.alphabet + symbol];
    *state = (range.frequency_less_1 + 1u) * (*state >> model->shape.n_bits) + slot - range.first;
    put_symbol(walk, number, symbol);
    return true;
}

/* Whether `lane`, after its symbol of `group`, does what the split of this window says. */
static bool agrees_with_split(struct walk *walk, uint32_t group, uint32_t lane, bool takes_word)
{
    const struct wharf_rans_split *split = &walk->split;

    if (group < split->start[lane])
        return !takes_word || !walk->cut_seen;
    if (group > split->start[lane])
        return true;
    if (!walk->cut_seen && walk->next_word != split->first_word)
        return false;
    walk->cut_seen = true;
    return takes_word && walk->states[lane] == split->state[lane];
}

/* Takes the words that a group needs; the group's `n` symbols were decoded. */
static enum wharf_reason take_words(struct walk *walk, uint32_t group, uint32_t n)
{
    bool in_window = walk->has_split && group >= walk->split.first_group;
    bool has_run_out = false;

    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++) {
        bool takes_word = lane < n && walk->states[lane] < WHARF_RANS_LOW;

        if (in_window && !agrees_with_split(walk, group, lane, takes_word))
            return WHARF_REASON_RANS_SPLIT;
        if (!takes_word)
            continue;
        if (walk->next_word >= 0)
            walk->states[lane] = walk->states[lane] << WHARF_RANS_WORD_NBITS |
                                 wharf_rans_word(walk->body, walk->next_word);
        else
            has_run_out = true;
        walk->next_word--;
    }
    return has_run_out ? WHARF_REASON_INPUT_TRUNCATED : WHARF_REASON_NONE;
}

static enum wharf_reason walk_group(struct walk *walk, uint32_t group)
{
    uint64_t first = (uint64_t)group * WHARF_RANS_N_LANES;
    uint64_t left = walk->body->n_symbols - first;
    uint32_t n = left < WHARF_RANS_N_LANES ? (uint32_t)left : WHARF_RANS_N_LANES;
    enum wharf_reason reason;

    for (uint32_t lane = 0; lane < n; lane++)
        if (!decode_symbol(walk, first + lane))
            return WHARF_REASON_RANS_SYMBOL;
    reason = take_words(walk, group, n);
    if (reason == WHARF_REASON_NONE && walk->has_split && group == walk->split.last_group) {
        walk->has_split = wharf_rans_next_split(walk->body, &walk->cursor, &walk->split);
        walk->cut_seen = false;
    }
    return reason;
}

/* Rule 6. */
static bool read_final_states(struct walk *walk)
{
    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++) {
        walk->states[lane] = wharf_rans_final_state(walk->body, lane);
        if (walk->states[lane] < WHARF_RANS_LOW)
            return false;
    }
    return true;
}

/* Rule 8. */
static enum wharf_reason check_end(const struct walk *walk)
{
    if (walk->next_word >= 0)
        return WHARF_REASON_RANS_WORDS_LEFT;
    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++)
        if (walk->states[lane] != WHARF_RANS_LOW)
            return WHARF_REASON_RANS_STATE;
    return WHARF_REASON_NONE;
}

enum wharf_reason wharf_rans_walk(const struct wharf_rans_body *body,
                                  const struct wharf_rans_model *model, const uint8_t *indexes,
                                  uint8_t *out, uint64_t *ret_bit)
{
    struct walk walk = {.body = body, .model = model, .indexes = indexes, .out = out};
    enum wharf_reason reason;

    walk.next_word = (int64_t)body->n_words - 1;
    walk.cursor = wharf_rans_first_split(body);
    walk.has_split = wharf_rans_next_split(body, &walk.cursor, &walk.split);
    *ret_bit = 0;
    if (!read_final_states(&walk))
        return WHARF_REASON_RANS_STATE;
    for (uint32_t group = 0; group < body->n_groups; group++) {
        *ret_bit = wharf_rans_word_end(body, walk.next_word);
        reason = walk_group(&walk, group);
        if (reason != WHARF_REASON_NONE)
            return reason;
    }
    *ret_bit = wharf_rans_word_end(body, walk.next_word);
    return check_end(&walk);
}
