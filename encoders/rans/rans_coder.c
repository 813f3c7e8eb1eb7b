/* SPDX-License-Identifier: Apache-2.0 */
#include "encoders/rans/rans_coder.h"

#include <stdbool.h>

#include "encoders/little_endian.h"

void wharf_rans_make_codes(const struct wharf_rans_shape *shape, const uint32_t *frequencies,
                           struct wharf_rans_code *codes)
{
    uint32_t n_slots = 1u << shape->n_bits;

    for (uint32_t d = 0; d < shape->n_distributions; d++) {
        uint32_t first = 0;

        for (uint32_t s = 0; s < shape->alphabet; s++) {
            size_t i = (size_t)d * shape->alphabet + s;
            uint32_t f = frequencies[i];

            /* For f = 1 the reciprocal is one too small for its 64 bits, and so is the quotient,
             * for which the bias makes up.  The quotient is exact otherwise: it is too large by
             * less than state / 2^64 < 1 / f. */
            codes[i] = (struct wharf_rans_code){
                .reciprocal = f > 1 ? UINT64_MAX / f + 1 : UINT64_MAX,
                .limit = (uint64_t)f << (32 - shape->n_bits),
                .bias = f > 1 ? first : first + n_slots - 1,
                .complement = n_slots - f,
            };
            first += f;
        }
    }
}

/* The coders on their way to the first group. */
struct coder {
    const struct wharf_rans_source *source;
    uint32_t states[WHARF_RANS_N_LANES];
    /* Of each coder the word that it wrote last: what a decoder that begins now has to know. */
    uint32_t start[WHARF_RANS_N_LANES];
    uint16_t start_state[WHARF_RANS_N_LANES];
    uint32_t n_silent; /* coders that wrote no word yet */
    uint16_t *words;
    uint64_t n_words;
};

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

static inline void code_symbol(struct coder *coder, uint32_t group, uint32_t lane)
{
    const struct wharf_rans_source *source = coder->source;
    uint64_t number = (uint64_t)group * WHARF_RANS_N_LANES + lane;
    uint32_t symbol = source->shape.symbol_nbytes == 1
                          ? source->symbols[number]
                          : wharf_load_le16(source->symbols + 2 * number);
    size_t base = source->indexes ? (size_t)source->indexes[number] * source->shape.alphabet : 0;
    const struct wharf_rans_code *code = &source->codes[base + symbol];
    uint32_t state = coder->states[lane];

    if (state >= code->limit) {
        coder->words[coder->n_words++] = (uint16_t)state;
        state >>= WHARF_RANS_WORD_NBITS;
        coder->n_silent -= coder->start[lane] == UINT32_MAX;
        coder->start[lane] = group;
        coder->start_state[lane] = (uint16_t)state;
    }
    coder->states[lane] =
        state + code->bias +
        (uint32_t)((unsigned __int128)state * code->reciprocal >> 64) * code->complement;
}

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

static uint32_t last_start(const struct coder *coder)
{
    uint32_t last = 0;

    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++)
        last = coder->start[lane] > last ? coder->start[lane] : last;
    return last;
}

/* The smallest start: not always the group that was coded last, in which perhaps nobody wrote. */
static uint32_t first_start(const struct coder *coder)
{
    uint32_t first = UINT32_MAX;

    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++)
        first = coder->start[lane] < first ? coder->start[lane] : first;
    return first;
}

static void set_mark(const struct coder *coder, uint32_t first, struct wharf_rans_mark *mark)
{
    mark->first_word = (int64_t)coder->n_words - 1;
    mark->first_group = first;
    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++) {
        mark->start_offset[lane] = (uint16_t)(coder->start[lane] - first);
        mark->state[lane] = coder->start_state[lane];
    }
}

/* Looks at the place after the group that was coded last. */
static void consider(const struct coder *coder, struct search *search, uint64_t place)
{
    uint32_t first = first_start(coder);
    uint32_t last = last_start(coder);
    uint64_t missed = distance((uint64_t)first * WHARF_RANS_N_LANES, place) +
                      distance(((uint64_t)last + 1) * WHARF_RANS_N_LANES, place);

    if (last >= search->end_group || last - first > UINT16_MAX || missed >= search->best_missed)
        return;
    search->best_missed = missed;
    set_mark(coder, first, &search->marks[search->n_free - 1]);
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

/* After each group. */
static void search_splits(const struct coder *coder, struct search *search, uint32_t group)
{
    uint64_t at = (uint64_t)group * WHARF_RANS_N_LANES;

    for (; search->number > 0; next_search(search)) {
        uint64_t place = place_of(coder->source, search->number);

        if (at > place + SEARCH_NGROUPS * WHARF_RANS_N_LANES || coder->n_silent > 0)
            return;
        consider(coder, search, place);
        /* From here on each place misses by more than the best. */
        if (at > place || place - at < search->best_missed)
            return;
    }
}

static void finish_plan(const struct coder *coder, struct search *search,
                        struct wharf_rans_plan *ret_plan)
{
    while (search->number > 0)
        next_search(search);
    ret_plan->n_symbols = coder->source->n_symbols;
    ret_plan->n_words = coder->n_words;
    ret_plan->marks = search->marks + search->n_free;
    ret_plan->n_splits = coder->source->max_splits - search->n_free;
    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++)
        ret_plan->final_state[lane] = coder->states[lane];
}

void wharf_rans_code_symbols(const struct wharf_rans_source *source, uint16_t *words,
                             struct wharf_rans_mark *marks, struct wharf_rans_plan *ret_plan)
{
    struct coder coder = {.source = source, .words = words, .n_silent = WHARF_RANS_N_LANES};
    struct search search = {
        .number = source->max_splits - 1,
        .end_group = UINT32_MAX,
        .best_missed = UINT64_MAX,
        .marks = marks,
        .n_free = source->max_splits - 1,
    };
    uint32_t n_groups =
        (uint32_t)(((uint64_t)source->n_symbols + WHARF_RANS_N_LANES - 1) / WHARF_RANS_N_LANES);

    for (uint32_t lane = 0; lane < WHARF_RANS_N_LANES; lane++) {
        coder.states[lane] = WHARF_RANS_LOW;
        coder.start[lane] = UINT32_MAX;
    }
    for (uint32_t group = n_groups; group-- > 0;) {
        uint64_t left = source->n_symbols - (uint64_t)group * WHARF_RANS_N_LANES;

        for (uint32_t lane = left < WHARF_RANS_N_LANES ? (uint32_t)left : WHARF_RANS_N_LANES;
             lane-- > 0;)
            code_symbol(&coder, group, lane);
        search_splits(&coder, &search, group);
    }
    finish_plan(&coder, &search, ret_plan);
}
