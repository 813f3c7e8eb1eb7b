/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rans_coder.c: the plain coder, and where splits are put (the paper on Recoil that
 * rans_format.h names).
 *
 * Symbols are coded from the last to the first, since the decoder goes the other way.  A coder
 * writes a word where its state would not fit 32 bits with the symbol; the division by a frequency
 * is a multiplication by its reciprocal, and at most one step of correction.
 *
 * SPLITS.  A decoder can begin wherever every coder's last word and its state behind it are known:
 * from the smallest `start` to the largest is the split's window.  Splits should lie at equal
 * distances.  On the way down the best window for each of them is kept, which is the one whose two
 * ends are nearest to the split's place, until no later window can be nearer.  Windows do not
 * overlap: end_group is where the next higher one begins.
 */
#include "encoders/rans/rans_coder.h"

#include <stdbool.h>

#include "encoders/little_endian.h"
#include "encoders/rans/rans_loop.h"

/* Symbols that are looked through for those with slots at once: their numbers are bytes. */
#define LOOK_NSYMBOLS 256

/* The codes of at most LOOK_NSYMBOLS symbols; returns where the next one's slots begin.  Those of
 * no slots are left as they are: nothing is coded with them.  Of 16-bit symbols they are most, here
 * and there, so they are sorted out without a branch. */
static uint32_t make_some_codes(const uint32_t *frequencies, uint32_t n_symbols, uint32_t first,
                                struct wharf_rans_code *codes)
{
    uint8_t found[LOOK_NSYMBOLS];
    uint32_t n_found = 0;

    for (uint32_t s = 0; s < n_symbols; s++) {
        found[n_found] = (uint8_t)s;
        n_found += frequencies[s] > 0;
    }
    for (uint32_t i = 0; i < n_found; i++) {
        uint32_t f = frequencies[found[i]];

        codes[found[i]] = wharf_rans_code_of(f, wharf_rans_reciprocal(f), first);
        first += f;
    }
    return first;
}

void wharf_rans_make_codes(const struct wharf_rans_shape *shape, const uint32_t *frequencies,
                           struct wharf_rans_code *codes)
{
    for (uint32_t d = 0; d < shape->n_distributions; d++) {
        uint32_t first = 0;
        uint32_t n;

        for (uint32_t left = shape->alphabet; left > 0; left -= n) {
            n = left < LOOK_NSYMBOLS ? left : LOOK_NSYMBOLS;
            first = make_some_codes(frequencies, n, first, codes);
            frequencies += n;
            codes += n;
        }
    }
}

/* Where the next split should begin, and the best place for it so far. */
struct search {
    uint32_t number;      /* of the split; 0 when all are found */
    uint32_t end_group;   /* its window must end before this group */
    uint64_t best_missed; /* UINT64_MAX: no place yet */
    struct wharf_rans_mark *marks;
    uint32_t n_free; /* marks without a place yet, of which the last one takes the best so far */
};

/* Groups above a split's place from where on places are looked at: most windows are far shorter. */
#define SEARCH_NGROUPS 16

static inline uint32_t code_number(const struct wharf_rans_source *source, uint64_t number)
{
    uint32_t symbol = source->shape.symbol_nbytes == 1
                          ? source->symbols[number]
                          : wharf_load_le16(source->symbols + 2 * number);

    return source->indexes ? source->indexes[number] * source->shape.alphabet + symbol : symbol;
}

static inline void code_symbol(struct wharf_rans_coder *coder, uint32_t group, uint32_t lane)
{
    const struct wharf_rans_source *source = coder->source;
    uint64_t number = (uint64_t)group * WHARF_RANS_N_LANES + lane;
    struct wharf_rans_code code = source->codes[code_number(source, number)];
    uint32_t f = code.frequency_less_1 + 1u;
    uint32_t state = coder->states[lane];

    if (state >= (uint64_t)f << (32 - source->shape.n_bits)) {
        *coder->next_word++ = (uint16_t)state;
        state >>= WHARF_RANS_WORD_NBITS;
        coder->start[lane] = group;
        coder->start_state[lane] = state;
    }
    uint32_t quotient = (uint32_t)((uint64_t)state * code.reciprocal >> 32);
    uint32_t remainder = state - quotient * f;
    bool is_more = remainder >= f;

    coder->states[lane] =
        ((quotient + is_more) << source->shape.n_bits) + code.first + remainder - (is_more ? f : 0);
}

static void code_group(struct wharf_rans_coder *coder, uint32_t group, uint32_t n_lanes)
{
    for (uint32_t lane = n_lanes; lane-- > 0;)
        code_symbol(coder, group, lane);
}

static void code_groups(struct wharf_rans_coder *coder, uint32_t begin, uint32_t end)
{
    while (end > begin)
        code_group(coder, --end, WHARF_RANS_N_LANES);
}

/* ---- splits ----------------------------------------------------------------------------- */

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* The symbol at which split `number` should begin. */
static uint64_t place_of(const struct wharf_rans_source *source, uint32_t number)
{
    uint64_t share = (source->n_symbols + (uint64_t)source->max_splits - 1) / source->max_splits;

    return share * number;
}

static uint32_t last_start(const struct wharf_rans_coder *coder)
{
    uint32_t last = 0;

    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++)
        last = coder->start[lane] > last ? coder->start[lane] : last;
    return last;
}

/* The smallest start: not always the group that was coded last, in which perhaps nobody wrote. */
static uint32_t first_start(const struct wharf_rans_coder *coder)
{
    uint32_t first = UINT32_MAX;

    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++)
        first = coder->start[lane] < first ? coder->start[lane] : first;
    return first;
}

static void set_mark(const struct wharf_rans_coder *coder, uint32_t first,
                     struct wharf_rans_mark *mark)
{
    mark->first_word = coder->next_word - coder->words - 1;
    mark->first_group = first;
    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++) {
        mark->start_offset[lane] = (uint16_t)(coder->start[lane] - first);
        mark->state[lane] = (uint16_t)coder->start_state[lane];
    }
}

/* The starts of all coders, after the group that was coded last. */
struct window {
    uint32_t first;
    uint32_t last; /* UINT32_MAX: a coder wrote no word yet */
};

/* Looks at the place of a window. */
static void consider(const struct wharf_rans_coder *coder, struct search *search, uint64_t place,
                     const struct window *window)
{
    uint64_t missed = distance((uint64_t)window->first * WHARF_RANS_N_LANES, place) +
                      distance(((uint64_t)window->last + 1) * WHARF_RANS_N_LANES, place);

    if (window->last >= search->end_group || window->last - window->first > UINT16_MAX ||
        missed >= search->best_missed)
        return;
    search->best_missed = missed;
    set_mark(coder, window->first, &search->marks[search->n_free - 1]);
}

/* Whether no window from here on is a better place for the split: both ends of later ones lie
 * lower, or where they are.  One without a place by the time that the split before is nearer gets
 * none: else it would take that one's, and all splits before it would be late. */
static bool is_settled(const struct wharf_rans_coder *coder, const struct search *search,
                       uint64_t at, uint64_t place, const struct window *window)
{
    uint64_t end = ((uint64_t)window->last + 1) * WHARF_RANS_N_LANES;

    if (search->best_missed == UINT64_MAX)
        return search->number > 1 && end <= place_of(coder->source, search->number - 1);
    return end <= place || (at <= place && place - at >= search->best_missed);
}

/* Goes on to the split before; its place is there if one was found. */
static void next_search(struct search *search)
{
    if (search->best_missed != UINT64_MAX) {
        search->n_free--;
        search->end_group = search->marks[search->n_free].first_group;
    }
    search->best_missed = UINT64_MAX;
    search->number--;
}

/* The group after which it is to be looked for a split, of those below `group`. */
static uint32_t next_look(const struct wharf_rans_source *source, const struct search *search,
                          uint32_t group)
{
    uint64_t look = search->number == 0
                        ? 0
                        : place_of(source, search->number) / WHARF_RANS_N_LANES + SEARCH_NGROUPS;

    return look < group ? (uint32_t)look : group - 1;
}

/* After a group that next_look gave. */
static void search_splits(const struct wharf_rans_coder *coder, struct search *search,
                          uint32_t group)
{
    uint64_t at = (uint64_t)group * WHARF_RANS_N_LANES;
    const struct window window = {.first = first_start(coder), .last = last_start(coder)};

    if (window.last == UINT32_MAX)
        return;
    for (; search->number > 0; next_search(search)) {
        uint64_t place = place_of(coder->source, search->number);

        if (group > place / WHARF_RANS_N_LANES + SEARCH_NGROUPS)
            return;
        consider(coder, search, place, &window);
        if (!is_settled(coder, search, at, place, &window))
            return;
    }
}

static void finish_plan(const struct wharf_rans_coder *coder, struct search *search,
                        struct wharf_rans_plan *ret_plan)
{
    while (search->number > 0)
        next_search(search);
    ret_plan->n_symbols = coder->source->n_symbols;
    ret_plan->n_words = (uint64_t)(coder->next_word - coder->words);
    ret_plan->marks = search->marks + search->n_free;
    ret_plan->n_splits = coder->source->max_splits - search->n_free;
    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++)
        ret_plan->final_state[lane] = coder->states[lane];
}

void wharf_rans_code_symbols(const struct wharf_rans_source *source, uint16_t *words,
                             struct wharf_rans_mark *marks, struct wharf_rans_plan *ret_plan)
{
    struct wharf_rans_coder coder = {.source = source, .words = words, .next_word = words};
    wharf_rans_code_fn *code = wharf_rans_code_form();
    struct search search = {
        .number = source->max_splits - 1,
        .end_group = UINT32_MAX,
        .best_missed = UINT64_MAX,
        .marks = marks,
        .n_free = source->max_splits - 1,
    };
    uint32_t group = source->n_symbols / WHARF_RANS_N_LANES;
    uint32_t n_rest = source->n_symbols % WHARF_RANS_N_LANES;

    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++) {
        coder.states[lane] = WHARF_RANS_LOW;
        coder.start[lane] = UINT32_MAX;
    }
    if (n_rest > 0) {
        code_group(&coder, group, n_rest);
        search_splits(&coder, &search, group);
    }
    while (group > 0) {
        uint32_t begin = next_look(source, &search, group);

        (code ? code : code_groups)(&coder, begin, group);
        search_splits(&coder, &search, begin);
        group = begin;
    }
    finish_plan(&coder, &search, ret_plan);
}
