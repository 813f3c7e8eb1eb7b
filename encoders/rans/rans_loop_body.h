/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_loop_body.h: what is the same in all forms of the tuned decoder.  A form's file defines, on
 * its own `struct lanes` (the 32 states in registers, and whether a slot was nobody's) and `struct
 * takes` (which coders need a word), all inlined,
 *
 *   lanes_load, lanes_store    from and to uint32_t[32]
 *   lanes_look_up              what can be looked up for the next group; a struct found
 *   lanes_decode               that group without taking words: the coders that need one
 *   lanes_take                 those take words downwards from a place on
 *   lanes_are_bad              whether a slot was nobody's, since they were loaded
 *   lanes_match                the mask of the states that are those of a split
 *   takes_of, mask_of          from and to masks
 *   start_masks                the masks of the coders whose start is this group, or a later one
 *
 * and LOOP_NAME, and N_WALKS, how many decoders it runs side by side, and then includes this file.
 * A place is the address behind the next word, since words are read downwards.
 */
#include <string.h>

/* lanes_take may read this many words below its place for each half or quarter of the lanes. */
#define GROUP_NWORDS WHARF_RANS_N_LANES

/* Groups in one go: in between, all decoders together ask at least as often as they have to. */
#define RUN_NGROUPS (WHARF_RANS_POLL_NGROUPS / N_WALKS)

/* A decoder, and the group at which the next one began. */
struct segment {
    struct wharf_rans_walk walk;
    uint32_t end;
};

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

/* n_groups of n segments (a constant) by turns; whether all slots were somebody's and the asker
 * lets them go on. */
LANES_OF_EACH_KIND bool run_free(const struct wharf_rans_loop_job *job, struct lookup lookup,
                                 struct segment *segments, unsigned n, uint32_t n_groups)
{
    /* Of its own: else each store of symbols, which could be to any memory, would have what is in
     * the job read again. */
    const struct view view = view_of(job);
    struct lanes lanes[N_WALKS];
    const uint8_t *places[N_WALKS];
    uint32_t groups[N_WALKS];
    bool bad = false;

#pragma GCC unroll 4
    for (unsigned k = 0; k < n; k++) {
        lanes[k] = lanes_load(segments[k].walk.states);
        places[k] = place_of(&segments[k].walk);
        groups[k] = segments[k].walk.group;
    }
    for (uint32_t i = 0; i < n_groups; i++) {
        struct found found[N_WALKS];

        /* All look-ups, which take long, begin before the first is waited for. */
#pragma GCC unroll 4
        for (unsigned k = 0; k < n; k++)
            found[k] = lanes_look_up(&view, lookup, &lanes[k]);
#pragma GCC unroll 4
        for (unsigned k = 0; k < n; k++) {
            struct takes takes = lanes_decode(&view, lookup, &lanes[k], found[k], groups[k] + i);

            places[k] = lanes_take(&lanes[k], takes, places[k]);
        }
    }
#pragma GCC unroll 4
    for (unsigned k = 0; k < n; k++) {
        bad |= lanes_are_bad(&view, &lanes[k]);
        lanes_store(&lanes[k], segments[k].walk.states);
        segments[k].walk.next_word = word_before(&segments[k].walk, places[k]);
        segments[k].walk.group += n_groups;
    }
    return !bad && wharf_rans_goes_on(job->task.asker, n * n_groups);
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
LANES_INLINE void take_exactly(struct wharf_rans_walk *walk, struct lanes *lanes, uint32_t takes)
{
    uint8_t copy[GROUP_NWORDS * WHARF_RANS_WORD_NBYTES] = {0};
    int64_t n = walk->next_word + 1 < GROUP_NWORDS ? walk->next_word + 1 : GROUP_NWORDS;
    size_t n_bytes = (size_t)n * WHARF_RANS_WORD_NBYTES;

    memcpy(copy + sizeof(copy) - n_bytes, place_of(walk) - n_bytes, n_bytes);
    lanes_take(lanes, takes_of(takes), copy + sizeof(copy));
    walk->next_word -= __builtin_popcount(takes);
}

/* A group of 32 symbols near the words' beginning, or in a window. */
LANES_OF_EACH_KIND bool run_exact_group(const struct wharf_rans_loop_job *job, struct lookup lookup,
                                        struct wharf_rans_walk *walk)
{
    bool in_window = walk->has_split && walk->group >= walk->split.first_group;
    const struct view view = view_of(job);
    struct lanes lanes = lanes_load(walk->states);
    struct found found = lanes_look_up(&view, lookup, &lanes);
    uint32_t takes = mask_of(lanes_decode(&view, lookup, &lanes, found, walk->group));

    if (lanes_are_bad(&view, &lanes) || walk->next_word + 1 < __builtin_popcount(takes))
        return false;
    if (in_window && !fits_split(walk, &lanes, takes))
        return false;
    take_exactly(walk, &lanes, takes);
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
    if (!wharf_rans_goes_on(job->task.asker, WHARF_RANS_EXACT_NGROUPS))
        return false;
    if (walk->group < walk->task->body->n_symbols / WHARF_RANS_N_LANES)
        return run_exact_group(job, lookup, walk);
    return wharf_rans_walk_group(walk) == WHARF_REASON_NONE;
}

/* One segment to its end. */
LANES_INLINE bool run_to_end(const struct wharf_rans_loop_job *job, struct lookup lookup,
                             struct segment *segment)
{
    while (segment->walk.group < segment->end) {
        uint32_t n = free_groups(&segment->walk, segment->end);

        if (n > 0 ? !run_free(job, lookup, segment, 1, n)
                  : !run_rare_group(job, lookup, &segment->walk))
            return false;
    }
    return true;
}

/* All segments until one is at its end, where those that cannot go freely are let to where they
 * can. */
LANES_INLINE bool run_together(const struct wharf_rans_loop_job *job, struct lookup lookup,
                               struct segment *segments)
{
    for (;;) {
        uint32_t n_free = UINT32_MAX;

        for (unsigned k = 0; k < N_WALKS; k++) {
            struct segment *segment = &segments[k];
            uint32_t n = 0;

            while (segment->walk.group < segment->end &&
                   (n = free_groups(&segment->walk, segment->end)) == 0)
                if (!run_rare_group(job, lookup, &segment->walk))
                    return false;
            if (segment->walk.group >= segment->end)
                return true;
            n_free = n < n_free ? n : n_free;
        }
        if (!run_free(job, lookup, segments, N_WALKS, n_free))
            return false;
    }
}

/* ---- beginning at splits ---------------------------------------------------------------- */

/* A group of the window that a segment begins with: what coders deliver that have not begun yet is
 * overwritten by the segment before, whose window it is. */
LANES_OF_EACH_KIND bool join_group(const struct wharf_rans_loop_job *job, struct lookup lookup,
                                   struct wharf_rans_walk *walk)
{
    const struct wharf_rans_split *split = &walk->split;
    const struct view view = view_of(job);
    struct lanes lanes = lanes_load(walk->states);
    struct found found = lanes_look_up(&view, lookup, &lanes);
    uint32_t takes = mask_of(lanes_decode(&view, lookup, &lanes, found, walk->group));
    bool bad = lanes_are_bad(&view, &lanes);
    uint32_t later;
    uint32_t now = start_masks(split->start, walk->group, &later);

    lanes_store(&lanes, walk->states);
    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++) {
        uint32_t start = split->start[lane];
        uint32_t state = start < walk->group ? walk->states[lane] : WHARF_RANS_LOW;

        walk->states[lane] = start == walk->group ? split->state[lane] : state;
    }
    lanes = lanes_load(walk->states);
    takes = (takes & ~later) | now;
    if (bad || walk->next_word + 1 < __builtin_popcount(takes))
        return false;
    take_exactly(walk, &lanes, takes);
    lanes_store(&lanes, walk->states);
    walk->group++;
    return true;
}

/* Behind the window of the split that `cursor` stands before. */
LANES_INLINE bool join(const struct wharf_rans_loop_job *job, struct lookup lookup,
                       struct wharf_rans_walk *walk, struct wharf_rans_cursor cursor)
{
    *walk = (struct wharf_rans_walk){.task = &job->task, .cursor = cursor};
    wharf_rans_walk_next_window(walk);
    walk->next_word = walk->split.first_word;
    walk->group = walk->split.first_group;
    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++)
        walk->states[lane] = WHARF_RANS_LOW;
    if (walk->split.last_group >= job->task.body->n_symbols / WHARF_RANS_N_LANES)
        return wharf_rans_walk_init_at(walk, &job->task, cursor);
    while (walk->group <= walk->split.last_group)
        if (!wharf_rans_goes_on(job->task.asker, WHARF_RANS_EXACT_NGROUPS) ||
            !join_group(job, lookup, walk))
            return false;
    wharf_rans_walk_next_window(walk);
    return true;
}

/* The number of the split that a task begins with, 0 for the beginning, and that it ends before. */
static uint32_t first_split_of(const struct wharf_rans_task *task)
{
    return task->from ? task->from->number : 0;
}

static uint32_t n_splits_of(const struct wharf_rans_task *task)
{
    return (task->to ? task->to->number : task->body->n_splits) - first_split_of(task);
}

/* The cursors before the splits that begin segments 1 to N_WALKS - 1, evenly among the task's. */
static void find_beginnings(const struct wharf_rans_task *task,
                            struct wharf_rans_cursor cursors[N_WALKS])
{
    uint32_t first = first_split_of(task);
    struct wharf_rans_cursor cursor = task->from ? *task->from : wharf_rans_first_split(task->body);

    for (uint32_t k = 1; k < N_WALKS; k++) {
        while (cursor.number < first + (uint64_t)k * n_splits_of(task) / N_WALKS)
            wharf_rans_skip_split(task->body, &cursor);
        cursors[k] = cursor;
    }
}

/* ---- the whole body, or a part ---------------------------------------------------------- */

LANES_OF_EACH_KIND bool run_all(const struct wharf_rans_loop_job *job, struct lookup lookup)
{
    unsigned n = n_splits_of(&job->task) >= N_WALKS ? N_WALKS : 1;
    struct wharf_rans_cursor cursors[N_WALKS];
    struct segment segments[N_WALKS];

    if (!wharf_rans_walk_begin(&segments[0].walk, &job->task))
        return false;
    if (n > 1)
        find_beginnings(&job->task, cursors);
    for (unsigned k = 1; k < n; k++) {
        if (!join(job, lookup, &segments[k].walk, cursors[k]))
            return false;
        segments[k - 1].end = segments[k].walk.group;
    }
    segments[n - 1].end = wharf_rans_task_end(&job->task);
    if (n > 1 && !run_together(job, lookup, segments))
        return false;
    for (unsigned k = 0; k < n; k++)
        if (!run_to_end(job, lookup, &segments[k]))
            return false;
    return job->task.to || wharf_rans_walk_end(&segments[n - 1].walk) == WHARF_REASON_NONE;
}

/* The kinds of models, each with code of its own. */
TARGET bool LOOP_NAME(const struct wharf_rans_loop_job *job)
{
    bool is_indexed = job->task.indexes != NULL;

    if (job->packed)
        return run_all(job, (struct lookup){.is_packed = true, .symbol_nbytes = 1});
    if (job->buckets)
        return run_all(job, (struct lookup){.is_bucketed = true, .symbol_nbytes = 1});
    if (job->task.model->shape.symbol_nbytes == 1)
        return is_indexed ? run_all(job, (struct lookup){.is_indexed = true, .symbol_nbytes = 1})
                          : run_all(job, (struct lookup){.symbol_nbytes = 1});
    return is_indexed ? run_all(job, (struct lookup){.is_indexed = true, .symbol_nbytes = 2})
                      : run_all(job, (struct lookup){.symbol_nbytes = 2});
}
