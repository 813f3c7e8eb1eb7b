/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inflate_litlen.c: fills the first litlen table, whose entries may hold several symbols.
 *
 * Idea: the table starts with a width of one bit and is doubled for each further bit.  After each
 * doubling, the entries of exactly that width are added: single code words first, then combinations
 * of symbols with that total width.  An entry overwrites the narrower one that is its prefix.  The
 * work is thus proportional to the number of distinct entries, not to the table's size.
 */
#include "encoders/deflate/inflate_litlen.h"

#include <stdatomic.h>
#include <string.h>

#include "encoders/deflate/inflate_entry.h"

/* 3 to 258, and 258 in two ways. */
enum { WIDTH = WHARF_LITLEN_TABLE_NBITS, N_LENGTHS = 257 };

struct filler {
    uint32_t *table;
    const struct wharf_code *litlen;
    const struct wharf_code *distance;

    /* The litlen words of each width: literals, then lengths, without the end of block. */
    unsigned n_literals[WIDTH + 1];
    unsigned n_lengths[WIDTH + 1];

    /* Lengths with their extra bits, by total width; `lengths` are minus 3. */
    unsigned first_length[WIDTH + 2];
    uint16_t length_words[N_LENGTHS];
    uint8_t lengths[N_LENGTHS];

    /* Matches in the table, by width.  None is a prefix of another: at most 2^WIDTH. */
    unsigned first_match[WIDTH + 2];
    uint16_t match_words[1 << WIDTH];
};

static unsigned index_of_first_length(const struct filler *filler, unsigned nbits)
{
    const struct wharf_code *code = filler->litlen;
    unsigned i = code->first[nbits] + filler->n_literals[nbits];

    return i < code->first[nbits + 1] && code->symbols[i] == WHARF_DEFLATE_END_OF_BLOCK ? i + 1 : i;
}

static void count_kinds(struct filler *filler)
{
    const struct wharf_code *code = filler->litlen;

    for (unsigned nbits = 1; nbits <= WIDTH; nbits++) {
        unsigned i = code->first[nbits + 1];
        unsigned n_lengths = 0;
        while (i > code->first[nbits] && code->symbols[i - 1] >= WHARF_DEFLATE_END_OF_BLOCK) {
            i--;
            n_lengths += code->symbols[i] > WHARF_DEFLATE_END_OF_BLOCK &&
                         code->symbols[i] < WHARF_DEFLATE_N_LITLEN;
        }
        filler->n_literals[nbits] = i - code->first[nbits];
        filler->n_lengths[nbits] = n_lengths;
    }
}

/* ---- what pays ----------------------------------------------------------------------------- */

/*
 * Measured on an EPYC of the fourth generation, in cycles: a step that takes a literal together
 * with the next symbol saves 14, mostly a branch misprediction; one that takes a length with its
 * distance saves 3.  An entry costs 8, and the decision 500.  A symbol has about 12 bits.
 */
enum {
    GAIN_OF_PAIR = 14,
    GAIN_OF_MATCH = 3,
    COST_OF_ENTRY = 8,
    COST_OF_PLAN = 500,
    NBITS_OF_SYMBOL = 12,
    /* For shorter blocks, of 400 symbols, the decision does not pay. */
    MIN_NBITS = 400 * NBITS_OF_SYMBOL,
};

/* How often a step takes such an entry, in 2^WIDTH steps if the code fits the data; and how many
 * such entries exist. */
struct weight {
    uint64_t steps;
    uint64_t entries;
};

static void add_weight(struct weight *weight, unsigned n, unsigned nbits)
{
    weight->steps += (uint64_t)n << (WIDTH - nbits);
    weight->entries += n;
}

static int pays(const struct weight *weight, unsigned gain, uint64_t n_symbols)
{
    return gain * (n_symbols * weight->steps >> WIDTH) >
           COST_OF_ENTRY * weight->entries + COST_OF_PLAN;
}

struct weights {
    struct weight lengths;         /* all that are in the table, with or without company */
    struct weight literal_lengths; /* a literal and a length */
    struct weight pairs;           /* a literal and another, or a length */
    struct weight matches;         /* a length and a distance */
    struct weight literal_matches; /* a literal, a length and a distance */
};

/* How many lengths with their extra bits there are of each width; weighs lengths on the way. */
static void weigh_lengths(const struct filler *filler, struct weights *weights,
                          unsigned n_with_extra[WIDTH + 1])
{
    for (unsigned nbits = 1; nbits <= WIDTH; nbits++) {
        unsigned i = index_of_first_length(filler, nbits);
        add_weight(&weights->lengths, filler->n_lengths[nbits], nbits);
        for (unsigned n = filler->n_lengths[nbits]; n; n--, i++) {
            unsigned symbol = filler->litlen->symbols[i];
            unsigned extra = wharf_entry_nbits(wharf_inflate_litlen_templates[symbol]);
            if (nbits + extra <= WIDTH)
                n_with_extra[nbits + extra] += 1u << extra;
        }
    }
}

static void weigh(const struct filler *filler, struct weights *weights)
{
    unsigned n_with_extra[WIDTH + 1] = {0};
    unsigned n_matches[WIDTH + 1] = {0};

    memset(weights, 0, sizeof(*weights));
    weigh_lengths(filler, weights, n_with_extra);
    for (unsigned nbits = 2; nbits <= WIDTH; nbits++) {
        for (unsigned a = 1; a < nbits; a++) {
            unsigned b = nbits - a;
            unsigned n = filler->n_literals[a];
            n_matches[nbits] += n_with_extra[a] * filler->distance->n_words[b];
            add_weight(&weights->literal_lengths, n * filler->n_lengths[b], nbits);
            add_weight(&weights->pairs, n * (filler->n_literals[b] + filler->n_lengths[b]), nbits);
            add_weight(&weights->literal_matches, n * n_matches[b], nbits);
        }
        add_weight(&weights->matches, n_matches[nbits], nbits);
    }
}

static atomic_uint forced_plan = WHARF_LITLEN_AUTO;

void wharf_inflate_litlen_force(unsigned plan)
{
    atomic_store_explicit(&forced_plan, plan, memory_order_relaxed);
}

static unsigned make_plan(const struct filler *filler, uint64_t expected_nbits)
{
    const uint64_t n_symbols = expected_nbits / NBITS_OF_SYMBOL;
    struct weights weights;
    unsigned plan = 0;

    weigh(filler, &weights);
    if (pays(&weights.pairs, GAIN_OF_PAIR, n_symbols))
        plan |= WHARF_LITLEN_PAIRS;
    /* Steps that end in a length, and those that must still look up a distance.  If these are a
     * fifth or more, it is better that all look it up: the branch would be mispredicted too
     * often. */
    uint64_t all = weights.lengths.steps;
    uint64_t alone = weights.lengths.steps - weights.matches.steps;
    if (plan & WHARF_LITLEN_PAIRS) {
        all += weights.literal_lengths.steps;
        alone += weights.literal_lengths.steps - weights.literal_matches.steps;
    }
    weights.matches.entries += weights.literal_matches.entries;
    if (5 * alone < all && pays(&weights.matches, GAIN_OF_MATCH, n_symbols))
        plan |= WHARF_LITLEN_MATCHES;
    return plan;
}

/* ---- filling ------------------------------------------------------------------------------- */

static void add_words(struct filler *filler, unsigned nbits)
{
    const struct wharf_code *code = filler->litlen;

    for (unsigned i = code->first[nbits]; i < code->first[nbits + 1]; i++)
        filler->table[code->words[i]] =
            wharf_inflate_entry(wharf_inflate_litlen_templates[code->symbols[i]], nbits);
}

/* Combines all literals of `nbits` with `entry`, which follows them. */
static void add_behind_literals(const struct filler *filler, unsigned nbits, uint32_t *table,
                                uint32_t entry)
{
    const unsigned first = filler->litlen->first[nbits];
    const uint16_t *symbols = filler->litlen->symbols + first;
    const uint16_t *words = filler->litlen->words + first;
    const unsigned n = filler->n_literals[nbits];

    for (unsigned i = 0; i < n; i++)
        table[words[i]] = entry | (uint32_t)symbols[i] << 16;
}

/* Adds pairs of a literal of a bits and a symbol of b bits. */
static void add_pairs(struct filler *filler, unsigned a, unsigned b)
{
    const struct wharf_code *code = filler->litlen;
    const unsigned nbits = a + b;

    for (unsigned i = code->first[b], n = filler->n_literals[b]; n; n--, i++)
        add_behind_literals(filler, a, filler->table + ((unsigned)code->words[i] << a),
                            (uint32_t)code->symbols[i] << 24 | WHARF_ENTRY_LITERAL | 2 << 8 |
                                nbits);
    for (unsigned i = index_of_first_length(filler, b), n = filler->n_lengths[b]; n; n--, i++) {
        uint32_t entry = wharf_inflate_litlen_templates[code->symbols[i]];
        add_behind_literals(filler, a, filler->table + ((unsigned)code->words[i] << a),
                            wharf_inflate_entry(entry, nbits) | WHARF_ENTRY_MORE);
    }
}

/* Lists the lengths of one symbol, of a bits, with all values of its extra bits. */
static unsigned list_length(struct filler *filler, unsigned n, unsigned i, unsigned a)
{
    uint32_t entry = wharf_inflate_litlen_templates[filler->litlen->symbols[i]];

    for (unsigned extra = 0; extra < 1u << wharf_entry_nbits(entry); extra++, n++) {
        filler->length_words[n] = (uint16_t)(filler->litlen->words[i] | extra << a);
        filler->lengths[n] = (uint8_t)((entry >> 24) + extra);
    }
    return n;
}

static void list_lengths(struct filler *filler)
{
    const uint16_t *symbols = filler->litlen->symbols;
    unsigned n = 0;

    for (unsigned nbits = 1; nbits <= WIDTH; nbits++) {
        filler->first_length[nbits] = n;
        for (unsigned a = nbits > 5 ? nbits - 5 : 1; a <= nbits; a++)
            for (unsigned i = index_of_first_length(filler, a), m = filler->n_lengths[a]; m;
                 m--, i++)
                if (wharf_entry_nbits(wharf_inflate_litlen_templates[symbols[i]]) == nbits - a)
                    n = list_length(filler, n, i, a);
    }
    filler->first_length[WIDTH + 1] = n;
}

/* Matches whose length has a bits and whose distance code has b.  n is the number of matches that
 * there are; returns it with these. */
static unsigned add_matches(struct filler *filler, unsigned n, unsigned a, unsigned b)
{
    const struct wharf_code *code = filler->distance;

    for (unsigned i = filler->first_length[a]; i < filler->first_length[a + 1]; i++) {
        uint32_t length = (uint32_t)filler->lengths[i] << 24 | WHARF_ENTRY_FULL;
        for (unsigned k = code->first[b]; k < code->first[b + 1]; k++) {
            unsigned symbol = code->symbols[k];
            unsigned word = filler->length_words[i] | (unsigned)code->words[k] << a;
            if (symbol >= WHARF_DEFLATE_N_DISTANCE)
                break;
            filler->table[word] =
                length | symbol << 8 | (a + b + wharf_entry_nbits(wharf_inflate_distances[symbol]));
            filler->match_words[n++] = (uint16_t)word;
        }
    }
    return n;
}

/* Adds combinations of a literal of a bits and a match of b bits. */
static void add_literals_before_matches(struct filler *filler, unsigned a, unsigned b)
{
    for (unsigned i = filler->first_match[b]; i < filler->first_match[b + 1]; i++) {
        unsigned word = filler->match_words[i];
        add_behind_literals(filler, a, filler->table + (word << a),
                            (filler->table[word] + a) | WHARF_ENTRY_MORE);
    }
}

/* Adds all entries that are nbits wide. */
static void add_entries(struct filler *filler, unsigned plan, unsigned nbits)
{
    add_words(filler, nbits);
    if (plan & WHARF_LITLEN_PAIRS)
        for (unsigned a = 1; a < nbits; a++)
            if (filler->n_literals[a])
                add_pairs(filler, a, nbits - a);
    if (!(plan & WHARF_LITLEN_MATCHES))
        return;
    unsigned n = filler->first_match[nbits];
    for (unsigned a = 1; a < nbits; a++)
        n = add_matches(filler, n, a, nbits - a);
    filler->first_match[nbits + 1] = n;
    for (unsigned a = 1; a < nbits; a++)
        if (filler->n_literals[a])
            add_literals_before_matches(filler, a, nbits - a);
}

unsigned wharf_inflate_fill_litlen(uint32_t *table, const struct wharf_code *litlen,
                                   const struct wharf_code *distance, uint64_t expected_nbits)
{
    struct filler filler; /* most of it is filled in only if the plan says so */
    unsigned plan = atomic_load_explicit(&forced_plan, memory_order_relaxed);
    unsigned width = WIDTH;

    filler.table = table;
    filler.litlen = litlen;
    filler.distance = distance;
    filler.first_match[1] = 0;
    if (plan == WHARF_LITLEN_AUTO && expected_nbits < MIN_NBITS)
        plan = 0;
    if (plan) {
        count_kinds(&filler);
        if (plan == WHARF_LITLEN_AUTO)
            plan = make_plan(&filler, expected_nbits);
    }
    if (plan & WHARF_LITLEN_MATCHES)
        list_lengths(&filler);
    if (!plan && litlen->max_nbits < WIDTH)
        width = litlen->max_nbits;
    for (unsigned nbits = 1; nbits <= width; nbits++) {
        if (nbits > 1)
            memcpy(table + (1u << (nbits - 1)), table, sizeof(*table) << (nbits - 1));
        add_entries(&filler, plan, nbits);
    }
    return width;
}
