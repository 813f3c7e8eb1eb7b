/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_loop_body.h: what is the same in all forms of the tuned decoder.  A form's file defines, on
 * its own `struct lanes` (the 32 states in registers), all inlined,
 *
 *   lanes_load, lanes_store    from and to uint32_t[32]
 *   lanes_decode               one group without taking words: the mask of the coders that need one
 *   lanes_take                 the coders of a mask take words downwards from a place on
 *   lanes_match                the mask of the states that are those of a split
 *   start_masks                the masks of the coders whose start is this group, or a later one
 *
 * and LOOP_NAME, and then includes this file.  A place is the address behind the next word, since
 * words are read downwards.
 */
#include <string.h>

/* lanes_take may read this many words below its place for each half or quarter of the lanes. */
#define GROUP_NWORDS WHARF_RANS_N_LANES

/* Groups in one go: in between, two decoders together ask at least as often as they have to. */
#define RUN_NGROUPS (WHARF_RANS_POLL_NGROUPS / 2)

static const uint8_t *place_of(const struct wharf_rans_walk *walk)
{
    return walk->task->body->words + WHARF_RANS_WORD_NBYTES * (walk->next_word + 1);
}

static int64_t word_before(const struct wharf_rans_walk *walk, const uint8_t *place)
{
    return (place - walk->task->body->words) / WHARF_RANS_WORD_NBYTES - 1;
}

/* Groups up to end_group that need no look at splits, the words' beginning or the last symbol. */
static uint32_t free_groups(const struct wharf_rans_walk *walk, uint32_t end_group)
{
    uint64_t n_words = (uint64_t)(walk->next_word + 1) / GROUP_NWORDS;
    uint32_t n_whole = walk->task->body->n_symbols / WHARF_RANS_N_LANES;
    uint32_t n;

    if (walk->has_split && walk->split.first_group < end_group)
        end_group = walk->split.first_group;
    if (n_whole < end_group)
        end_group = n_whole;
    n = end_group > walk->group ? end_group - walk->group : 0;
    if (n > RUN_NGROUPS)
        n = RUN_NGROUPS;
    /* The last group may read a whole group's words, and none takes more. */
    return n < n_words ? n : (uint32_t)n_words;
}

/* ---- free running ----------------------------------------------------------------------- */

/* Both return whether all slots were somebody's and the asker lets them go on. */
LANES_INLINE bool run_one(const struct wharf_rans_loop_job *job, struct lookup lookup,
                          struct wharf_rans_walk *walk, uint32_t n_groups)
{
    struct lanes lanes = lanes_load(walk->states);
    const uint8_t *place = place_of(walk);
    uint32_t bad = 0;

    for (uint32_t i = 0; i < n_groups; i++)
        place = lanes_take(&lanes, lanes_decode(job, lookup, &lanes, walk->group + i, &bad), place);
    lanes_store(&lanes, walk->states);
    walk->next_word = word_before(walk, place);
    walk->group += n_groups;
    return !bad && wharf_rans_goes_on(job->task.asker, n_groups);
}

LANES_INLINE bool run_two(const struct wharf_rans_loop_job *job, struct lookup lookup,
                          struct wharf_rans_walk *a, struct wharf_rans_walk *b, uint32_t n_groups)
{
    struct lanes a_lanes = lanes_load(a->states);
    struct lanes b_lanes = lanes_load(b->states);
    const uint8_t *a_place = place_of(a);
    const uint8_t *b_place = place_of(b);
    uint32_t bad = 0;

    for (uint32_t i = 0; i < n_groups; i++) {
        uint32_t a_takes = lanes_decode(job, lookup, &a_lanes, a->group + i, &bad);
        uint32_t b_takes = lanes_decode(job, lookup, &b_lanes, b->group + i, &bad);

        a_place = lanes_take(&a_lanes, a_takes, a_place);
        b_place = lanes_take(&b_lanes, b_takes, b_place);
    }
    lanes_store(&a_lanes, a->states);
    lanes_store(&b_lanes, b->states);
    a->next_word = word_before(a, a_place);
    b->next_word = word_before(b, b_place);
    a->group += n_groups;
    b->group += n_groups;
    return !bad && wharf_rans_goes_on(job->task.asker, 2 * n_groups);
}

/* ---- windows, and the last groups ------------------------------------------------------- */

/* Whether the coders that take words in this group are those of the split, with its states. */
LANES_INLINE bool fits_split(const struct wharf_rans_walk *walk, const struct lanes *lanes,
                             uint32_t takes)
{
    const struct wharf_rans_split *split = &walk->split;
    uint32_t later;
    uint32_t now = start_masks(split->start, walk->group, &later);
    uint32_t before_cut = 0;

    if (walk->group == split->first_group) {
        before_cut = (now & -now) - 1;
        if (walk->next_word - __builtin_popcount(takes & before_cut) != split->first_word)
            return false;
    }
    return (now & ~(takes & lanes_match(lanes, split->state))) == 0 &&
           (takes & later & ~before_cut) == 0;
}

/* Lets coders take words where they may be less than a group's: from a copy with room below it. */
LANES_INLINE void take_carefully(struct wharf_rans_walk *walk, struct lanes *lanes, uint32_t takes)
{
    uint8_t copy[GROUP_NWORDS * WHARF_RANS_WORD_NBYTES] = {0};
    int64_t n = walk->next_word + 1 < GROUP_NWORDS ? walk->next_word + 1 : GROUP_NWORDS;
    size_t n_bytes = (size_t)n * WHARF_RANS_WORD_NBYTES;

    memcpy(copy + sizeof(copy) - n_bytes, place_of(walk) - n_bytes, n_bytes);
    lanes_take(lanes, takes, copy + sizeof(copy));
    walk->next_word -= __builtin_popcount(takes);
}

/* A group of 32 symbols near the words' beginning, or in a window. */
LANES_INLINE bool run_careful_group(const struct wharf_rans_loop_job *job, struct lookup lookup,
                                    struct wharf_rans_walk *walk)
{
    bool in_window = walk->has_split && walk->group >= walk->split.first_group;
    struct lanes lanes = lanes_load(walk->states);
    uint32_t bad = 0;
    uint32_t takes = lanes_decode(job, lookup, &lanes, walk->group, &bad);

    if (bad || walk->next_word + 1 < __builtin_popcount(takes))
        return false;
    if (in_window && !fits_split(walk, &lanes, takes))
        return false;
    take_carefully(walk, &lanes, takes);
    lanes_store(&lanes, walk->states);
    if (in_window && walk->group == walk->split.last_group)
        wharf_rans_walk_next_window(walk);
    walk->group++;
    return true;
}

/* A group where something is rare. */
LANES_INLINE bool run_rare_group(const struct wharf_rans_loop_job *job, struct lookup lookup,
                                 struct wharf_rans_walk *walk)
{
    if (!wharf_rans_goes_on(job->task.asker, 1))
        return false;
    if (walk->group < walk->task->body->n_symbols / WHARF_RANS_N_LANES)
        return run_careful_group(job, lookup, walk);
    return wharf_rans_walk_group(walk) == WHARF_REASON_NONE;
}

/* Goes on to where both, or those that are left, can run freely, or are at their ends. */
LANES_INLINE bool run_to_end(const struct wharf_rans_loop_job *job, struct lookup lookup,
                             struct wharf_rans_walk *walk, uint32_t end_group)
{
    while (walk->group < end_group) {
        uint32_t n = free_groups(walk, end_group);

        if (n > 0 ? !run_one(job, lookup, walk, n) : !run_rare_group(job, lookup, walk))
            return false;
    }
    return true;
}

/* Two decoders, of which the first one ends where the second one began. */
LANES_INLINE bool run_pair(const struct wharf_rans_loop_job *job, struct lookup lookup,
                           struct wharf_rans_walk *a, uint32_t a_end, struct wharf_rans_walk *b,
                           uint32_t b_end)
{
    while (a->group < a_end && b->group < b_end) {
        uint32_t a_free = free_groups(a, a_end);
        uint32_t b_free = free_groups(b, b_end);

        if (a_free > 0 && b_free > 0) {
            if (!run_two(job, lookup, a, b, a_free < b_free ? a_free : b_free))
                return false;
        } else if (!run_rare_group(job, lookup, a_free == 0 ? a : b)) {
            return false;
        }
    }
    return run_to_end(job, lookup, a, a_end) && run_to_end(job, lookup, b, b_end);
}

/* ---- the whole body --------------------------------------------------------------------- */

/* The cursor before the split that begins next to the middle; false if there is no split. */
static bool find_middle(const struct wharf_rans_body *body, struct wharf_rans_cursor *ret_cursor)
{
    struct wharf_rans_cursor cursor = wharf_rans_first_split(body);
    struct wharf_rans_split split;

    do
        *ret_cursor = cursor;
    while (wharf_rans_next_split(body, &cursor, &split) && split.last_group < body->n_groups / 2);
    return ret_cursor->number < body->n_splits;
}

LANES_INLINE bool run_all(const struct wharf_rans_loop_job *job, struct lookup lookup)
{
    const struct wharf_rans_body *body = job->task.body;
    struct wharf_rans_cursor middle;
    struct wharf_rans_walk a;
    struct wharf_rans_walk b;

    if (wharf_rans_walk_init(&a, &job->task) != WHARF_REASON_NONE)
        return false;
    if (!find_middle(body, &middle))
        return run_to_end(job, lookup, &a, body->n_groups) &&
               wharf_rans_walk_end(&a) == WHARF_REASON_NONE;
    return wharf_rans_walk_init_at(&b, &job->task, middle) &&
           run_pair(job, lookup, &a, b.group, &b, body->n_groups) &&
           wharf_rans_walk_end(&b) == WHARF_REASON_NONE;
}

/* The kinds of models, each with code of its own. */
TARGET bool LOOP_NAME(const struct wharf_rans_loop_job *job)
{
    bool is_indexed = job->task.indexes != NULL;

    if (job->packed)
        return run_all(job, (struct lookup){.is_packed = true, .symbol_nbytes = 1});
    if (job->task.model->shape.symbol_nbytes == 1)
        return is_indexed ? run_all(job, (struct lookup){.is_indexed = true, .symbol_nbytes = 1})
                          : run_all(job, (struct lookup){.symbol_nbytes = 1});
    return is_indexed ? run_all(job, (struct lookup){.is_indexed = true, .symbol_nbytes = 2})
                      : run_all(job, (struct lookup){.symbol_nbytes = 2});
}
