/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of literals: every literal but the last has a weight, which is said by four bits or by
 * two FSE states in turn.  The last one's follows from the others, which leave a power of two.  A
 * weight of w is a code of tree_log + 1 - w bits, 0 is none.  Codes go by weight, then by literal.
 */
#include <string.h>

#include "encoders/zstd/zstd_bits.h"
#include "encoders/zstd/zstd_table.h"

enum {
    N_LITERALS = 256,
    /* libzstd has no room for tables with more symbols, and refuses them: the format does not
     * forbid them, but all decoders shall agree. */
    MAX_SYMBOL_OF_32 = 91,
    MAX_SYMBOL_OF_64 = 11,
};

struct weights {
    unsigned n;
    uint8_t weights[N_LITERALS];
};

static bool read_plain_weights(const uint8_t *in, struct weights *weights)
{
    for (unsigned i = 0; i < weights->n; i++)
        weights->weights[i] = i % 2 ? in[i / 2] & 15 : in[i / 2] >> 4;
    return true;
}

/*
 * Two states in turn (section 4.2.1.2); it is over when there are not the bits that one of them
 * goes on with.  Then the other one still has a weight to give, its last.  How many weights there
 * are is said nowhere else; one place is kept for the last literal's.
 */
static bool decode_weights(const struct wharf_zstd_cell *cells, unsigned log,
                           struct wharf_zstd_bits *bits, struct weights *weights)
{
    uint32_t states[2];

    states[0] = wharf_zstd_bits_take(bits, log);
    states[1] = wharf_zstd_bits_take(bits, log);
    if (bits->is_over)
        return false;
    for (unsigned i = 0; i < N_LITERALS - 2; i++) {
        const struct wharf_zstd_cell *cell = &cells[states[i & 1]];
        weights->weights[i] = (uint8_t)cell->base;
        states[i & 1] = cell->next + wharf_zstd_bits_take(bits, cell->n_bits);
        if (bits->is_over) {
            weights->weights[i + 1] = (uint8_t)cells[states[(i + 1) & 1]].base;
            weights->n = i + 2;
            return true;
        }
    }
    return false;
}

static bool read_coded_weights(const uint8_t *in, size_t in_nbytes, struct weights *weights)
{
    struct wharf_zstd_symbol symbols[N_LITERALS];
    struct wharf_zstd_cell cells[1 << WHARF_ZSTD_WEIGHT_LOG];
    struct wharf_zstd_counts counts;
    struct wharf_zstd_bits bits;
    size_t nbytes =
        wharf_zstd_read_counts(in, in_nbytes, N_LITERALS - 1, WHARF_ZSTD_WEIGHT_LOG, &counts);

    if (nbytes == 0)
        return false;
    if (counts.n_symbols - 1 >
        (counts.log == WHARF_ZSTD_WEIGHT_LOG ? MAX_SYMBOL_OF_64 : MAX_SYMBOL_OF_32))
        return false;
    for (unsigned i = 0; i < counts.n_symbols; i++)
        symbols[i] = (struct wharf_zstd_symbol){.base = i};
    wharf_zstd_make_cells(&counts, symbols, cells);
    return wharf_zstd_bits_init(&bits, in + nbytes, in_nbytes - nbytes) &&
           decode_weights(cells, counts.log, &bits, weights);
}

/*
 * Adds the last weight: returns the longest code's bits, or 0 if there is no such tree.
 *
 * A weight of w takes 2^(w - 1) of the tree's leaves.  All leaves are 2^log, the least power of two
 * above what the others take, and the rest is the last literal's, which must be a power of two too.
 */
static unsigned complete(struct weights *weights, unsigned *n_of)
{
    uint32_t sum = 0;

    for (unsigned i = 0; i < weights->n; i++) {
        unsigned weight = weights->weights[i];
        if (weight > WHARF_ZSTD_TREE_MAX_NBITS)
            return 0;
        n_of[weight]++;
        sum += UINT32_C(1) << weight >> 1;
    }
    /* A single literal would have a code of no bits. */
    if (sum == 0)
        return 0;
    unsigned log = 32u - (unsigned)__builtin_clz(sum);
    if (log > WHARF_ZSTD_TREE_MAX_NBITS)
        return 0;
    uint32_t rest = (UINT32_C(1) << log) - sum;
    if (rest & (rest - 1))
        return 0;
    unsigned last = 32u - (unsigned)__builtin_clz(rest);
    weights->weights[weights->n++] = (uint8_t)last;
    n_of[last]++;
    /* Weight 1 is that of the longest codes, of which every tree has some, in pairs. */
    return n_of[1] >= 2 && n_of[1] % 2 == 0 ? log : 0;
}

/* Every tree_log bits that begin with a code lead to its entry, so that one look-up decodes. */
static void fill(const struct weights *weights, const unsigned *n_of, unsigned log, uint16_t *tree)
{
    uint32_t starts[WHARF_ZSTD_TREE_MAX_NBITS + 1];
    uint32_t at = 0;

    for (unsigned weight = 1; weight <= log; weight++) {
        starts[weight] = at;
        at += n_of[weight] << (weight - 1);
    }
    for (unsigned literal = 0; literal < weights->n; literal++) {
        unsigned weight = weights->weights[literal];
        if (weight == 0)
            continue;
        uint16_t entry = (uint16_t)(literal << 8 | (log + 1 - weight));
        uint32_t n = UINT32_C(1) << (weight - 1);
        for (uint32_t i = 0; i < n; i++)
            tree[starts[weight] + i] = entry;
        starts[weight] += n;
    }
}

size_t wharf_zstd_read_tree(const uint8_t *in, size_t in_nbytes, struct wharf_zstd_tables *tables)
{
    unsigned n_of[WHARF_ZSTD_TREE_MAX_NBITS + 1] = {0};
    struct weights weights;
    bool is_good;

    /* After a failure there is no tree that a later block could repeat. */
    tables->tree_log = 0;
    if (in_nbytes == 0)
        return 0;
    size_t header = in[0], nbytes;
    if (header >= 128) {
        weights.n = (unsigned)header - 127;
        nbytes = (weights.n + 1) / 2;
    } else {
        nbytes = header;
    }
    if (nbytes > in_nbytes - 1)
        return 0;
    if (header >= 128)
        is_good = read_plain_weights(in + 1, &weights);
    else
        is_good = read_coded_weights(in + 1, nbytes, &weights);
    unsigned log = is_good ? complete(&weights, n_of) : 0;
    if (log == 0)
        return 0;
    fill(&weights, n_of, log, tables->tree);
    tables->tree_log = (uint8_t)log;
    return 1 + nbytes;
}
