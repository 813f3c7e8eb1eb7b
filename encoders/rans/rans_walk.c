/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_walk.c: the exact decoder of a body: every coder, group by group, by rules 6 to 8 of
 * rans_format.h.
 *
 * A group is decoded in two passes: the symbols of all coders, then the words that they need,
 * coder 0 first.  In a split's window each coder is compared with what the split says of it; so a
 * split is verified by whoever passes it, used or not.
 *
 * To begin at a split, a coder is given its state in the group of its start and takes its word
 * there; until the window's end what it decodes is delivered by whoever decodes what is before.
 */
#include "encoders/rans/rans_walk.h"

/* Decodes symbol `number` from its coder's state, without taking a word; false when the slot is
 * nobody's. */
static bool decode_symbol(const struct wharf_rans_task *task, uint64_t number, uint32_t *state,
                          uint32_t *ret_symbol)
{
    const struct wharf_rans_model *model = task->model;
    uint32_t distribution = task->indexes ? task->indexes[number] : 0;
    uint32_t slot = *state & ((1u << model->shape.n_bits) - 1);
    uint32_t symbol;
    struct wharf_rans_range range;

    if (slot >= model->totals[distribution])
        return false;
    symbol = model->slot_symbols[((size_t)distribution << model->shape.n_bits) + slot];
    range = model->ranges[(size_t)distribution * model->shape.alphabet + symbol];
    *state = (range.frequency_less_1 + 1u) * (*state >> model->shape.n_bits) + slot - range.first;
    *ret_symbol = symbol;
    return true;
}

static void put_symbol(const struct wharf_rans_task *task, uint64_t number, uint32_t symbol)
{
    if (task->model->shape.symbol_nbytes == 1) {
        task->out[number] = (uint8_t)symbol;
    } else {
        task->out[2 * number] = (uint8_t)symbol;
        task->out[2 * number + 1] = (uint8_t)(symbol >> 8);
    }
}

/* Gives a coder the next word; false, and a word of zero, when there is none. */
static bool take_word(struct wharf_rans_walk *walk, uint32_t lane)
{
    uint32_t word = 0;

    if (walk->next_word >= 0)
        word = wharf_rans_word(walk->task->body, walk->next_word);
    walk->states[lane] = walk->states[lane] << WHARF_RANS_WORD_NBITS | word;
    walk->next_word--;
    return walk->next_word >= -1;
}

/* ---- beginning -------------------------------------------------------------------------- */

void wharf_rans_walk_next_window(struct wharf_rans_walk *walk)
{
    walk->has_split = wharf_rans_next_split(walk->task->body, &walk->cursor, &walk->split);
    walk->cut_seen = false;
}

/* At the first group; RANS_STATE by rule 6. */
static enum wharf_reason init_walk(struct wharf_rans_walk *walk, const struct wharf_rans_task *task)
{
    walk->task = task;
    walk->next_word = (int64_t)task->body->n_words - 1;
    walk->group = 0;
    walk->cursor = wharf_rans_first_split(task->body);
    wharf_rans_walk_next_window(walk);
    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++) {
        walk->states[lane] = wharf_rans_final_state(task->body, lane);
        if (walk->states[lane] < WHARF_RANS_LOW)
            return WHARF_REASON_RANS_STATE;
    }
    return WHARF_REASON_NONE;
}

/* What coder `lane` does in a group of the window that its walk begins with. */
static bool join(struct wharf_rans_walk *walk, uint32_t lane)
{
    uint64_t number = (uint64_t)walk->group * WHARF_RANS_N_LANES + lane;
    uint32_t symbol;

    if (walk->group < walk->split.start[lane])
        return true;
    if (walk->group == walk->split.start[lane])
        walk->states[lane] = walk->split.state[lane];
    else if (number >= walk->task->body->n_symbols ||
             !decode_symbol(walk->task, number, &walk->states[lane], &symbol))
        return false;
    return walk->states[lane] >= WHARF_RANS_LOW || take_word(walk, lane);
}

bool wharf_rans_walk_init_at(struct wharf_rans_walk *walk, const struct wharf_rans_task *task,
                             struct wharf_rans_cursor cursor)
{
    walk->task = task;
    walk->cursor = cursor;
    wharf_rans_walk_next_window(walk);
    walk->next_word = walk->split.first_word;
    for (walk->group = walk->split.first_group; walk->group <= walk->split.last_group;
         walk->group++)
        for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++)
            if (!join(walk, lane))
                return false;
    wharf_rans_walk_next_window(walk);
    return true;
}

/* ---- going on --------------------------------------------------------------------------- */

/* Whether `lane`, after its symbol of this group, does what the split of the window says. */
static bool agrees_with_split(struct wharf_rans_walk *walk, uint32_t lane, bool takes_word)
{
    const struct wharf_rans_split *split = &walk->split;

    if (walk->group < split->start[lane])
        return !takes_word || !walk->cut_seen;
    if (walk->group > split->start[lane])
        return true;
    if (!walk->cut_seen && walk->next_word != split->first_word)
        return false;
    walk->cut_seen = true;
    return takes_word && walk->states[lane] == split->state[lane];
}

/* Takes the words that the group's n coders need. */
static enum wharf_reason take_words(struct wharf_rans_walk *walk, uint32_t n)
{
    bool in_window = walk->has_split && walk->group >= walk->split.first_group;
    bool all_there = true;

    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++) {
        bool takes_word = lane < n && walk->states[lane] < WHARF_RANS_LOW;

        if (in_window && !agrees_with_split(walk, lane, takes_word))
            return WHARF_REASON_RANS_SPLIT;
        if (takes_word)
            all_there &= take_word(walk, lane);
    }
    return all_there ? WHARF_REASON_NONE : WHARF_REASON_INPUT_TRUNCATED;
}

enum wharf_reason wharf_rans_walk_group(struct wharf_rans_walk *walk)
{
    uint64_t first = (uint64_t)walk->group * WHARF_RANS_N_LANES;
    uint64_t left = walk->task->body->n_symbols - first;
    uint32_t n = left < WHARF_RANS_N_LANES ? (uint32_t)left : WHARF_RANS_N_LANES;
    enum wharf_reason reason;
    uint32_t symbol;

    for (uint32_t lane = 0; lane < n; lane++) {
        if (!decode_symbol(walk->task, first + lane, &walk->states[lane], &symbol))
            return WHARF_REASON_RANS_SYMBOL;
        put_symbol(walk->task, first + lane, symbol);
    }
    reason = take_words(walk, n);
    if (reason == WHARF_REASON_NONE && walk->has_split && walk->group == walk->split.last_group)
        wharf_rans_walk_next_window(walk);
    walk->group++;
    return reason;
}

enum wharf_reason wharf_rans_walk_end(const struct wharf_rans_walk *walk)
{
    if (walk->next_word >= 0)
        return WHARF_REASON_RANS_WORDS_LEFT;
    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++)
        if (walk->states[lane] != WHARF_RANS_LOW)
            return WHARF_REASON_RANS_STATE;
    return WHARF_REASON_NONE;
}

/* ---- parts ------------------------------------------------------------------------------ */

bool wharf_rans_walk_begin(struct wharf_rans_walk *walk, const struct wharf_rans_task *task)
{
    if (task->from)
        return wharf_rans_walk_init_at(walk, task, *task->from);
    return init_walk(walk, task) == WHARF_REASON_NONE;
}

uint32_t wharf_rans_task_end(const struct wharf_rans_task *task)
{
    struct wharf_rans_cursor cursor;
    struct wharf_rans_split split;

    if (!task->to)
        return task->body->n_groups;
    cursor = *task->to;
    wharf_rans_next_split(task->body, &cursor, &split);
    return split.last_group + 1;
}

bool wharf_rans_walk_part(const struct wharf_rans_task *task)
{
    struct wharf_rans_walk walk;
    uint32_t end = wharf_rans_task_end(task);

    if (!wharf_rans_walk_begin(&walk, task))
        return false;
    while (walk.group < end)
        if (wharf_rans_walk_group(&walk) != WHARF_REASON_NONE ||
            !wharf_rans_goes_on(task->asker, WHARF_RANS_EXACT_NGROUPS))
            return false;
    return task->to || wharf_rans_walk_end(&walk) == WHARF_REASON_NONE;
}

/* ---- all of it -------------------------------------------------------------------------- */

enum wharf_reason wharf_rans_walk_all(const struct wharf_rans_task *task, uint64_t *ret_bit)
{
    struct wharf_rans_walk walk;
    enum wharf_reason reason = init_walk(&walk, task);

    *ret_bit = 0;
    while (reason == WHARF_REASON_NONE && walk.group < task->body->n_groups) {
        *ret_bit = wharf_rans_word_end(task->body, walk.next_word);
        reason = wharf_rans_walk_group(&walk);
        if (reason == WHARF_REASON_NONE &&
            !wharf_rans_goes_on(task->asker, WHARF_RANS_EXACT_NGROUPS))
            return reason;
    }
    if (reason != WHARF_REASON_NONE)
        return reason;
    *ret_bit = wharf_rans_word_end(task->body, walk.next_word);
    return wharf_rans_walk_end(&walk);
}
